"""The estimator for Dask collections."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from distributed import Client, get_client
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._classifier import ClsAttentionClassifier
from .._saved import SavedMixin
from .._transaction import all_or_nothing
from ._partitions import aligned, predictions
from ._training import fit_on_workers


class DaskClsAttentionClassifier(SavedMixin, ClassifierMixin, BaseEstimator):
    """:class:`~sklearn_clsattn.ClsAttentionClassifier` on the workers of a Dask cluster.

    The same model as on one machine: Dask places the documents, every worker sums over its own,
    and the sums meet in a private group of the workers, without the scheduler.

    Parameters
    ----------
    vectorizer : transformer or None, default=None
        Makes counts of texts: one that needs no fit, such as
        :class:`~sklearn_clsattn.text.HashingTokenVectorizer`, or one that is fitted. None for X of
        counts.
    client : distributed.Client or None, default=None
        The cluster. None takes the current client.
    timeout : float, default=300
        Seconds after which a fit fails if a worker does not answer. It is no limit on the time of
        a fit that goes on, or that waits for another one.
    retries : int, default=0
        How often a fit starts again after a worker was lost, from the last point reached, on those
        that are left.
    **params : dict
        Parameters of :class:`~sklearn_clsattn.ClsAttentionClassifier`.

    Attributes
    ----------
    classifier_ : ClsAttentionClassifier
        The fitted classifier. All its fitted attributes are found here too, by their names.

    See Also
    --------
    sklearn_clsattn.distributed.fit : The same over the processes of torch.distributed.

    Notes
    -----
    A fit runs one task on every worker that holds documents, with all of that worker's threads,
    and other fits of the cluster wait until it is over. If a worker fails, it is named, and the
    others end: there is never a model of a part of the documents.

    Files are those of :meth:`to_local`'s estimator, which needs no Dask.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn_clsattn.dask import DaskClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> X, y = make_token_classification(400, random_state=0)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     model = DaskClsAttentionClassifier(C=1.0).fit(X, y)
    ...     accuracy = model.score(X, y)
    >>> accuracy > 0.9
    True
    """

    classifier_: ClsAttentionClassifier

    _parameter_constraints = {
        **ClsAttentionClassifier._parameter_constraints,
        "vectorizer": "no_validation",
        "client": [Client, None],
        "timeout": [Interval(Real, 0, None, closed="neither")],
        "retries": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        vectorizer: Any = None,
        client: Client | None = None,
        timeout: float = 300,
        retries: int = 0,
        **params: Any,
    ) -> None:
        self.vectorizer = vectorizer
        self.client = client
        self.timeout = timeout
        self.retries = retries
        defaults = ClsAttentionClassifier().get_params()
        if unknown := params.keys() - defaults:
            raise TypeError(
                f"DaskClsAttentionClassifier has no parameter {', '.join(sorted(unknown))}: beside "
                "vectorizer, client, timeout and retries it has those of ClsAttentionClassifier."
            )
        self.__dict__.update(defaults | params)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*super()._get_param_names(), *ClsAttentionClassifier._get_param_names()])

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Counts: an Array of dense or CSR blocks, (n_documents, n_tokens), or a DataFrame. With a
            `vectorizer`, what it takes: a Bag or a Series of texts. Sizes of chunks may be unknown.
        y : dask Array, Series or Bag
            Class labels, in as many partitions of the same sizes as X.
        sample_weight : dask Array, Series or Bag, default=None
            Non-negative weights, likewise.

        Returns
        -------
        self : estimator
            The fitted classifier.

        Raises
        ------
        ValueError
            If a partition has something that
            :meth:`ClsAttentionClassifier.fit <sklearn_clsattn.ClsAttentionClassifier.fit>` refuses,
            or other tokens or another number of labels than it should. Its worker is named.
        RuntimeError
            If a worker is lost, or does not answer for `timeout` seconds, and no retry is left.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations do not reach `tol`.
        """
        client = self._client()
        if getattr(X, "ndim", 1) == 1 and self.vectorizer is not None:
            try:
                self.vectorizer.transform([""])
            except NotFittedError as error:
                raise ValueError(
                    f"vectorizer={self.vectorizer!r} is not fitted: fit it on a sample of the "
                    "texts, or pass one that needs no fit, as HashingTokenVectorizer(). (clone() "
                    "forgets what a vectorizer learned, unless it is in scikit-learn's "
                    "FrozenEstimator.)"
                ) from error
        parts = aligned(X, y, sample_weight, self.vectorizer)
        model = ClsAttentionClassifier(
            **{name: getattr(self, name) for name in ClsAttentionClassifier._get_param_names()}
        )
        if self.warm_start and hasattr(self, "classifier_"):
            model = copy.copy(self.classifier_).set_params(**model.get_params())
        if not client.nthreads():
            try:
                client.wait_for_workers(1, timeout=self.timeout)
            except TimeoutError as error:
                raise RuntimeError(f"{client} has had no worker for {self.timeout} s.") from error
        self.classifier_ = fit_on_workers(
            client, parts, model, timeout=self.timeout, retries=self.retries
        )
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the decision values, lazily.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Documents, as :meth:`fit` takes them.

        Returns
        -------
        decision : dask Array of shape (n_documents,) or (n_documents, n_classes)
            For two classes the log-odds of ``classes_[1]``, else one value per class.
        """
        check_is_fitted(self)
        n_classes = len(self.classes_)
        return self._lazily("decision_function", X, None if n_classes == 2 else n_classes)

    def predict(self, X: Any) -> Any:
        """Return the most probable class of every document, lazily.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Documents, as :meth:`fit` takes them.

        Returns
        -------
        labels : dask Array of shape (n_documents,)
            Labels from `classes_`.
        """
        check_is_fitted(self)
        return self._lazily("predict", X, None, self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class, lazily.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Documents, as :meth:`fit` takes them.

        Returns
        -------
        probabilities : dask Array of shape (n_documents, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        check_is_fitted(self)
        return self._lazily("predict_proba", X, len(self.classes_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of predictions, computed.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Documents, as :meth:`fit` takes them.
        y : dask Array, Series or Bag
            Their labels.
        sample_weight : dask Array, Series or Bag, default=None
            Non-negative weights.

        Returns
        -------
        accuracy : float
            The share of the documents, by weight, whose label is predicted.
        """
        with self._client().as_current():
            predicted, labels = self.predict(X).compute(), y.compute()
            weights = None if sample_weight is None else sample_weight.compute()
        return float(accuracy_score(labels, predicted, sample_weight=weights))

    def to_local(self) -> Any:
        """Return the fitted estimator for one machine, which knows nothing of Dask.

        Returns
        -------
        model : ClsAttentionClassifier or Pipeline
            The classifier, after the vectorizer if there is one.
        """
        check_is_fitted(self)
        classifier = copy.copy(self.classifier_)
        return classifier if self.vectorizer is None else make_pipeline(self.vectorizer, classifier)

    def _lazily(self, method: str, X: Any, n_columns: int | None, dtype: Any = np.float64) -> Any:
        return predictions(self.to_local(), method, X, n_columns, dtype)

    def _client(self) -> Client:
        """Return the client, which waits for results."""
        try:
            client = self.client or get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client: make one (distributed.Client()), or pass client=..."
            ) from error
        if client.asynchronous:
            raise ValueError("The client is asynchronous: pass one that is not, which waits.")
        return client

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the classifier."""
        if name.endswith("_") and not name.startswith("_") and "classifier_" in vars(self):
            return getattr(self.classifier_, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        """Show what was changed: scikit-learn takes all of `params` for that."""
        usual = type(self)().get_params(deep=False)
        shown = {name: repr(value) for name, value in self.get_params(deep=False).items()}
        changed = (f"{name}={own}" for name, own in shown.items() if own != repr(usual[name]))
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "client": None}  # a connection stays where it is

    def __sklearn_is_fitted__(self) -> bool:
        return "classifier_" in vars(self)

    def __sklearn_clone__(self) -> Self:
        parameters = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)
