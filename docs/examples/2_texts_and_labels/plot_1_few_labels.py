"""
Few labels, many texts
======================

Texts without labels show which words are similar. With ``unlabeled=`` the classifier learns these
similarities, and a word that occurs in no labelled text gets its value from similar words.
"""

# %%
# There are 2,000 short generated texts; only some have labels. Words that begin with "left" are
# frequent in one class, those with "right" in the other. Their letters reveal the class, so
# character n-grams are turned off here.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain

X, y = make_token_classification(
    3000, n_relevant_per_class=100, relevant_share=0.3, document_length=15, random_state=0
)
words = [f"left{n}" for n in range(100)] + [f"right{n}" for n in range(100)]
words = np.array([*words, *(f"other{n}" for n in range(500))])
rng = np.random.default_rng(0)
texts = []
for counts in X.toarray():
    tokens = np.repeat(words, counts)
    texts.append(" ".join(rng.permutation(tokens)))
texts, y, test_texts, test_y = texts[:2000], y[:2000], texts[2000:], y[2000:]

sizes = [20, 40, 80, 160, 320]
scores = {"labelled texts alone": [], "and the others, without labels": []}
for n in sizes:
    alone = TextClassifier(characters=None).fit(texts[:n], y[:n])
    model = TextClassifier(characters=None).fit(texts[:n], y[:n], unlabeled=texts[n:])
    for one, of_sizes in zip((alone, model), scores.values(), strict=True):
        of_sizes.append(one.score(test_texts, test_y))

# %%
# The influence of word similarity is chosen on held-out documents, and can be zero.

print(f"scale chosen: {model.token_vectors_scale_:.1f}")
vectors = model.vectorizer_.word_vectors_
for side in ("left", "right"):
    near = [other for n in range(100) for other, _ in vectors.most_similar(f"{side}{n}", k=5)]
    share = np.mean([other.startswith(side) for other in near])
    print(f"near those of {side!r}, {share:.0%} of words are of {side!r}, too")

# %%
# Explanations are still sums over words, and show the part that comes from similar words.

few = TextClassifier(characters=None).fit(texts[:40], y[:40], unlabeled=texts[40:])
frame = explain(few, test_texts[:1]).to_frame()
print(frame[["token", "contribution", "vector_contribution"]].head(8).round(3).to_string())

# %%

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, of_sizes), color in zip(scores.items(), ("#b2570f", "#1f6fb4"), strict=True):
    ax.plot(sizes, 100 * np.array(of_sizes), "o-", label=name, color=color)
ax.set(xscale="log", xlabel="labelled texts", ylabel="test accuracy (%)", xticks=sizes)
ax.set_xticks([], minor=True)
ax.set_xticklabels([str(n) for n in sizes])
ax.legend(frameon=False)
plt.show()
