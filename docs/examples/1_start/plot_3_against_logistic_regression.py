"""
Comparison with logistic regression
===================================

Two classifiers on the same texts, with more and more training documents. The penalty of logistic
regression is tuned by cross-validation; this package's classifier chooses its own.
"""

# %%
# The messages are cut to their first eight words, which often do not mention the topic: whole ones
# are too easy. The lower the log loss, the better the probabilities.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests

texts, topics = load_requests(return_X_y=True)
texts = np.array([" ".join(text.split()[:8]) for text in texts], dtype=object)
test = slice(1800, None)
sizes = [100, 200, 400, 800, 1600]
linear = GridSearchCV(
    LogisticRegression(max_iter=1000), {"C": [1, 10, 100]}, scoring="neg_log_loss", cv=3
)
models = {
    "this model": TextClassifier(),
    "logistic regression, tuned": make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), linear
    ),
}
accuracies: dict[str, list[float]] = {name: [] for name in models}
losses: dict[str, list[float]] = {name: [] for name in models}
for name, model in models.items():
    for n in sizes:
        model.fit(texts[:n], topics[:n])
        accuracies[name].append(accuracy_score(topics[test], model.predict(texts[test])))
        losses[name].append(log_loss(topics[test], model.predict_proba(texts[test])))
    print(f"{name}: accuracy {accuracies[name][-1]:.1%}, log loss {losses[name][-1]:.3f}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, scores, title in ((left, accuracies, "accuracy"), (right, losses, "log loss")):
    for (name, values), colour in zip(scores.items(), ("#1f6fb4", "#b2570f"), strict=True):
        ax.plot(sizes, values, "o-", color=colour, label=name)
    ax.set(xscale="log", xlabel="training messages", title=f"test {title}")
    ax.set_xticks([100, 400, 1600], [100, 400, 1600])
    ax.minorticks_off()
left.legend(frameon=False, loc="lower right", fontsize=12)
plt.show()
