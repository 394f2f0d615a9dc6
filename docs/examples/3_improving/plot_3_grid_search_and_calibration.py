"""
Grid search and calibration
===========================

The classifier works with scikit-learn's tools: here a grid search, and the reliability diagram,
which shows whether 80 % means 80 %.
"""

# %%
# A tenth of the labels of these generated messages are changed, so no good model is ever certain.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text import TokenVectorizer

texts, moods = load_requests(target="mood", return_X_y=True)
changed = np.random.default_rng(0).random(len(texts)) < 0.1
y = (moods == "upset") ^ changed
train, test, y_train, y_test = train_test_split(texts, y, random_state=0)

# %%
# The features are character n-grams, which overlap and so repeat information. The grid has
# parameters of the vectorizer and of the classifier.

characters = TokenVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=20)
search = GridSearchCV(
    make_pipeline(characters, ClsAttentionClassifier()),
    {
        "tokenvectorizer__binary": [False, True],
        "clsattentionclassifier__C": [0.1, 1.0],
    },
    scoring="neg_log_loss",
    cv=3,
).fit(train, y_train)
print(search.best_params_)

# %%
# Naive Bayes treats every n-gram as independent evidence, and is overconfident.

bayes = make_pipeline(characters, MultinomialNB()).fit(train, y_train)
figure, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
for name, model in {"ClsAttentionClassifier": search, "MultinomialNB": bayes}.items():
    probabilities = model.predict_proba(test)
    loss = log_loss(y_test, probabilities)
    CalibrationDisplay.from_predictions(
        y_test,
        probabilities[:, 1],
        n_bins=6,
        strategy="quantile",
        name=f"{name}, log loss {loss:.2f}",
        ax=ax,
    )
ax.set(xlabel="probability of upset", ylabel="observed share")
ax.legend(frameon=False, fontsize=11, loc="upper left")
plt.show()
