"""
What would change the decision
==============================

What does a word add to a decision? What would the decision be without the word? These are two
questions. The first has an exact answer; the second is answered by predicting the edited text.
"""

# %%
# The attention of a removed word goes to the other words, so the decision without the word is not
# the decision minus its contribution. ``decision_without`` predicts the text without the word.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

texts, moods = load_requests(target="mood", return_X_y=True)
model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts[:1000], moods[:1000])
message = "The lamp is lovely, thank you, but your hotline is useless and nobody helped me."
explanation = explain(model, [message])
table = explanation.to_frame().query("kind == 'token'")
table = table.sort_values("contribution", key=abs).tail(7)
decision = explanation.decision[0, 0]

# %%
# An arrow goes from the decision to the decision without the word. If it crosses 0, the predicted
# class changes. A tick is at the decision minus the contribution.

figure, ax = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
rows = np.arange(len(table))
for row, without in zip(rows, table["decision_without"], strict=True):
    colour = "#1f6fb4" if without > decision else "#b2570f"
    ax.annotate(
        "",
        (without, row),
        (decision, row),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
    )
ax.plot(decision - table["contribution"], rows, "|", color="0.3", markersize=14)
ax.axvline(decision, color="0.3", linewidth=0.8)
ax.axvline(0, color="0.3", linestyle=":")
ax.set_yticks(rows, table["token"])
edges = np.array([0, decision, *table["decision_without"], *(decision - table["contribution"])])
ax.set_xlim(edges.min() - 0.3, edges.max() + 0.3)
ax.set(xlabel="decision (above 0: upset)", title="decision without the word")
plt.show()

# %%
# The words to delete for another prediction. The edited text has the probability that the answer
# promises.

answer = explanation.counterfactual()
print(answer.to_text())
print(model.predict_proba([answer[0].edited_text]))
