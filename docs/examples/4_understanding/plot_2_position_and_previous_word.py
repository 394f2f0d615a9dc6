"""
Position and the word before
============================

A bag of words has no order. ``ContextVectorizer`` weights each occurrence of a word by its position
and by the word before it.
"""

# %%
# In these generated texts, the last opinion nearly always agrees with the label, and an opinion
# after "hardly" is random.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn.inspection import ContextDisplay
from sklearn_clsattn.text import make_text_classifier

rng = np.random.default_rng(0)
opinions = {"bad": ["dull", "boring", "weak"], "good": ["fun", "charming", "strong"]}
others = "the plot cast music scene hero city night street door voice letter".split()


def story(label):
    """Return a text with opinions; the last one nearly always agrees with the label."""
    words = []
    chances = [0.6] * rng.integers(3, 9) + [0.95]
    for chance in chances:
        before = rng.choice(["very", "quite", "so", "hardly"])
        own = rng.random() < (0.5 if before == "hardly" else chance)
        of = label if own else {"bad": "good", "good": "bad"}[label]
        words += [*rng.choice(others, rng.integers(2, 6)), before, rng.choice(opinions[of])]
    return " ".join([*words, *rng.choice(others, rng.integers(0, 3))])


labels = rng.choice(["bad", "good"], 2000)
texts = [story(label) for label in labels]
print(texts[0])

# %%
# Without context, all opinions have the same weight.

for context in (False, True):
    model = make_text_classifier(characters=None, ngram_range=(1, 1), context=context)
    model.fit(texts[:1500], labels[:1500])
    print(f"context={context}: {model.score(texts[1500:], labels[1500:]):.1%} right")

# %%
# The model has learned that the end matters, and that words after "hardly" do not.

display = ContextDisplay.from_estimator(model, k=4)
plt.show()
