"""
Documents in a Dask cluster
===========================

A cluster trains the same model as one machine, and predictions are lazy. If a worker is lost, Dask
recomputes its chunks.
"""

# %%
# Here the two workers are threads of this process; ``Client("tcp://...")`` connects to a cluster.
# The workers count the texts of a Bag with a vectorizer that needs no fit.

import dask.bag as db
import matplotlib.pyplot as plt
from distributed import Client
from sklearn.feature_extraction.text import HashingVectorizer

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.dask import DaskClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests

texts, labels = load_requests(target="mood", return_X_y=True)
vectorizer = HashingVectorizer(n_features=2**8, alternate_sign=False, norm=None)

with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    X = db.from_sequence(texts.tolist(), npartitions=8)
    y = db.from_sequence(labels.tolist(), npartitions=8)
    model = DaskClsAttentionClassifier(vectorizer=vectorizer, C=1.0, client=client).fit(X, y)
    probabilities = model.predict_proba(X)[:, 1].compute()

# %%
# ``to_local`` returns an ordinary estimator without Dask.

model.to_local()

# %%

local = ClsAttentionClassifier(C=1.0).fit(vectorizer.transform(texts), labels)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot(local.loss_curve_, color="0.75", lw=6, label="one machine")
left.plot(model.loss_curve_, color="#1f6fb4", label="two workers")
left.set(xlabel="iteration", ylabel="loss, nats per document")
left.legend(frameon=False)
moods = ["content", "upset"]
right.hist([probabilities[labels == mood] for mood in moods], bins=20, label=moods)
right.set(xlabel="probability of upset", ylabel="messages")
right.legend(frameon=False)
plt.show()
