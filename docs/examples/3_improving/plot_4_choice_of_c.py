"""
How C is chosen
===============

With ``C="auto"``, the default, the classifier chooses the strength of its penalty on held-out
documents. After the fit, ``Cs_`` and ``scores_`` are the values tried and their scores.
"""

# %%
# The data are generated documents of a known distribution, a tenth of whose labels are random. Each
# row of ``scores_`` has the mean log probability of the held-out labels of one fold. The values of
# a short list are tried, from the smallest on, until the mean score falls. The dashed line is the
# chosen value. The fewer the documents, the closer it is to a guess that is computed from the data
# before any fit.

import matplotlib.pyplot as plt

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification

X, y = make_token_classification(5000, delta=(0.1, 0.48), flip_y=0.1, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, n in zip(axes, (400, 5000), strict=True):
    model = ClsAttentionClassifier().fit(X[:n], y[:n])
    ax.semilogx(model.Cs_, model.scores_.T, "o-", color="#1f6fb4", alpha=0.6)
    ax.axvline(model.C_, color="0.4", linestyle="--")
    ax.set_xticks(model.Cs_, [f"{C:.2g}" for C in model.Cs_])
    ax.minorticks_off()
    ax.set(xlabel="C", title=f"{n:,} documents, C = {model.C_:.2g}")
axes[0].set_ylabel("held-out log probability")
plt.show()
