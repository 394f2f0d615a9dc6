"""What the classifiers of this package share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._base import BaseAttentionClassifier
from .._machine import check_memory

if TYPE_CHECKING:
    from .._core.documents import Documents
    from .._core.problem import FitResult

SHARED = {
    "class_weight": """
class_weight : dict, "balanced" or None, default=None
    Weights of the classes, as in :class:`~sklearn.linear_model.LogisticRegression`.
""",
    "beyond_the_paper": """
fit_intercept : bool, default=True
    Whether intercepts are trained, which the paper's model has not.
attend_cls : bool, default=True
    Whether ``<cls>`` attends to itself, which the paper leaves out.
""",
    "early_stopping": """
early_stopping : bool, default=True
    Whether documents are held out, training stops when their loss no longer falls, and the
    model of their lowest loss is kept. False trains on all documents until the training
    loss no longer falls.
validation_fraction : float, default=0.1
    Share of every class's documents held out for that.
""",
    "device": """
device : str or torch.device, default="cpu"
    Where training computes: "cpu", "cuda", "auto" (CUDA where there is one) or a
    ``torch.device``. Prediction always runs on the CPU, without PyTorch.
""",
    "attributes": """
classes_ : ndarray of shape (n_classes,)
    Class labels.
token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    Signed frequency alpha of each token in the training data: one row per class for more
    than two classes. For two, positive speaks for ``classes_[1]``.
attention_scores_ : ndarray of shape (n_tokens,)
    Attention scores E.p: among a document's tokens, attention is in proportion to the
    token's count times the exponential of its score.
token_values_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
    Token values E.v: what a token adds to the decision per unit of attention.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Added to the attention-weighted values; 0 where there is none.
cls_score_, cls_weight_ : float
    Attention score of ``<cls>`` and its weight, the count with which it stands in every
    document. Its value is 0. Where it does not attend to itself: -inf and 0.
cls_embedding_ : ndarray of shape (d,)
    p. Without a dimension, d is 1 + K for K > 2 classes and 2 for two.
output_vector_ : ndarray of shape (d,) or (n_classes, d)
    v, for more than two classes a row per class.
token_embeddings_ : ndarray of shape (n_tokens, d)
    E after training, made or drawn again when asked for. Without a dimension, the embeddings
    of least norm that have these scores and values for orthonormal p and v.
selected_tokens_ : ndarray of shape (n_selected,)
    Columns with the highest attention score of some training document (ties within 1e-6
    included), most often selected first.
selection_counts_ : ndarray of shape (n_selected,)
    In how many training documents each of them is selected.
n_iter_ : int
    Number of iterations run (those that `max_iter` counts), at least 1.
loss_curve_ : ndarray of shape (n_iterations + 1,)
    Training loss, in nats per document, at the start and after each iteration.
n_features_in_ : int
    Number of tokens.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the tokens, where X had string names.
""",
    "see_also": """
See Also
--------
sklearn_clsattn.ClsAttentionClassifier : The everyday classifier.
""",
    "reference": """
D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained Embeddings Provably
Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.
""",
}

Kind = TypeVar("Kind", bound=type)


def documented(kind: Kind) -> Kind:
    """Complete a docstring: ``{name}`` becomes the text of that name in `SHARED`."""
    doc = inspect.cleandoc(kind.__doc__ or "")
    for name, text in SHARED.items():
        doc = doc.replace(f"{{{name}}}", text.strip())
    kind.__doc__ = doc
    return kind


class PaperClassifier(BaseAttentionClassifier):
    """Base of the classifiers of this package: what is random is drawn from `random_state`."""

    tol: float
    random_state: int | np.random.RandomState | None

    _parameter_constraints = {
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "device": "no_validation",  # may be a torch.device; resolve_device checks it
    }

    def _trainer(self) -> Callable[..., FitResult]:
        """Return the function that trains, imported here: predicting needs no PyTorch."""
        raise NotImplementedError

    def _train(self, documents: Documents, **options: Any) -> FitResult:
        """Train with the parameters of this classifier that its training function has."""
        dim = int(getattr(self, "embedding_dim", None) or 0)
        if dim and hasattr(self, "learning_rate"):
            more = dim if getattr(self, "n_layers", 1) == 2 or self.mlp else 0
            # Adam has a gradient, two moments and the best so far beside what it trains.
            least = 5 * np.dtype(options["dtype"]).itemsize * dim * (documents.X.shape[1] + more)
            check_memory(least, f"embedding_dim={dim} for {documents.X.shape[1]} tokens")
        train = self._trainer()
        names = inspect.signature(train).parameters.keys() - options.keys()
        parameters = {name: getattr(self, name) for name in names if hasattr(self, name)}
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return train(documents, seed=seed, **parameters, **options)
