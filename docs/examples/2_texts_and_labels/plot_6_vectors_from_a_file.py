"""
Word vectors from a file
========================

GloVe, word2vec and fastText write word vectors as text: one word and its numbers per line. With
them, the classifier can use words that occur in no training text.
"""

# %%
# A small file in that format. A real one has some 100 numbers for each of 400,000 words.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import WordVectors

file = Path(tempfile.mkdtemp()) / "vectors.txt"
file.write_text(
    "good 0.9 0.1 0.2\ngreat 0.8 0.2 0.1\nsuperb 0.9 0.3 0.2\nbad -0.8 0.2 0.1\n"
    "awful -0.9 0.1 0.3\ndreadful -0.9 0.2 0.2\nfilm 0.1 0.9 -0.3\nplot 0.0 0.8 -0.4\n"
)
vectors = WordVectors.from_file(file)
print(vectors.most_similar("superb", k=2))

# %%
# Four texts have labels. They are too few to choose ``C`` by, so it is given. With more texts, it
# is chosen together with the influence of the vectors.

texts = ["a good film", "a great plot", "a bad film", "an awful plot"]
labels = ["good", "good", "bad", "bad"]
models = {
    "without vectors": TextClassifier(C=10).fit(texts, labels),
    "with vectors": TextClassifier(C=10, word_vectors=vectors).fit(texts, labels),
}
news = ["a superb film", "a dreadful film"]  # two words that occur in no training text
for name, model in models.items():
    print(name, model.predict_proba(news)[:, 1].round(2))

# %%
# The explanation shows where the value of a new word comes from.

explanation = explain(models["with vectors"], news)
print(explanation[0].to_text(color=False))

# %%

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for text, shift, colour in zip(news, (0.2, -0.2), ("#1f6fb4", "#b2570f"), strict=True):
    chances = [model.predict_proba([text])[0, 1] for model in models.values()]
    places = [at + shift for at in range(len(models))]
    ax.barh(places, chances, height=0.35, color=colour, label=text)
ax.axvline(0.5, color="0.6", zorder=0)
ax.set(yticks=range(len(models)), yticklabels=models, xlim=(0, 1))
ax.set_xlabel("probability of good")
ax.legend(frameon=False, loc="lower right", fontsize=12)
plt.show()
