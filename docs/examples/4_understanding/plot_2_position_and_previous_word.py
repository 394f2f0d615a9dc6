"""
Position and the word before
============================

A bag of words has no order. ``ContextVectorizer`` weights each occurrence of a word by its position
and by the word before it.
"""

# %%
# Some of these generated messages have two sentences of mood, and the last one counts.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests

texts, moods = load_requests(target="mood", return_X_y=True)
print(moods[3], "|", texts[3])

# %%
# Without context, all sentences have the same weight.

for context in (False, True):
    model = TextClassifier(characters=None, ngram_range=(1, 1), context=context)
    model.fit(texts[:2000], moods[:2000])
    print(f"context={context}: {model.score(texts[2000:], moods[2000:]):.1%} right")

# %%
# The model has learned that the end of a message matters. The weight of an occurrence is multiplied
# by the exponential of half of each of its scores: by its position from the start, by its position
# from the end, and by the word before. Positions have one score for 1, 2 to 3, 4 to 7 and so on; a
# score of 0 means that no word was there.

vectorizer = model.vectorizer_
figure, (positions, words) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for side, scores in (("start", vectorizer.start_scores_[0]), ("end", vectorizer.end_scores_[0])):
    learned = scores != 0
    first_of_cell = 2 ** np.arange(len(scores))
    positions.plot(first_of_cell[learned], np.exp(scores[learned] / 2), "o-", label=f"from {side}")
positions.set(xscale="log", xlabel="position", ylabel="multiplier")
positions.legend(frameon=False)

strongest = np.argsort(-np.abs(vectorizer.previous_word_scores_))[:8]
multipliers = np.exp(vectorizer.previous_word_scores_[strongest] / 2)
words.barh(vectorizer.previous_words_[strongest], multipliers - 1, left=1)
words.set(xlabel="multiplier", title="after these words")
plt.show()
