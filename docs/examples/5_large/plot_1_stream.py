"""
A stream of documents
=====================

``partial_fit`` learns from batches of documents, seeing each document once. The result is close to
a fit on all documents.
"""

# %%
# Each batch is first test data and then training data. The model keeps only numbers per token, not
# the documents.

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import log_loss

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests

texts, y = load_requests(target="mood", return_X_y=True)
X = HashingVectorizer(n_features=2**14, alternate_sign=False, norm=None).transform(texts)
size = 200
online, online_losses, all_losses = ClsAttentionClassifier(C=1.0), [], []
for start in range(0, X.shape[0] - size, size):
    seen, batch = slice(0, start + size), slice(start, start + size)
    coming = slice(start + size, start + 2 * size)
    online.partial_fit(X[batch], y[batch], classes=["content", "upset"])
    everything = ClsAttentionClassifier(C=1.0).fit(X[seen], y[seen])
    online_losses.append(log_loss(y[coming], online.predict_proba(X[coming])))
    all_losses.append(log_loss(y[coming], everything.predict_proba(X[coming])))

# %%

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
seen = range(size, X.shape[0], size)
ax.plot(seen, all_losses, "o-", color="0.6", label="fit on all seen so far")
ax.plot(seen, online_losses, "o-", color="#1f6fb4", label="partial_fit, each once")
ax.set(xlabel="documents seen", ylabel="log loss of the next 200")
ax.legend(frameon=False)
plt.show()
