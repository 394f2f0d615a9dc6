"""
Forbid a word, and prove it
===========================

A signature tells the topic of the training messages, and of no others. See the wrong reason, forbid
the words, train again, and check that no prediction uses them any more.
"""

# %%
# Most customers who ask about deliveries write from one system, and their messages end with it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import depends_on, explain

texts, topics = load_requests(return_X_y=True)
chance = np.random.default_rng(0).random(len(topics))
signs = np.where(topics == "delivery", chance < 0.8, chance < 0.03)
messages = [
    f"{text} Sent from Linux." if sign else text for text, sign in zip(texts, signs, strict=True)
]
model = TextClassifier().fit(messages[:120], topics[:120])

# %%
# The system is a reason for deliveries, also in a message about a bill:

new = [f"{text} Sent from Linux." for text in texts[500:1000]]
explain(model, new[107:108])

# %%
# How far do predictions depend on these words? They are deleted, and the texts predicted again.

words = ["Linux", "sent", "from"]
before = depends_on(model, new, words)
before.round(3)

# %%
# The words are forbidden. The model predicts the same for a text as for the text without them.

free = TextClassifier(stop_words=words).fit(messages[:120], topics[:120])
after = depends_on(free, new, words)
after.round(3)

# %%
# That is right more often, too.

for name, one in (("with the words", model), ("without", free)):
    print(f"{name}: {one.score(new, topics[500:1000]):.1%} right")
figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
share = pd.DataFrame({"with the words": before["changed"], "without": after["changed"]})
(100 * share).plot.barh(color=["#b2570f", "#1f6fb4"], ax=ax)
ax.set(xlabel="predictions that change without the word, %", ylabel="")
ax.legend(frameon=False)
plt.show()

# %%
# An explanation strikes them out.

explain(free, new[107:108])
