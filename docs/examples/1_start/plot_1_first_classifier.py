"""
A first text classifier
=======================

From texts to probabilities in one line, and a look at what the model has learned.
"""

# %%
# The texts are generated messages from customers who are content or upset. Use a list of your own
# texts and their labels in the same way.

import matplotlib.pyplot as plt

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import TokenImportanceDisplay

texts, labels = load_requests(target="mood", return_X_y=True)
train, test = slice(0, 1000), slice(1000, 2000)
print(labels[0], "|", texts[0])

# %%
# There is nothing to tune: the penalty is chosen on held-out documents.

model = TextClassifier().fit(texts[train], labels[train])
print(f"{model.score(texts[test], labels[test]):.1%} of the test texts are predicted correctly")

# %%
# Texts in, probabilities out.

new = [
    "It is a lovely blanket and worth every penny.",
    "The blanket is not worth the money.",
    "I am not happy, but your colleague was kind.",
]
for text, probability in zip(new, model.predict_proba(new)[:, 1], strict=True):
    print(f"{probability:.2f} upset | {text}")

# %%
# The words that change decisions most: their value times how much their attention varies.

words = TextClassifier(characters=None, ngram_range=(1, 1)).fit(texts[train], labels[train])
display = TokenImportanceDisplay.from_estimator(words, texts[test])
plt.show()
