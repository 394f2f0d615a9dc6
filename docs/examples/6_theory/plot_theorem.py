"""
The paper's theorem on one page
===============================

*Attention with Trained Embeddings Provably Selects Important Tokens* (Wu, Shevchenko, Oymak,
Mondelli, NeurIPS 2025, arXiv:2505.17282), in three steps on data that satisfy its assumption.
"""

# %%
# **The data.** Each document has exactly one token that reveals its class. All other tokens are
# exactly equally frequent in both classes.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import (
    OneStepClassifier,
    check_single_relevant_token,
    one_step_embeddings,
)

X, y = make_token_classification(
    400,
    n_relevant_per_class=8,
    n_irrelevant=60,
    document_length=15,
    single_relevant=True,
    random_state=0,
)
assumption = check_single_relevant_token(X, y)
print("Assumption 1 holds:", bool(assumption))

# %%
# **One gradient step** on the embeddings writes the importance of each token, its signed frequency,
# into its embedding, along the output vector (Lemma 4.1). In d dimensions the rest is noise of the
# order of one over the square root of d. The classifier computes the limit, which has no noise.

model = OneStepClassifier().fit(X, y)
step = one_step_embeddings(X, y, step_size=model.step_size_, embedding_dim=2048, random_state=0)

# %%
# **Then gradient flow on <cls> alone** makes attention select tokens. Its direction tends to the
# max-margin direction of the selected tokens (Theorem 4.3), which are the important ones.

mistakes = (model.select_tokens(X) != assumption.relevant_tokens).nnz
print(f"{mistakes} of {X.shape[0]} documents select another token than the important one")
print(f"1 - cosine to the max-margin direction: at most {model.direction_error_:.1e}")

# %%

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
alpha = model.token_importance_
colours = np.where(alpha > 0, "#1f6fb4", np.where(alpha < 0, "#b2570f", "0.6"))
values = np.ravel(step.embeddings @ step.output_vectors[0])
axes[0].scatter(alpha, values, c=colours, s=18)
axes[0].set(xlabel=r"signed frequency $\alpha$", ylabel=r"$E^1 \cdot v$", title="One step: a line")
axes[1].scatter(alpha, model.attention_scores_, c=colours, s=18)
axes[1].set(
    xlabel=r"signed frequency $\alpha$", ylabel=r"$E^1 \cdot p$", title="Then p: it selects"
)
for ax in axes:
    ax.locator_params(axis="x", nbins=3)
plt.show()

# %%
# The flow is followed until the selection settles.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(model.loss_curve_, color="#222")
ax.set(xlabel="step along the flow", ylabel="loss")
plt.show()
