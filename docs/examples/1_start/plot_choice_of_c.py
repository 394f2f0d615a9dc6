"""
How C is chosen
===============

By default the classifier chooses the strength of its penalty by documents held out.
``ClsAttentionClassifierCV`` does the same with any folds and any score.
"""

# %%
# The curves are the scores of held-out documents, the dashed line is what was chosen: by default
# from few values and between them, with folds from the values of a grid.

import matplotlib.pyplot as plt

from sklearn_clsattn import ClsAttentionClassifier, ClsAttentionClassifierCV
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import RegularizationPathDisplay

X, y = make_token_classification(2000, delta=(0.1, 0.48), flip_y=0.1, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")

by_default = ClsAttentionClassifier().fit(X[:400], y[:400])
RegularizationPathDisplay.from_estimator(by_default, ax=axes[0])
axes[0].set_title(f'C="auto", 400 documents: C = {by_default.C_:.2g}', loc="left")

by_folds = ClsAttentionClassifierCV(Cs=8, cv=5, scoring="neg_log_loss").fit(X, y)
RegularizationPathDisplay.from_estimator(by_folds, ax=axes[1])
axes[1].set_title(f"Five folds, 2,000 documents: C = {by_folds.C_:.2g}", loc="left")
plt.show()
