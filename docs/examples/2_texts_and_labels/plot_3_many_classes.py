"""
Many classes
============

Six themes, one model: one attention score for each word, and one value for each word and class.
"""

# %%
# If a text has several themes, the probability is divided among them.

import matplotlib.pyplot as plt

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import TokenImportanceDisplay
from sklearn_clsattn.text import make_text_classifier

bunch = make_token_classification(
    1500, n_classes=6, delta=(0.05, 0.5), as_text=True, return_X_y=False, random_state=0
)
texts, themes = bunch.texts, [bunch.target_names[code] for code in bunch.target]
model = make_text_classifier(characters=None, ngram_range=(1, 1)).fit(texts[:1000], themes[:1000])
print(f"{model.score(texts[1000:], themes[1000:]):.1%} of the test texts are predicted correctly")
between = model.predict_proba(["the concert was in a museum on the island"])[0]
print({str(name): round(float(p), 2) for name, p in zip(model.classes_, between, strict=True)})

# %%
# The words that support each theme most.

display = TokenImportanceDisplay.from_estimator(
    model, texts[1000:], themes[1000:], kind="bars", k=6
)
plt.show()
