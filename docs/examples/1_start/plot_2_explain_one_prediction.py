"""
Explaining one prediction
=========================

Every prediction is an exact sum of contributions from words and word pairs. An explanation is that
sum: nothing is sampled or approximated.
"""

# %%
# ``explain`` takes a fitted model and texts. A notebook shows the result as a page.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

texts, moods = load_requests(target="mood", return_X_y=True)
model = TextClassifier().fit(texts[:1000], moods[:1000])
message = "The sofa is lovely, but I am not happy with the colour."
explanation = explain(model, [message])
explanation

# %%
# The contributions and the intercept sum to the decision.

total = explanation.contributions.sum() + explanation.intercept[0]
print(f"contributions {total:+.12f}")
print(f"decision      {model.decision_function([message])[0]:+.12f}")

# %%
# Attention is the share that a word gets; the contribution is what the word adds to the decision.

table = explanation.to_frame().query("kind == 'token'")
table = table.sort_values("contribution", key=abs).tail(8)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
colours = np.where(table["contribution"] > 0, "#1f6fb4", "#b2570f")
ax.barh(table["token"], table["contribution"], color=colours)
ax.axvline(0, color="0.3", linewidth=0.8)
ax.set(xlabel="contribution to the decision", title="for content | for upset")
plt.show()
