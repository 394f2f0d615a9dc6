"""
Your logistic regression, explained
===================================

``explain`` takes any classifier of texts. The decision of a linear one is a sum of weight times
coefficient, so its explanation is exact and costs about what its prediction costs, and every
statement about words is checked by predicting the edited text. LIME and SHAP estimate by sampling.
"""

# %%
# A Pipeline of scikit-learn, with nothing of this package in it. In a notebook, ``explanation``
# shows the shaded text.

import re
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

texts, topics = load_requests(return_X_y=True)
model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10))
model.fit(texts[:1500], topics[:1500])
asked = list(texts[1500:1540])
explanation = explain(model, asked)
explanation[0]

# %%
# The words to delete for another prediction, as of any model.

print(explanation[:2].counterfactual().to_text())

# %%
# Which word comes first? For each text: the word that adds most to the lead of the predicted class
# over the next one, and the word whose deletion lowers that lead most; the first words of LIME and
# SHAP, for the predicted class, with their defaults: LIME predicts 5,000 edited texts, SHAP 500.

from lime.lime_text import LimeTextExplainer
from shap import Explainer, maskers


def lead(by_class, decision):
    """Return numbers of the predicted class, less those of the next one."""
    second, first = decision.argsort()[-2:]
    return by_class[..., first] - by_class[..., second]


def by_contribution(text):
    found = explain(model, [text])
    return found.tokens[lead(found.contributions, found.decision[0]).argmax()]


def by_deletion(text):
    found = explain(model, [text])
    return found.tokens[lead(found.decision_without, found.decision[0]).argmin()]


lime = LimeTextExplainer(random_state=0)


def by_lime(text):
    found = lime.explain_instance(text, model.predict_proba, top_labels=1, num_features=10)
    words = found.as_list(label=found.available_labels()[0])
    return max(words, key=lambda word: word[1])[0]


shap = Explainer(model.predict_proba, maskers.Text(r"\W+"), silent=True, seed=0)


def by_shap(text):
    found = shap([text])
    values = found.values[0][:, model.predict_proba([text])[0].argmax()]
    return found.data[0][values.argmax()].strip(" ,.!?")


# %%
# The first word is deleted with all its occurrences, and the text is predicted again.


def changes(text, word):
    edited = re.sub(rf"(?i)\b{re.escape(word)}\b", "", text)
    return model.predict([edited])[0] != model.predict([text])[0]


rows = {}
for name, first_word in {
    "contribution": by_contribution,
    "deletion": by_deletion,
    "LIME": by_lime,
    "SHAP": by_shap,
}.items():
    seconds = []
    changed = []
    for text in asked:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            word = first_word(text)
        seconds.append(time.perf_counter() - start)
        changed.append(changes(text, word))
    rows[name] = {"ms a text": 1000 * np.median(seconds), "prediction changes": np.mean(changed)}
table = pd.DataFrame.from_dict(rows, orient="index")
print(table.to_string(float_format="{:.3g}".format))

# %%
# A linear model of short texts has little to disagree about, so the last column hardly differs. The
# first does, and only contributions add up to the decision.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained")
left.barh(table.index, table["ms a text"], color=["#1f6fb4"] * 2 + ["0.6"] * 2)
left.set(xscale="log", xlim=(1, 2000), xlabel="ms a text", title="time")
right.barh(table.index, table["prediction changes"], color=["#1f6fb4"] * 2 + ["0.6"] * 2)
right.set(xlabel="share of texts", title="without the first word,\nanother prediction", yticks=[])
left.invert_yaxis()
right.invert_yaxis()
plt.show()
