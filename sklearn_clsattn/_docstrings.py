"""Texts that stand in several docstrings."""

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
    Non-negative weights; a weight of 2 is the document twice.
""",
    "self": """
Returns
-------
self : estimator
    The fitted estimator.
""",
    "classes": """
classes : array-like of shape (n_classes,), default=None
    All labels that any batch may have. Only the first call needs them; without, the labels of
    the first batch are all there are.
""",
    "attributes": """
classes_ : ndarray of shape (n_classes,)
    Class labels.
class_prior_ : ndarray of shape (n_classes,)
    Shares of the classes in training, by document weight.
token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    Signed frequency alpha of each token in the training data, the paper's importance, of what was
    trained on: one row per class for more than two classes. For two, positive speaks for
    ``classes_[1]``.
attention_scores_ : ndarray of shape (n_tokens,)
    Attention scores E.p: among a document's tokens, attention is in proportion to the
    token's count, damped where counts are, times the exponential of its score.
token_values_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    Token values E.v: what a token adds to the decision per unit of attention.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Added to the attention-weighted values; 0 where there is none.
cls_score_, cls_weight_ : float
    Attention score of ``<cls>`` and its weight, the count with which it stands in every
    document. Its value is 0. Where it does not attend to itself: -inf and 0.
cls_embedding_ : ndarray of shape (d,)
    p. Where the dimension drops out, d is 1 + K for K > 2 classes and 2 for two, and as many more
    as vectors of tokens have.
output_vector_ : ndarray of shape (d,) or (n_classes, d)
    v, for more than two classes a row per class.
token_embeddings_ : ndarray of shape (n_tokens, d)
    E after training. Where the dimension drops out, the embeddings of least norm that have these
    scores and values for orthonormal p and v, made when asked for; vectors of tokens are the last
    components, times a factor for each token.
selected_tokens_ : ndarray of shape (n_selected,)
    Columns with the highest attention score of some training document (ties within 1e-6
    included), most often selected first.
selection_counts_ : ndarray of shape (n_selected,)
    In how many training documents each of them is selected.
n_iter_ : int
    Number of iterations run (those that `max_iter` counts), at least 1.
loss_curve_ : ndarray of shape (n_iterations + 1,)
    Training loss, with penalties, in nats per document, at the start and after each iteration.
{tokens}
""",
    "tokens": """
n_features_in_ : int
    Number of tokens.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the tokens, where X had string names.
""",
    "importance": """
importance : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    One number per token for two classes, positive for class 1; one row per class for more.
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
    """Replace ``{name}`` in the docstring of a function, or of a class and its methods, by a text.

    The texts are those of that name in `texts`.
    """
    methods = vars(thing).values() if inspect.isclass(thing) else ()
    documents: list[Any] = [thing, *filter(inspect.isfunction, methods)]
    for one in documents:
        doc = inspect.cleandoc(one.__doc__ or "")
        for name, text in texts.items():
            doc = doc.replace(f"{{{name}}}", text.strip())
        one.__doc__ = doc
    return thing
