"""
Labels that may be wrong
========================

Some labels of a data set are wrong. Check first the labels that a model of the other documents
finds least probable.
"""

# %%
# One label in twenty of these generated messages is changed. ``label_issues`` estimates from one
# fit how probable each label would be without its own document.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import label_issues

texts, moods = load_requests(target="mood", return_X_y=True)
texts, labels = texts[:1000], moods[:1000].copy()
changed = np.random.default_rng(0).choice(1000, 50, replace=False)
labels[changed] = np.where(labels[changed] == "upset", "content", "upset")

model = TextClassifier().fit(texts, labels)
issues = label_issues(model, texts, labels)
wrong = np.isin(issues["document"], changed)
print(f"{wrong.sum()} labels are wrong, {wrong[:60].sum()} of them among the first 60")

# %%

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
looked_at = np.arange(1, len(labels) + 1)
found = np.cumsum(wrong) / wrong.sum()
ax.plot(looked_at, found, color="#1f6fb4", label="lowest margin first")
ax.plot([0, len(labels)], [0, 1], color="0.6", linestyle="--", label="in any order")
ax.set(xlabel="messages checked", ylabel="wrong labels found", xlim=(0, 300))
ax.legend(frameon=False, loc="center right")
plt.show()
