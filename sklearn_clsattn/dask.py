"""Fits on the workers of a Dask cluster, by Dask's own tasks."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection
from distributed import Client, Future, get_client
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from ._base import fit_corpus
from ._classifier import ClsAttentionClassifier
from ._core.backend import ThreadShare
from ._core.chunk import Chunk
from ._core.corpus import Corpus, added
from ._pickling import SavedMixin
from ._training import Summary, all_or_nothing, joined, summary_of
from ._validation import checked_part

__all__ = ["DaskClsAttentionClassifier"]

# With fewer entries a worker for each trained number, work that is not shared dominates.
ENTRIES_PER_NUMBER = 50


class DaskCorpus(Corpus):
    """Chunks on the workers of a cluster, which Dask computes again where a worker is lost."""

    def __init__(self, client: Client, futures: list[Future]) -> None:
        self._client, self._futures = client, futures

    def map(self, function: Callable[..., Chunk], *arguments: Any) -> DaskCorpus:
        """Return the corpus of what a function of a chunk returns, which stays on its worker."""
        return DaskCorpus(self._client, self._tasks(function, arguments))

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of what a function of a chunk returns, added up as a tree."""
        terms = self._tasks(function, arguments)
        while len(terms) > 1:
            sums = self._client.map(added, terms[:-1:2], terms[1::2], pure=False)
            terms = sums + terms[len(terms) // 2 * 2 :]
        return terms[0].result()

    def gather(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function of a chunk returns, in the order of the chunks."""
        results: list[Any] = self._client.gather(self._tasks(function, arguments))
        return results

    def _tasks(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Future]:
        # The scheduler keeps the arguments, once for all chunks: no worker has the only copy.
        shared = self._client.submit(tuple, arguments, pure=False)
        n = len(self._futures)
        return self._client.map(_call, [function] * n, self._futures, [shared] * n, pure=False)


def _call(function: Callable[..., Any], chunk: Any, arguments: tuple[Any, ...]) -> Any:
    """Return what a function returns for a chunk, computed on this worker's share of threads."""
    with ThreadShare():
        return function(chunk, *arguments)


class DaskClsAttentionClassifier(SavedMixin, ClassifierMixin, BaseEstimator):
    """:class:`~sklearn_clsattn.ClsAttentionClassifier` on the workers of a Dask cluster.

    The same model as on one machine, by tasks of Dask: documents stay on their workers, which
    return sums over them. The chunks of a worker that is lost are computed again on others, and the
    fit goes on.

    Parameters
    ----------
    vectorizer : transformer or None, default=None
        Makes counts of texts: one that needs no fit, such as
        :class:`~sklearn.feature_extraction.text.HashingVectorizer` with ``alternate_sign=False``,
        or one that is fitted. None for X of counts.
    client : distributed.Client or None, default=None
        The cluster. None takes the current client.
    **params : dict
        Parameters of :class:`~sklearn_clsattn.ClsAttentionClassifier`.

    Attributes
    ----------
    classifier_ : ClsAttentionClassifier
        The fitted classifier. All its fitted attributes are found here too, by their names.

    Notes
    -----
    An evaluation of the loss is one round of tasks, which takes some 30 ms beside its sums for
    50,000 tokens and two classes, and a fit some 10 to 40 of them: it pays where the sums of one
    machine take a second or more.

    A saved or pickled model needs no cluster; :meth:`to_local` returns one that needs no Dask.

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
    }

    def __init__(
        self, *, vectorizer: Any = None, client: Client | None = None, **params: Any
    ) -> None:
        self.vectorizer = vectorizer
        self.client = client
        defaults = ClsAttentionClassifier().get_params()
        if unknown := params.keys() - defaults:
            raise TypeError(
                f"DaskClsAttentionClassifier has no parameter {', '.join(sorted(unknown))}: beside "
                "vectorizer and client it has those of ClsAttentionClassifier."
            )
        self.__dict__.update(defaults | params)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*super()._get_param_names(), *ClsAttentionClassifier().get_params()])

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
        """
        client = self._client()
        if getattr(X, "ndim", 1) == 1 and self.vectorizer is not None:
            try:
                self.vectorizer.transform([""])
            except NotFittedError as error:
                raise ValueError(
                    f"vectorizer={self.vectorizer!r} is not fitted: fit it on a sample of the "
                    "texts, or pass one that needs no fit, as HashingVectorizer("
                    "alternate_sign=False). (clone() forgets what a vectorizer learned, unless it "
                    "is in scikit-learn's FrozenEstimator.)"
                ) from error
        parameters = {name: getattr(self, name) for name in ClsAttentionClassifier().get_params()}
        model = ClsAttentionClassifier(**parameters)
        if self.warm_start and hasattr(self, "classifier_"):
            model = copy.copy(self.classifier_).set_params(**parameters)
        with client.as_current():
            futures = client.compute(_chunks(X, y, sample_weight, self.vectorizer))
            summaries = DaskCorpus(client, futures).gather(_summary)
            filled = [number for number, one in enumerate(summaries) if one.shape[0]]
            if not filled:
                raise ValueError("X has no documents: expected some of two classes.")
            chunks = client.map(_numbered, [futures[i] for i in filled], range(len(filled)))
            summary = joined([summaries[number] for number in filled])
            _warn_of_workers(summary, len(client.nthreads()))
            fit_corpus(model, DaskCorpus(client, chunks), summary)
        self.classifier_ = model
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
        """Return what a method of the local model returns for all documents, as a lazy Array."""
        blocks = _partitions(X, "X")
        lengths = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(blocks)
        columns = () if n_columns is None else (n_columns,)
        empty = np.empty((0, *columns), dtype)
        model: Any = delayed(self.to_local(), traverse=False)
        predict: Any = delayed(_predicted, pure=False)
        return da.concatenate(
            [
                da.from_delayed(
                    predict(model, method, block, empty), shape=(length, *columns), meta=empty
                )
                for block, length in zip(blocks, lengths, strict=True)
            ],
            allow_unknown_chunksizes=True,
        )

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


def _warn_of_workers(summary: Summary, n_workers: int) -> None:
    """Warn where each of several workers has too few entries for the numbers that are trained."""
    n_classes = len(summary.labels)
    n_numbers = summary.shape[1] * (2 if n_classes == 2 else 1 + n_classes)
    share = summary.n_entries / max(n_workers * n_numbers, 1)
    if n_workers > 1 and share < ENTRIES_PER_NUMBER:
        warnings.warn(
            f"{n_workers} workers have {share:.3g} entries of X each for every trained number: "
            f"below about {ENTRIES_PER_NUMBER} one machine is as fast (ClsAttentionClassifier).",
            UserWarning,
            stacklevel=5,
        )


def _chunks(X: Any, y: Any, sample_weight: Any, vectorizer: Any) -> list[Any]:
    """Return the partitions of X, y and weights as delayed chunks with their tokens' names."""
    if vectorizer is None and getattr(X, "ndim", 1) == 1 and is_dask_collection(X):
        raise ValueError(
            "X is a collection of one column, as of texts, which need a vectorizer: pass "
            "vectorizer=HashingVectorizer(alternate_sign=False), or one that is fitted."
        )
    parts = _partitions(X, "X")
    columns = [parts]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is None:
            columns.append([None] * len(parts))
            continue
        beside = _partitions(_chunked_like(X, values, name), name)
        if len(beside) != len(parts):
            raise ValueError(
                f"X has {len(parts)} partitions and {name} has {len(beside)}: repartition them "
                "alike."
            )
        columns.append(beside)
    shared = None if vectorizer is None else delayed(vectorizer, traverse=False)
    make: Any = delayed(_chunk, pure=False)
    rows = enumerate(zip(*columns, strict=True))
    return [make(number, *together, shared) for number, together in rows]


def _partitions(collection: Any, name: str) -> list[Any]:
    """Return the delayed partitions of a Dask Array, DataFrame, Series or Bag."""
    if not (is_dask_collection(collection) and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name} has to be a Dask Array, DataFrame, Series or Bag, got "
            f"{type(collection).__name__}: make one of it, as by dask.array.from_array, or use "
            "ClsAttentionClassifier, which takes what is in memory."
        )
    if isinstance(collection, da.Array) and collection.numblocks[1:] not in ((), (1,)):
        raise ValueError(
            f"{name} is divided into {collection.numblocks[1]} blocks of columns: every block has "
            f"to hold whole documents, as after {name}.rechunk({{1: -1}})."
        )
    blocks = collection.to_delayed()
    return blocks.ravel().tolist() if isinstance(blocks, np.ndarray) else list(blocks)


def _chunked_like(X: Any, values: Any, name: str) -> Any:
    """Return an Array in the chunks of the rows of X, where both are known; anything else as is."""
    if not (isinstance(X, da.Array) and isinstance(values, da.Array)):
        return values
    if values.ndim != 1:
        raise ValueError(f"{name} has to have one dimension, got {values.ndim}.")
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):
        return values
    if X.shape[0] != values.shape[0]:
        raise ValueError(f"X has {X.shape[0]} documents and {name} has {values.shape[0]}.")
    return values.rechunk((X.chunks[0],))


def _chunk(number: int, X: Any, y: Any, weights: Any, vectorizer: Any) -> tuple[Chunk, Any]:
    """Return a partition as a chunk, and its tokens' names, or raise what names the partition."""
    try:
        if vectorizer is not None:
            texts = _listed(X)
            X = vectorizer.transform(texts) if len(texts) else vectorizer.transform([""])[:0]
        y, weights = (None if a is None else np.asarray(_listed(a)) for a in (y, weights))
        checked, y, weights, names = checked_part(X, y, weights, "DaskClsAttentionClassifier")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Partition {number} of X (from 0): {error}") from error
    labels, codes = np.unique(y, return_inverse=True)
    return Chunk(checked, codes, weights, labels=labels), names


def _summary(made: tuple[Chunk, Any]) -> Summary:
    """Return the summary of a partition's chunk."""
    chunk, names = made
    assert chunk.labels is not None
    return summary_of(chunk.X, chunk.labels, names)


def _numbered(made: tuple[Chunk, Any], number: int) -> Chunk:
    """Return a partition's chunk with its number among those that have documents."""
    return replace(made[0], number=number)


def _listed(values: Any) -> Any:
    """Return a Bag's partition, which may be an iterator, as a list; anything else as it is."""
    return values if hasattr(values, "__len__") else list(values)


def _predicted(model: Any, method: str, X: Any, empty: Any) -> Any:
    """Return what a method of the model says of a partition; `empty` where it has no documents."""
    X = _listed(X)
    n_documents = X.shape[0] if hasattr(X, "shape") else len(X)
    return getattr(model, method)(X) if n_documents else empty
