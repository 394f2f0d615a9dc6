"""
Unbalanced classes
==================

One document in twenty belongs to the rare class. Class weights move the threshold of the decision
and change nothing else.
"""

# %%
# The documents are generated. With ``class_weight="balanced"`` the model predicts as if both
# classes were equally frequent: it finds more of the rare class, with more false alarms. The
# ranking, which the curve shows, is the same. If you need probabilities, use no weights and choose
# a threshold.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import precision_recall_curve, precision_score, recall_score

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification

X, y = make_token_classification(9500, delta=(0.1, 0.45), relevant_share=0.12, random_state=0)
kept = (y == 0) | (np.arange(len(y)) % 19 == 0)  # one in nineteen of the second class
X, y = X[kept], y[kept]
train, test = slice(0, 3000), slice(3000, None)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for weights, colour in ((None, "#1f6fb4"), ("balanced", "#b2570f")):
    model = ClsAttentionClassifier(class_weight=weights).fit(X[train], y[train])
    rare = model.predict_proba(X[test])[:, 1]
    if weights is None:
        precision, recall, _ = precision_recall_curve(y[test], rare)
        ax.plot(recall, precision, color="0.6")
    labels = model.predict(X[test])
    ax.plot(
        recall_score(y[test], labels),
        precision_score(y[test], labels),
        "o",
        color=colour,
        markersize=10,
        label=f"class_weight={weights!r}",
    )
    print(f"{weights}: {labels.mean():.1%} predicted rare; {y[test].mean():.1%} are")
ax.set(title="Dots: predict, at probability 0.5", xlabel="recall", ylabel="precision")
ax.legend(frameon=False)
plt.show()
