"""
Taught by SetFit
================

SetFit or a language model knows more than a few labels teach, but is slow, and explains nothing.
Its probabilities of texts without labels train this model, whose predictions are exact sums of
words.
"""

# %%
# Customers' generated messages have four topics, and 100 of them a label. SetFit (MiniLM,
# fine-tuned on these 100 by its recipe: 20 positive and 20 negative pairs a text, one epoch) told
# its probabilities of all messages. They are recorded here, so that neither it nor a GPU is needed.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

texts, topics = (np.asarray(column) for column in load_requests(return_X_y=True))
recorded = np.load("setfit_topic.npz")
classes = recorded["classes"]
train, test = recorded["train_rows"], recorded["test_rows"]
labelled = recorded["labelled_100_0"]
others = np.setdiff1d(np.arange(len(train)), labelled)
told = recorded["train_100_0"].astype(float)
told /= told.sum(axis=1, keepdims=True)

# %%
# In your code, `teacher` is the SetFit model itself. The labelled messages judge it: it is left out
# where it does not help.

alone = TextClassifier().fit(texts[labelled], topics[labelled])
taught = TextClassifier().fit(
    texts[labelled],
    topics[labelled],
    unlabeled=texts[others],
    teacher=pd.DataFrame(told[others], columns=classes),
)
of_setfit = classes[recorded["test_100_0"].argmax(axis=1)]
scores = {
    "labels alone": alone.score(texts[test], topics[test]),
    "taught by SetFit": taught.score(texts[test], topics[test]),
    "SetFit": np.mean(of_setfit == topics[test]),
}
print(pd.Series(scores).round(3).to_string())

# %%
# Which words SetFit taught, and why a message has its topic:

print(explain(taught, texts[test][:1].tolist()).to_text(top=3))

# %%
# SetFit need not be asked for all messages.

sizes = [50, 100, 200, 400, 800, 1600]
order = np.random.default_rng(0).permutation(others)
curve = []
for n in sizes:
    asked = order[:n]
    teacher = pd.DataFrame(told[asked], columns=classes)
    model = TextClassifier().fit(
        texts[labelled], topics[labelled], unlabeled=texts[asked], teacher=teacher
    )
    curve.append(100 * model.score(texts[test], topics[test]))

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.axhline(100 * scores["SetFit"], color="#767676", linestyle="--", label="SetFit")
ax.plot(sizes, curve, "o-", color="#1f6fb4", label="taught by SetFit")
ax.axhline(100 * scores["labels alone"], color="#b2570f", linestyle=":", label="labels alone")
ax.set(xscale="log", xlabel="messages that SetFit is asked for", ylabel="test accuracy (%)")
ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
ax.set_xticks([], minor=True)
ax.legend(frameon=False)
plt.show()
