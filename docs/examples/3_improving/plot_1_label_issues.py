"""
Labels that may be wrong
========================

Some labels of a data set are wrong. Check first the labels that a model of the other documents
finds least probable.
"""

# %%
# A tenth of the labels are random, so about one in twenty is wrong. ``label_issues`` estimates from
# one fit how probable each label would be without its own document.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import label_issues

bunch = make_token_classification(
    2000, delta=(0.05, 0.45), flip_y=0.1, return_X_y=False, random_state=0
)
X, y = bunch.data, bunch.target
issues = label_issues(ClsAttentionClassifier().fit(X, y), X, y)
wrong = (y != bunch.unflipped_target)[issues["document"]]
print(f"{wrong.sum()} labels are wrong, {wrong[:100].sum()} of them among the first 100")

# %%

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
looked_at = np.arange(1, len(y) + 1)
ax.plot(looked_at, np.cumsum(wrong) / wrong.sum(), color="#1f6fb4", label="lowest margin first")
ax.plot([0, len(y)], [0, 1], color="0.6", linestyle="--", label="in any order")
ax.set(xlabel="documents checked", ylabel="share of wrong labels found", xlim=(0, 600))
ax.legend(frameon=False, loc="lower right")
plt.show()
