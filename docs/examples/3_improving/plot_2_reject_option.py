"""
Leaving doubtful texts to a person
==================================

A classifier need not decide every text. Rank predictions by the probability of the predicted class,
or by how uninformative a text is: the share of attention that ``<cls>`` keeps.
"""

# %%
# The messages are cut to their first eight words, which often do not mention the topic. Accuracy
# rises as more messages are rejected. Probabilities rank best, as expected. The share of ``<cls>``
# ignores contradictory evidence, but it finds texts with little evidence, such as those in another
# language, for any classes.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

texts, topics = load_requests(return_X_y=True)
texts = np.array([" ".join(text.split()[:8]) for text in texts], dtype=object)
model = TextClassifier().fit(texts[:2000], topics[:2000])
texts, topics = texts[2000:], topics[2000:]

right = model.predict(texts) == topics
rankings = {
    "probability of the predicted class": model.predict_proba(texts).max(axis=1),
    "attention that is not on <cls>": 1 - explain(model, texts).cls_attention,
    "at random": np.random.default_rng(0).random(len(texts)),
}
coverage = np.arange(1, len(texts) + 1) / len(texts)
figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
for (name, score), colour in zip(rankings.items(), ("#1f6fb4", "#b2570f", "#8c8c8c"), strict=True):
    first = np.argsort(-score, kind="stable")
    accuracy = np.cumsum(right[first]) / np.arange(1, len(texts) + 1)
    ax.plot(coverage[50:], accuracy[50:], color=colour, label=name)
    half = accuracy[len(texts) // 2]
    print(f"{name}: {half:.1%} right among the best half")
ax.set(xlabel="share of texts that are decided", ylabel="accuracy among these")
ax.legend(frameon=False, loc="center left", fontsize=10)
plt.show()
