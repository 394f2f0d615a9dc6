"""Texts that several docstrings share."""

import inspect
from typing import Any, TypeVar

Documented = TypeVar("Documented")

TEXTS = {
    "X": """
Parameters
----------
X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
    Non-negative token counts or weights.
""",
    "training": """
X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
    Non-negative token counts or weights.
y : array-like of shape (n_documents,)
    Class labels, of any type.
sample_weight : array-like of shape (n_documents,), default=None
    Non-negative document weights; a weight of 2 is equivalent to two copies.
""",
    "self": """
Returns
-------
self : estimator
    The fitted estimator.
""",
    "classes": """
classes : array-like of shape (n_classes,), default=None
    All labels that occur in any batch. The first call needs them; in later calls they may be
    omitted.
""",
    "attributes": """
classes_ : ndarray of shape (n_classes,)
    Class labels.
class_prior_ : ndarray of shape (n_classes,)
    Class frequencies in the training data, by document weight.
token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    Signed frequency alpha of each token in the training data (after damping), the importance in the
    paper. One row per class for more than two classes; for two, positive values support
    ``classes_[1]``.
attention_scores_ : ndarray of shape (n_tokens,)
    Attention scores E.p. A token's attention is proportional to its (damped) count times the
    exponential of its score.
token_values_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    Token values E.v: what a token adds to the decision per unit of attention.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Added to the attention-weighted mean of the values; 0 without intercepts.
cls_score_, cls_weight_ : float
    Attention score of ``<cls>``, and its weight, which acts as its count in each document. Its
    value is 0. If it does not attend to itself, these are -inf and 0.
cls_embedding_ : ndarray of shape (d,)
    The embedding p. If the dimension drops out, d is 2 for two classes and 1 + K for K > 2, plus
    the dimension of the token vectors.
output_vector_ : ndarray of shape (d,) or (n_classes, d)
    The output vector v; one row per class for more than two classes.
token_embeddings_ : ndarray of shape (n_tokens, d)
    The embeddings E after training. If the dimension drops out, the embeddings of least norm that
    have these scores and values for orthonormal p and v, computed on demand; token vectors are the
    last components, multiplied by one factor per token.
selected_tokens_ : ndarray of shape (n_selected,)
    Columns that have the highest attention score in some training document (including ties within
    1e-6), most often selected first.
selection_counts_ : ndarray of shape (n_selected,)
    Number of training documents in which each of them is selected.
n_iter_ : int
    Number of iterations, as `max_iter` counts them, at least 1.
loss_curve_ : ndarray of shape (n_iterations + 1,)
    Training loss with penalties, in nats per document, at the start and after each iteration.
{tokens}
""",
    "tokens": """
n_features_in_ : int
    Number of tokens.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the tokens, if X had string names.
""",
    "importance": """
importance : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    For two classes, one number per token, positive for class 1; for more, one row per class.
""",
    "references": """
References
----------
.. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
   Embeddings Provably Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.
.. [2] S. Wang, C. D. Manning (2012). Baselines and Bigrams: Simple, Good Sentiment and
   Topic Classification. Proceedings of ACL 2012.
""",
}


def documented(thing: Documented, texts: dict[str, str] = TEXTS) -> Documented:
    """Replace each ``{name}`` in the docstring of a function, or of a class and its methods.

    The replacements are the entries of `texts`.
    """
    documents: list[Any] = [thing]
    if inspect.isclass(thing):
        documents += filter(inspect.isfunction, vars(thing).values())  # its own methods
    for one in documents:
        doc = inspect.cleandoc(one.__doc__ or "")
        # The texts' order counts: that of "attributes" has "{tokens}" in it.
        for name, text in texts.items():
            doc = doc.replace(f"{{{name}}}", text.strip())
        one.__doc__ = doc
    return thing
