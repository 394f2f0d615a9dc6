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
    "classes": """
classes : array-like of shape (n_classes,), default=None
    All labels that any batch may have. Only the first call needs them; without, the labels of
    the first batch are all there are.
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


def documented(thing: Documented) -> Documented:
    """Replace ``{name}`` in the docstring of a function, or of a class and its methods, by a text.

    The texts are those of that name in `TEXTS`.
    """
    methods = vars(thing).values() if inspect.isclass(thing) else ()
    documents: list[Any] = [thing, *filter(inspect.isfunction, methods)]
    for one in documents:
        doc = inspect.cleandoc(one.__doc__ or "")
        for name, text in TEXTS.items():
            doc = doc.replace(f"{{{name}}}", text.strip())
        one.__doc__ = doc
    return thing
