"""
One message of twenty decides
=============================

A long mail with one complaint, a contract with one clause, a report with one finding: one word
decides, and the rest says nothing about it. There logistic regression fails, and attention finds
the word.
"""

# %%
# **The documents.** Six products are recalled. A document is twenty messages of customers; in half
# of the documents one of them mentions a recalled product. The labels are known for 250 documents,
# but not which products are recalled.

import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

recalled = re.compile("kettle|coffee grinder|winter coat|tent|wall clock|toaster")
messages, _ = load_requests(target="mood", return_X_y=True)
mentions = np.array([bool(recalled.search(message)) for message in messages])
about_recalled, others = messages[mentions], messages[~mentions]

rng = np.random.default_rng(0)
y = rng.permutation(np.arange(750) % 2)
texts = []
for is_affected in y:
    document = rng.choice(others, 20)
    if is_affected:
        document[rng.integers(20)] = rng.choice(about_recalled)
    texts.append("\n".join(document))
texts = np.array(texts)
print(f"{np.mean([len(text.split()) for text in texts]):.0f} words in a document, on average")

# %%
# **Logistic regression and this model.** The former adds up small weights of some five hundred
# other words. The latter has chosen a larger ``attention_C`` than usual, so that a few words get
# most of the attention.

linear = GridSearchCV(LogisticRegression(), {"C": [1, 10, 100, 1000]}, cv=3)
models = {
    "logistic regression": make_pipeline(TfidfVectorizer(), linear),
    "this model": make_pipeline(CountVectorizer(), ClsAttentionClassifier(attention_C="auto")),
}
for name, model in models.items():
    model.fit(texts[:250], y[:250])
    print(f"{name}: {model.score(texts[250:], y[250:]):.1%} right")
print("attention_C:", models["this model"][-1].attention_C_)

# %%
# **The word it found**, in the first new document with a recalled product.

document = texts[250:][y[250:] == 1][0]
table = explain(models["this model"], [document]).to_frame().query("kind == 'token'")
table = table.sort_values("contribution", key=abs).tail(8)
print("mentioned:", recalled.search(document).group())

figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
colours = np.where(table["contribution"] > 0, "#1f6fb4", "#b2570f")
ax.barh(table["token"], table["contribution"], color=colours)
ax.axvline(0, color="0.3", linewidth=0.8)
ax.set(xlabel="contribution to the decision", title="The eight words that contribute most")
plt.show()
