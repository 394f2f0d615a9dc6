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
# The model has learned that the end matters, and that words after "hardly" do not. The weight of an
# occurrence is multiplied by the exponential of half of each of its scores: by its position from
# the start, by its position from the end, and by the word before. Positions have one score for
# 1, 2 to 3, 4 to 7 and so on; a score of 0 means that no word was there.

vectorizer = model[0]
figure, (positions, words) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for side, scores in (("start", vectorizer.start_scores_[0]), ("end", vectorizer.end_scores_[0])):
    learned = scores != 0
    first_of_cell = 2 ** np.arange(len(scores))
    positions.plot(first_of_cell[learned], np.exp(scores[learned] / 2), "o-", label=side)
positions.set(xscale="log", xlabel="position, counted from there", ylabel="multiplier")
positions.legend()

strongest = np.argsort(-np.abs(vectorizer.previous_word_scores_))[:8]
multipliers = np.exp(vectorizer.previous_word_scores_[strongest] / 2)
words.barh(vectorizer.previous_words_[strongest], multipliers - 1, left=1)
words.set(xlabel="multiplier", title="after these words")
plt.show()
