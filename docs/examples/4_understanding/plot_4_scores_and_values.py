"""
Where the model looks
=====================

Attention scores and values of all tokens: the figure of the paper, on generated messages.
"""

# %%
# The more often a token is in one class, the more attention it gets, whichever the class is. Its
# value tells the classes apart.

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests

texts, moods = load_requests(target="mood", return_X_y=True)
X = CountVectorizer(min_df=10).fit_transform(texts).toarray()
model = ClsAttentionClassifier().fit(X, moods)
upset = X[moods == "upset"].sum(axis=0) / X.sum(axis=0)  # the share of each token's occurrences

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, numbers in ((left, model.attention_scores_), (right, model.token_values_)):
    ax.scatter(2 * upset - 1, numbers, c=upset, cmap="coolwarm", s=14)
    ax.set(xlabel="P(upset | token) - P(content | token)")
left.set(title="Where the model looks", ylabel="attention score")
right.set(title="What it makes of it", ylabel="value")
plt.show()
