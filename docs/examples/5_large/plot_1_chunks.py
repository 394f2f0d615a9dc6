"""
Documents in files
==================

Counts that do not fit into memory are written to a folder in chunks. The fit reads them in each
iteration, and the model is the same as from all documents at once.
"""

# %%
# Texts (here generated messages) arrive in batches of any size, from files or a database.
# ``HashingVectorizer`` needs no
# vocabulary, so it can count the first batch before it has seen the others.

import tempfile

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import HashingVectorizer

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests

texts, y = load_requests(target="mood", return_X_y=True)
vectorizer = HashingVectorizer(n_features=2**12, alternate_sign=False, norm=None)
batches = ((texts[start : start + 500], y[start : start + 500]) for start in range(0, 3000, 500))
folder = tempfile.TemporaryDirectory()
counts = ChunkedCounts.write(
    f"{folder.name}/counts", batches, vectorizer=vectorizer, chunk_entries=30_000
)
print(f"{counts.shape[0]:,} documents in {len(counts)} chunks")

# %%
# The scores and values are the same as from all documents at once.

in_chunks = ClsAttentionClassifier(C=1.0).fit_chunks(counts)
at_once = ClsAttentionClassifier(C=1.0).fit(vectorizer.transform(texts), y)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, name in zip(axes, ("attention_scores_", "token_values_"), strict=True):
    ax.plot(getattr(at_once, name), getattr(in_chunks, name), ".", color="#1f6fb4")
    ax.axline((0, 0), slope=1, color="0.6", zorder=0)
    ax.set(title=name, xlabel="all at once", ylabel="in chunks")
folder.cleanup()
plt.show()
