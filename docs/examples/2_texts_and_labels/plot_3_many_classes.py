"""
Many classes
============

Four topics, one model: one attention score for each word, and one value for each word and class.
"""

# %%
# The texts are generated messages to a shop. If a text has several topics, the probability is
# divided among them.

import matplotlib.pyplot as plt

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import TokenImportanceDisplay

texts, topics = load_requests(return_X_y=True)
model = TextClassifier(characters=None, ngram_range=(1, 1)).fit(texts[:1000], topics[:1000])
print(f"{model.score(texts[1000:], topics[1000:]):.1%} of the test texts are predicted correctly")
between = model.predict_proba(["The parcel is late, and the invoice has the wrong name on it."])[0]

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.barh(model.classes_, between, color="#1f6fb4")
ax.set(xlabel="probability", title="A late parcel and a wrong invoice", xlim=(0, 1))
plt.show()

# %%
# The words that support each topic most.

display = TokenImportanceDisplay.from_estimator(model, texts[1000:], k=5)
plt.show()
