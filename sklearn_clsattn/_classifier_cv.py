"""The classifier that chooses C by cross-validation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_array

from ._classifier import ClsAttentionClassifier
from ._core.fitted import log_losses
from ._documents import check_total_weight
from ._machine import check_memory
from ._saved import public
from ._transaction import all_or_nothing

if TYPE_CHECKING:
    import torch

    from ._core.cross_validation import Score
    from ._core.documents import Documents
    from ._core.fitted import FittedAttention
    from ._core.problem import Callback, FitResult

Array = NDArray[np.float64]

_LOWEST, _HIGHEST = 1e-2, 1e2


@public("sklearn_clsattn")
class ClsAttentionClassifierCV(ClsAttentionClassifier):
    """:class:`ClsAttentionClassifier` with C chosen by cross-validation.

    Like :class:`~sklearn.linear_model.LogisticRegressionCV`: every fold is fitted for all values
    of C, from the smallest to the largest, each fit starting from the last; the value of the best
    mean score is taken, and the classifier is fitted with it on all documents. That takes a few
    times as long as one fit. Take it for a grid, folds or a score of your own;
    ``ClsAttentionClassifier(C="auto")`` chooses C by fewer fits.

    Parameters
    ----------
    Cs : int or array-like of shape (n_Cs,), default=10
        The values of C. An integer is that many from 0.01 to 100, at equal distances on a
        logarithmic scale: C = 1 is good for most texts, whatever their length.
    cv : int, splitter or iterable, default=None
        How documents are split into folds, as in :func:`~sklearn.model_selection.check_cv`: the
        number of stratified folds (None is 5), a splitter of scikit-learn, or an iterable of
        pairs of index arrays (training documents, held-out documents). For groups, which `fit`
        does not take, pass ``list(GroupKFold().split(X, y, groups))``.
    scoring : str or callable, default=None
        Score of held-out documents, the greater the better: a name known to scikit-learn, or a
        callable ``scoring(estimator, X, y)``. None is minus the mean log loss. Where `fit` gets a
        `sample_weight`, scores get that of the held-out documents.
    attention_C : float, default=0.03
        As in :class:`ClsAttentionClassifier`, like all that follow.
    attend_cls : bool, default=True
        Whether ``<cls>`` attends to itself as well.
    token_scaling : {"log_odds"} or None, default="log_odds"
        How values are scaled and where attention starts.
    sublinear_counts : bool, default=True
        Whether counts are damped, in all folds by the mean positive entry of all documents;
        `scoring` gets documents as they are trained on, damped.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" balances the training documents of every fold.
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    tol : float, default=1e-2
        Training stops when the optimality gap is at most this, in nats per document. The fits of
        the folds stop at 0.01 if `tol` is less.
    verbose : int, default=0
        Prints the loss and the gap of every `verbose`-th iteration of the last fit.
    device : str or torch.device, default="cpu"
        Where training computes.

    Attributes
    ----------
    C_ : float
        The value of the best mean score, the smallest of equally good ones.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C, ascending.
    scores_ : ndarray of shape (n_folds, n_Cs)
        The score of every fold's held-out documents for each of them.
    entry_scale_ : float
        The mean positive entry of the training data; absent without `sublinear_counts`.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    token_importance_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Signed frequency alpha of each token in the training data.
    attention_scores_ : ndarray of shape (n_tokens,)
        Attention scores E.p.
    token_values_ : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Token values E.v.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Added to the attention-weighted values.
    cls_score_, cls_weight_ : float
        Attention score of ``<cls>`` and its weight.
    cls_embedding_, output_vector_, token_embeddings_ : ndarray
        p, v and E; the last is made when asked for.
    selected_tokens_, selection_counts_ : ndarray of shape (n_selected,)
        Columns with the highest attention score of some training document, and in how many.
    n_iter_ : int
        Number of iterations of the last fit, at least 1.
    loss_curve_ : ndarray of shape (n_iterations + 1,)
        Penalised mean log loss at the start of the last fit and after each of its iterations.
    optimality_gap_ : float
        The gap reached (see `tol`).
    n_features_in_ : int
        Number of tokens.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the tokens, where X had string names.

    See Also
    --------
    ClsAttentionClassifier : The classifier, with a given C or one chosen by few fits.
    sklearn_clsattn.inspection.RegularizationPathDisplay : Draws `scores_`.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifierCV
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> X, y = make_token_classification(300, random_state=0)
    >>> model = ClsAttentionClassifierCV(Cs=[0.1, 1, 10], cv=3).fit(X, y)
    >>> model.scores_.shape
    (3, 3)
    >>> bool(model.C_ == model.Cs_[model.scores_.mean(axis=0).argmax()])
    True
    """

    _parameter_constraints = {
        **{
            name: constraint
            for name, constraint in ClsAttentionClassifier._parameter_constraints.items()
            if name not in ("C", "warm_start")
        },
        "Cs": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    }

    # Another signature than the parent's: C and warm_start are no parameters here.
    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 10,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        attention_C: float = 0.03,
        attend_cls: bool = True,
        token_scaling: Literal["log_odds"] | None = "log_odds",
        sublinear_counts: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 100,
        tol: float = 1e-2,
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.attention_C = attention_C
        self.attend_cls = attend_cls
        self.token_scaling = token_scaling
        self.sublinear_counts = sublinear_counts
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.device = device

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose C by cross-validation, and fit on all documents.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
            Non-negative token counts or weights.
        y : array-like of shape (n_documents,)
            Class labels, of any type, two classes or more.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weights, for training and for scores.

        Returns
        -------
        self : ClsAttentionClassifierCV
            The fitted classifier.

        Raises
        ------
        ValueError
            As :meth:`ClsAttentionClassifier.fit`; if `Cs` are not positive and finite; if a fold
            has no training document of a class, or none of positive weight to score; if a score
            is NaN or infinite.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations of the last fit do not reach `tol`.
        """
        from ._core.backend import resolve_device

        device = resolve_device(self.device)
        Cs = _ascending(self.Cs)
        documents, classes, y = self._documents(X, y, sample_weight)
        folds = self._folds(documents, classes, y, sample_weight)
        train = partial(self._train, device=device, folds=folds, Cs=Cs)
        return self._fit(documents, classes, (documents.X, y, sample_weight), train)

    def _train(
        self,
        documents: Documents,
        *,
        dtype: type[np.floating[Any]],
        device: torch.device,
        callback: Callback,
        start: FittedAttention | None = None,
        folds: Iterable[tuple[Array, Score]] = (),
        Cs: Array | None = None,
    ) -> FitResult:
        from ._core.cross_validation import fit_cross_validated

        assert Cs is not None
        return fit_cross_validated(
            documents,
            folds,
            Cs,
            dtype=dtype,
            device=device,
            callback=callback,
            **self._settings(),
        )

    def _settings(self) -> dict[str, Any]:
        return {
            "attention_C": self.attention_C,
            "attend_cls": self.attend_cls,
            "scaling": self.token_scaling,
            "max_iter": self.max_iter,
            "tol": self.tol,
        }

    def _folds(
        self,
        documents: Documents,
        classes: NDArray[Any],
        y: NDArray[Any],
        sample_weight: ArrayLike | None,
    ) -> Iterable[tuple[Array, Score]]:
        """Return every fold's training weights, (n_documents,), and its score, made when due."""
        codes, everything = documents.codes, np.arange(len(y))
        weights = _check_sample_weight(sample_weight, documents.X, dtype=np.float64)
        folds = []
        splits = check_cv(self.cv, y, classifier=True).split(documents.X, y)
        for number, (train, test) in enumerate(splits, start=1):
            held_out = everything[test]
            times = np.bincount(everything[train], minlength=len(y))
            sums = np.bincount(codes, weights * times, len(classes)).astype(np.float64)
            if (missing := classes[sums == 0]).size:
                raise ValueError(
                    f"Fold {number} has no training document of positive weight of the class(es) "
                    f"{missing.tolist()}: every fold needs all {len(classes)} classes. Take fewer "
                    "folds, other splits or a stratified splitter, or leave out rare classes."
                )
            if not weights[held_out].any():
                raise ValueError(
                    f"Fold {number} holds out no document of positive weight, so that there is "
                    "nothing to score: take fewer folds or other splits."
                )
            with np.errstate(over="ignore", invalid="ignore"):  # checked next
                factors = self._class_factors(classes, sums)
                check_total_weight(sums * factors)
            folds.append((weights * times * factors[codes], held_out))
        if not folds:
            raise ValueError("cv gives no splits: pass at least one, or a number of folds.")
        weighed = None if sample_weight is None else weights
        return ((train, self._score(documents, classes, y, weighed, test)) for train, test in folds)

    def _score(
        self,
        documents: Documents,
        classes: NDArray[Any],
        y: NDArray[Any],
        weights: Array | None,
        held_out: NDArray[np.intp],
    ) -> Score:
        """Return the score of models on the documents of some numbers, (n_held_out,)."""
        X, codes, labels = documents.X[held_out], documents.codes[held_out], y[held_out]
        weights = None if weights is None else weights[held_out]
        if self.scoring is None:
            return lambda model: (
                -float(np.average(log_losses(model.outputs(X), codes), weights=weights))
            )
        scorer = check_scoring(self, self.scoring)
        parameters = {} if weights is None else {"sample_weight": weights}
        estimator = copy.copy(self)
        estimator.classes_ = classes
        for name in ("feature_names_in_", "entry_scale_"):  # X has no names, and is damped already
            estimator.__dict__.pop(name, None)

        def score(model: FittedAttention) -> float:
            estimator.__dict__.update(self._model_attributes(model, None))
            return float(scorer(estimator, X, labels, **parameters))

        return score


def _ascending(Cs: int | ArrayLike) -> Array:
    """Return the values of C that `Cs` stands for, (n_Cs,), ascending."""
    if isinstance(Cs, int | np.integer):
        check_memory(8 * int(Cs), f"{Cs=}")
        return np.geomspace(_LOWEST, _HIGHEST, int(Cs))
    values = np.unique(check_array(Cs, ensure_2d=False, dtype=np.float64, input_name="Cs"))
    if np.ndim(Cs) != 1 or not values[0] > 0:
        raise ValueError(f"Cs must be an integer or a list of positive numbers, got {Cs!r}.")
    return values
