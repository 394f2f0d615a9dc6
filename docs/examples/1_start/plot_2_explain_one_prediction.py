"""
Explaining one prediction
=========================

A decision is a sum over the document's tokens. An explanation is that sum: nothing is sampled
or approximated.
"""

# %%
# ``explain`` takes a fitted pipeline and texts. A notebook shows the result as a page.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import make_text_classifier

texts, labels = make_token_classification(1000, delta=(0.05, 0.45), as_text=True, random_state=0)
labels = np.where(labels == 1, "good", "bad")
model = make_text_classifier(characters=None, ngram_range=(1, 1)).fit(texts, labels)
review = (
    "The story is boring and the script is a mess, but the actors are charming, the music is "
    "wonderful and the last scene is touching."
)
explanation = explain(model, [review])
explanation

# %%
# The contributions and the intercept sum to the decision.

total = explanation.contributions.sum() + explanation.intercept[0]
print(f"contributions {total:+.12f}")
print(f"decision      {model.decision_function([review])[0]:+.12f}")

# %%
# Attention is the share that a word gets; the contribution is what the word adds to the decision.

table = explanation.to_frame().sort_values("contribution")
table.plot.barh(x="token", y=["attention", "contribution"], subplots=True, layout=(1, 2))
plt.show()
