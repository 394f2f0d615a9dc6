"""Fits on the workers of a Dask cluster, as Dask tasks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Self

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed
from dask.base import is_dask_collection
from distributed import Client, Future, get_client
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from ._classifier import ClsAttentionClassifier
from ._core.chunk import Chunk
from ._core.corpus import Corpus, added
from ._core.threads import ThreadLimit
from ._training import Summary, all_or_nothing, joined, summary_of
from ._validation import checked_part

__all__ = ["DaskClsAttentionClassifier"]


class DaskCorpus(Corpus):
    """Chunks on the workers of a cluster; Dask recomputes the chunks of a lost worker."""

    def __init__(self, client: Client, futures: list[Future]) -> None:
        self._client = client
        self._futures = futures

    def map(self, function: Callable[..., Any], *arguments: Any) -> DaskCorpus:
        """Apply a function to each chunk; the results stay on their workers as a new corpus."""
        return DaskCorpus(self._client, self._tasks(function, arguments))

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Apply a function to each chunk and return the sum, computed as a tree."""
        terms = self._tasks(function, arguments)
        while len(terms) > 1:
            sums = self._client.map(added, terms[:-1:2], terms[1::2], pure=False)
            without_partner = terms[len(terms) // 2 * 2 :]
            terms = sums + without_partner
        return terms[0].result()

    def gather(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Apply a function to each chunk and return the results in the order of the chunks."""
        return list(self._client.gather(self._tasks(function, arguments)))

    def _tasks(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Future]:
        """Submit a task for each chunk, which applies a function to it."""
        # The scheduler keeps one copy of the arguments, so a lost worker cannot lose them.
        shared = self._client.submit(tuple, arguments, pure=False)
        n = len(self._futures)
        return self._client.map(_call, [function] * n, self._futures, [shared] * n, pure=False)


def _call(function: Callable[..., Any], chunk: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply a function to a chunk, with this worker's share of threads."""
    with ThreadLimit():
        return function(chunk, *arguments)


def _lazy(name: str) -> Callable[[Any, Any], Any]:
    """Return a method of the local estimator that is lazy for Dask collections."""
    of_matrix = getattr(ClsAttentionClassifier, name)

    @wraps(of_matrix)
    def method(self: Any, X: Any) -> Any:
        model = self.to_local()
        if not is_dask_collection(X):
            return getattr(model, name)(X)
        # 1) the result for no documents, which has the type and the columns of all others
        classifier = copy.copy(model if self.vectorizer is None else model[-1])
        classifier.__dict__.pop("feature_names_in_", None)  # of which a matrix has none
        one_document = sp.csr_array((1, self.n_features_in_))
        empty = of_matrix(classifier, one_document)[:0]
        # 2) a task for each partition
        blocks = _partitions(X, "X")
        lengths = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(blocks)
        predict: Any = delayed(_predicted, pure=False)
        model = delayed(model, traverse=False)
        arrays = []
        for block, length in zip(blocks, lengths, strict=True):
            predicted = predict(model, name, block, empty)
            shape = (length, *empty.shape[1:])
            arrays.append(da.from_delayed(predicted, shape, meta=empty))
        return da.concatenate(arrays, allow_unknown_chunksizes=True)

    return method


class DaskClsAttentionClassifier(ClsAttentionClassifier):
    """:class:`~sklearn_clsattn.ClsAttentionClassifier` on the workers of a Dask cluster.

    The model is the same as on one machine: documents stay on their workers, which return sums over
    them. If a worker is lost, its chunks are recomputed on others and the fit continues.
    Predictions for Dask collections are lazy Arrays.

    Parameters
    ----------
    vectorizer : transformer or None, default=None
        Turns texts into counts. It needs no fit, such as
        :class:`~sklearn.feature_extraction.text.HashingVectorizer` with ``alternate_sign=False``,
        or is fitted; inside a :class:`~sklearn.frozen.FrozenEstimator` it stays fitted in clones.
        None if X contains counts.
    client : distributed.Client or None, default=None
        The cluster. By default the current client.
    **params : dict
        Parameters of :class:`~sklearn_clsattn.ClsAttentionClassifier`.

    Notes
    -----
    Fitted attributes are those of :class:`~sklearn_clsattn.ClsAttentionClassifier`. A fit evaluates
    the loss some 10 to 40 times, and each evaluation is a round of tasks with some overhead. So a
    cluster is faster only if an evaluation takes a second or more on one machine. If each worker
    has fewer than 50 entries of X per trained number, one machine is as fast.

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

    _parameter_constraints = {
        **ClsAttentionClassifier._parameter_constraints,
        "vectorizer": "no_validation",
        "client": [Client, None],
    }

    def __init__(
        self, *, vectorizer: Any = None, client: Client | None = None, **params: Any
    ) -> None:
        super().__init__(**params)
        self.vectorizer = vectorizer
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(["client", "vectorizer", *ClsAttentionClassifier._get_param_names()])

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        token_vectors: Any = None,
        classes: Any = None,
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Counts: an Array of dense or CSR blocks, (n_documents, n_tokens), or a DataFrame. With a
            `vectorizer`, its input: a Bag or a Series of texts. Sizes of chunks may be unknown.
        y : dask Array, Series, DataFrame or Bag
            Class labels, in partitions of the same sizes as those of X; or several columns, of
            several labels, or of probabilities if there are `classes`.
        sample_weight : dask Array, Series or Bag, default=None
            Non-negative document weights, in the same partitions.
        token_vectors : array-like of shape (n_tokens, d), default=None
            As in :meth:`~sklearn_clsattn.ClsAttentionClassifier.fit`, in memory.
        classes : array-like of shape (n_classes,), default=None
            Names of the classes in the order of the columns of y, if these are probabilities.

        Returns
        -------
        self : estimator
            The fitted classifier.
        """
        # 1) partitions of X, y and weights, whose documents are the same
        columns = [_partitions(X, "X"), _partitions(y, "y", X)]
        if sample_weight is None:
            columns.append([None] * len(columns[0]))
        else:
            columns.append(_partitions(sample_weight, "sample_weight", X))
        lengths = list(map(len, columns))
        if len(set(lengths)) > 1:
            sizes = ", ".join(map(str, lengths))
            raise ValueError(
                f"X, y and sample_weight have different numbers of partitions, {sizes}: "
                "repartition them in the same way."
            )
        make: Any = delayed(_chunk, pure=False, nout=2)
        vectorizer = None if self.vectorizer is None else delayed(self.vectorizer, traverse=False)
        client = self.client or get_client()
        with client.as_current():
            # 2) chunks and summaries, which stay on the workers
            pairs = []
            for number, partition in enumerate(zip(*columns, strict=True)):
                pairs.extend(make(number, partition, vectorizer, classes))
            futures = client.compute(pairs)
            made_chunks = futures[::2]
            summaries: list[Summary] = client.gather(futures[1::2])
            # 3) those with documents, numbered anew
            filled = [number for number, summary in enumerate(summaries) if summary.shape[0]]
            if not filled:
                raise ValueError("X has no documents: expected documents of two classes.")
            filled_chunks = [made_chunks[number] for number in filled]
            chunks = client.map(_numbered, filled_chunks, range(len(filled)))
            summary = joined([summaries[number] for number in filled])
            # 4) the fit
            options = self._vector_options(token_vectors)
            self._fit_corpus(DaskCorpus(client, chunks), summary, **options)
        return self

    predict: Any = _lazy("predict")
    predict_proba: Any = _lazy("predict_proba")
    predict_log_proba: Any = _lazy("predict_log_proba")
    decision_function: Any = _lazy("decision_function")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        X, y, sample_weight : dask Array, DataFrame, Series or Bag
            As in :meth:`fit`.

        Returns
        -------
        accuracy : float
            The share of documents, by weight, whose label is predicted correctly.
        """
        with (self.client or get_client()).as_current():
            predicted = self.predict(X).compute()
            labels = y.compute()
            weights = None if sample_weight is None else sample_weight.compute()
        return float(accuracy_score(labels, predicted, sample_weight=weights))

    def to_local(self) -> Any:
        """Return the fitted estimator for one machine, without Dask.

        Returns
        -------
        model : ClsAttentionClassifier or Pipeline
            The classifier, after the vectorizer if there is one.
        """
        check_is_fitted(self)
        attributes = vars(self).copy()
        del attributes["vectorizer"]
        del attributes["client"]
        model = ClsAttentionClassifier()
        model.__dict__ = attributes
        return model if self.vectorizer is None else make_pipeline(self.vectorizer, model)

    def __repr__(self) -> str:
        usual = type(self)().get_params()  # scikit-learn does not know the defaults of `params`
        changed = []
        for name, value in self.get_params(deep=False).items():
            if repr(value) != repr(usual[name]):
                changed.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "client": None}  # a connection stays where it is

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        for name, value in parameters.items():
            parameters[name] = clone(value, safe=False)
        return type(self)(client=client, **parameters)  # of a client there are no copies


def _partitions(collection: Any, name: str, like: Any = None) -> list[Any]:
    """Return a collection's delayed partitions; an Array as long as `like` gets its chunks."""
    if not (is_dask_collection(collection) and hasattr(collection, "to_delayed")):
        raise TypeError(
            f"{name} must be a Dask Array, DataFrame, Series or Bag, got "
            f"{type(collection).__name__}: convert it, for example with dask.array.from_array, or "
            "use ClsAttentionClassifier for data in memory."
        )
    if not isinstance(collection, da.Array):
        return list(collection.to_delayed())
    # Blocks of whole documents, the same as those of `like`.
    if isinstance(like, da.Array) and like.shape[0] == collection.shape[0]:
        collection = collection.rechunk({0: like.chunks[0]})
    if collection.numblocks[1:] not in ((), (1,)):
        raise ValueError(
            f"{name} has {collection.numblocks[1]} blocks of columns, but each block must contain "
            f"whole documents: use {name}.rechunk({{1: -1}})."
        )
    return list(collection.to_delayed().ravel())


def _chunk(
    number: int, columns: tuple[Any, Any, Any], vectorizer: Any, classes: Any
) -> tuple[Chunk, Summary]:
    """Return a partition of X, y and weights as a chunk and its summary; errors name it."""
    try:
        X, y, weights = map(_with_length, columns)
        if vectorizer is not None:  # some vectorizers fail without texts
            X = vectorizer.transform(X) if len(X) else vectorizer.transform([""])[:0]
        y = y if hasattr(y, "columns") else np.asarray(y)
        weights = None if weights is None else np.asarray(weights)
        X, targets, weights, names = checked_part(
            X, y, weights, "DaskClsAttentionClassifier", classes
        )
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Partition {number} of X (from 0): {error}") from error
    return Chunk(X, targets, weights), summary_of(X, targets, names)


def _with_length(column: Any) -> Any:
    """Return a partition's column, an iterator as a list; None stays None."""
    return column if column is None or hasattr(column, "__len__") else list(column)


def _numbered(chunk: Chunk, number: int) -> Chunk:
    """Return a chunk with its number among the non-empty chunks."""
    return replace(chunk, number=number)


def _predicted(model: Any, method: str, X: Any, empty: Any) -> Any:
    """Call a method of the model on a partition; return `empty` if it has no documents."""
    if not hasattr(X, "shape"):
        X = list(X)
    n_documents = len(X) if isinstance(X, list) else X.shape[0]
    if not n_documents:
        return empty
    return getattr(model, method)(X)
