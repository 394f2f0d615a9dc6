"""
Taught by another model
=======================

A sentence transformer or a language model may know more than a few labels teach, but be slow, and
explain nothing. Its probabilities of texts without labels train this model, whose predictions are
exact sums of words.
"""

# %%
# Generated messages are calm or upset. The teacher stands for the slow model: it was fitted to
# 4,000 labels that the student does not have. The student has few labels, 600 texts without, and
# what the teacher says of these.

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

texts, moods = load_requests(target="mood", return_X_y=True)
texts, moods = np.array(texts, dtype=object), np.array(moods)
unlabeled, test = slice(200, 800), slice(800, 1800)
teacher = make_pipeline(
    CountVectorizer(ngram_range=(1, 2), binary=True),
    RandomForestClassifier(200, min_samples_leaf=2, random_state=0, n_jobs=1),
)
teacher.fit(texts[1800:], moods[1800:])

# %%
# How much the teacher counts is chosen by the labelled texts, one fold after the other held out.

sizes = [10, 40, 80, 160]
rows = []
for n in sizes:
    alone = TextClassifier().fit(texts[:n], moods[:n])
    student = TextClassifier().fit(
        texts[:n], moods[:n], unlabeled=texts[unlabeled], teacher=teacher
    )
    rows.append(
        {
            "labels": n,
            "alone": alone.score(texts[test], moods[test]),
            "student": student.score(texts[test], moods[test]),
            "teacher's weight": student.teacher_weights_[0],
        }
    )
curve = pd.DataFrame(rows).set_index("labels")
print(curve.round(2).to_string())

# %%
# The student is faster, and tells why it says so.

seconds = {}
for name, model in {"teacher": teacher, "student": student}.items():
    start = time.perf_counter()
    model.predict(texts[test])
    seconds[name] = time.perf_counter() - start
print({name: f"{1000 / one:,.0f} texts a second" for name, one in seconds.items()})
print(explain(student, texts[test][:1]).to_text(top=4))

# %%

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
score = 100 * teacher.score(texts[test], moods[test])
ax.axhline(score, color="#767676", linestyle="--", label="the teacher")
ax.plot(sizes, 100 * curve["student"], "o-", color="#1f6fb4", label="taught by it")
ax.plot(sizes, 100 * curve["alone"], "o-", color="#b2570f", label="the labels alone")
ax.set(xscale="log", xlabel="labelled texts", ylabel="test accuracy (%)", xticks=sizes)
ax.set_xticks([], minor=True)
ax.set_xticklabels([str(n) for n in sizes])
ax.legend(frameon=False)
plt.show()
