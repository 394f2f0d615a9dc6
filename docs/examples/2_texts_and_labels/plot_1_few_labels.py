"""
Few labels, many texts
======================

Texts without labels show which words are similar. With ``unlabeled=`` the classifier learns these
similarities, and a word that occurs in no labelled text gets its value from similar words.
"""

# %%
# There are 2,000 short generated texts; only some have labels. Many of their words are invented
# compounds whose letters reveal the class, so character n-grams are turned off here.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain

texts, y = make_token_classification(
    3000,
    n_relevant_per_class=100,
    relevant_share=0.3,
    document_length=15,
    as_text=True,
    random_state=0,
)
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
for word in ("terrific", "boring"):
    print(word, "is near", ", ".join(other for other, _ in vectors.most_similar(word, k=5)))

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
