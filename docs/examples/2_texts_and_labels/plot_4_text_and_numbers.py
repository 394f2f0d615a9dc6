"""
Numbers beside text
===================

A data frame has texts and numbers. The numbers are divided into bins, and each bin is a token like
a word: contributions are still exact, and effects need not be linear.
"""

# %%
# This table has customers' messages, what they spent, and how many days ago they ordered. Upset
# customers have waited longer.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.text import ContextVectorizer

texts, moods = load_requests(target="mood", return_X_y=True)
rng = np.random.default_rng(0)
upset = moods == "upset"
table = pd.DataFrame(
    {
        "message": [" ".join(text.split()[-6:]) for text in texts],
        "days": rng.gamma(2.0, np.where(upset, 6.0, 2.5)).round(1),
        "spent": rng.lognormal(4.0, 1.0, len(texts)).round(),
    }
)
train, test = slice(0, 2000), slice(2000, None)

bins = KBinsDiscretizer(8, encode="onehot", quantile_method="averaged_inverted_cdf")
columns = ColumnTransformer(
    [
        ("words", ContextVectorizer(characters=None), "message"),
        ("numbers", bins, ["days", "spent"]),
    ],
    transformer_weights={"numbers": 3.0},
)
model = make_pipeline(columns, ClsAttentionClassifier()).fit(table[train], moods[train])
alone = TextClassifier(characters=None).fit(table["message"][train], moods[train])
print(f"words alone {alone.score(table['message'][test], moods[test]):.1%}")
print(f"words and numbers {model.score(table[test], moods[test]):.1%}")

# %%
# An explanation shows words and numbers in one sum. ``days_1.0`` is the second bin of ``days``.

edges = model[0].named_transformers_["numbers"].bin_edges_[0]
print(f"bins of days: {', '.join(f'{low:g} to {high:g}' for low, high in pairwise(edges))}\n")
print(explain(model, table[2000:2001]).to_text(color=False, top=4))

# %%
# The fitted model has the effect of each bin, before attention is normalised in a document.

names = model[0].get_feature_names_out()
effects = model[-1].token_values_ * np.exp(model[-1].attention_scores_)
values = dict(zip(names, effects, strict=True))
heights = [value for name, value in values.items() if name.startswith("numbers__days")]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.stairs(heights, edges, baseline=0, fill=True, color="#1f6fb4", alpha=0.4)
ax.stairs(heights, edges, baseline=None, color="#1f6fb4")
ax.axhline(0, color="#8c8c8c", linewidth=0.8)
ax.set(
    xlabel="days since the last order", ylabel="value times attention, for 'upset'", xlim=(0, 40)
)
plt.show()
