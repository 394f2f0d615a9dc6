"""
What would change the decision
==============================

What a word adds, and what would happen without it, are two questions. Both have exact answers.
"""

# %%
# A word that is removed leaves its attention to the others, so the decision without it is not the
# decision less its contribution. ``decision_without`` is the first in closed form.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain

texts, y = make_token_classification(800, delta=(0.05, 0.45), as_text=True, random_state=0)
model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, y)
review = "a boring, predictable story with charming actors and a touching end, and a superb score"
explanation = explain(model, [review])
terms = explanation.to_frame().query("kind == 'token'")
terms = terms.sort_values("contribution", key=abs).tail(7)
decision = explanation.decision[0, 0]

# %%
# The arrows go from the decision to what it would be: where one crosses the line at 0, the
# predicted class would be another.

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
rows = np.arange(len(terms))
for row, without in zip(rows, terms["decision_without"], strict=True):
    colour = "#1f6fb4" if without > decision else "#b2570f"
    ax.annotate(
        "",
        (without, row),
        (decision, row),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
    )
ax.plot(decision - terms["contribution"], rows, "|", color="0.3", markersize=14)
ax.axvline(decision, color="0.3", linewidth=0.8)
ax.axvline(0, color="0.3", linestyle=":")
ax.set_yticks(rows, terms["token"])
edges = np.array([0, decision, *terms["decision_without"], *(decision - terms["contribution"])])
ax.set_xlim(edges.min() - 0.3, edges.max() + 0.3)
ax.set(
    xlabel="decision (above 0: class 1)",
    title="Arrow: the decision without the word. Tick: the decision less what it adds",
)
plt.show()
