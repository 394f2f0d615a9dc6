"""
Comparison with logistic regression
===================================

Two classifiers on the same counts, with more and more training documents. The penalty of logistic
regression is tuned by cross-validation; this package's classifier chooses its own.
"""

# %%
# The lower the log loss, the better the probabilities. The dashed line is the best possible result,
# computed from the distribution of the generated data.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification

bunch = make_token_classification(
    4200, delta=(0.1, 0.48), relevant_share=0.1, return_X_y=False, random_state=0
)
X, y = bunch.data, bunch.target
X_test, y_test = X[-2000:], y[-2000:]
sizes = [100, 200, 400, 800, 1600]
models = {
    "ClsAttentionClassifier": ClsAttentionClassifier(),
    "LogisticRegression, tuned": GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": [0.001, 0.01, 0.1, 1]},
        scoring="neg_log_loss",
        cv=3,
    ),
}
scores = {
    name: [
        (accuracy_score(y_test, p.argmax(axis=1)), log_loss(y_test, p))
        for p in (model.fit(X[:n], y[:n]).predict_proba(X_test) for n in sizes)
    ]
    for name, model in models.items()
}

# %%
# The true probabilities, by Bayes' rule.

evidence = X_test @ np.log(bunch.token_probabilities[1] / bunch.token_probabilities[0])
best = 1 / (1 + np.exp(-evidence))
limits = accuracy_score(y_test, best > 0.5), log_loss(y_test, best)

# %%

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, at, title in zip(axes, (0, 1), ("test accuracy", "test log loss"), strict=True):
    for name, of in scores.items():
        ax.plot(sizes, [pair[at] for pair in of], "o-", label=name)
    ax.axhline(limits[at], color="0.4", linestyle="--", label="the data's own distribution")
    ax.set(xscale="log", xlabel="training documents", title=title)
    ax.set_xticks(sizes, sizes, minor=False)
    ax.minorticks_off()
axes[1].legend(frameon=False)
plt.show()
