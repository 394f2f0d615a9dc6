"""
Words and characters
====================

A word with a typing error is a new word, but most of its character n-grams are known. A classifier
that also counts these loses less accuracy.
"""

# %%
# One model uses words and pairs of words; the other also uses character n-grams. Both are fitted to
# generated messages and tested on messages with more and more wrong letters.

import string

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests

texts, labels = load_requests(return_X_y=True)
texts, labels = texts[:1000], labels[:1000]
rng = np.random.default_rng(0)
letters = np.array(list(string.ascii_lowercase))


def mistyped(text, share):
    """Return a text in which this share of the letters is another one."""
    characters = np.array(list(text))
    wrong = (rng.random(len(text)) < share) & np.isin(characters, letters)
    characters[wrong] = rng.choice(letters, wrong.sum())
    return "".join(characters)


print(mistyped(texts[0], 0.1))

# %%

shares = [0, 0.05, 0.1, 0.2, 0.3]
damaged = [[mistyped(text, share) for text in texts[600:]] for share in shares]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, characters in {"words and characters": {}, "words alone": {"characters": None}}.items():
    model = TextClassifier(**characters).fit(texts[:600], labels[:600])
    ax.plot(shares, [model.score(X, labels[600:]) for X in damaged], "o-", label=name)
ax.set(xlabel="share of letters that are wrong", ylabel="test accuracy")
ax.set_xticks(shares, [f"{share:.0%}" for share in shares])
ax.legend(frameon=False)
plt.show()
