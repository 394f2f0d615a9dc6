"""
Labels to look at
=================

Some labels of a data set are wrong. Those that a model of the other documents finds least probable
are the first to look at.
"""

# %%
# A tenth of the labels is drawn at random, so about one in twenty is wrong. Every document is
# predicted by a model that has not seen it.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification

bunch = make_token_classification(
    2000, delta=(0.05, 0.45), flip_y=0.1, return_X_y=False, random_state=0
)
X, y = bunch.data, bunch.target
probabilities = cross_val_predict(ClsAttentionClassifier(), X, y, cv=5, method="predict_proba")
order = np.argsort(probabilities[np.arange(len(y)), y])
wrong = (y != bunch.unflipped_target)[order]
print(f"{wrong.sum()} labels are wrong, {wrong[:100].sum()} of them among the first 100")

# %%

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
looked_at = np.arange(1, len(y) + 1)
ax.plot(looked_at, np.cumsum(wrong) / wrong.sum(), color="#1f6fb4", label="least probable first")
ax.plot([0, len(y)], [0, 1], color="0.6", linestyle="--", label="in any order")
ax.set(xlabel="documents looked at", ylabel="share of wrong labels found", xlim=(0, 600))
ax.legend(frameon=False, loc="lower right")
plt.show()
