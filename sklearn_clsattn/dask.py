"""Fits on the workers of a Dask cluster, as Dask tasks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from operator import attrgetter
from typing import Any, NamedTuple, Self

import dask.array as da
import numpy as np
import scipy.sparse as sp
import torch
from dask import delayed
from dask.base import is_dask_collection
from distributed import Client, Future, get_client
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from ._bags import Bags
from ._classifier import ClsAttentionClassifier, checked_vectors
from ._estimators import all_or_nothing, fit_task
from ._matrices import document_frequencies
from ._targets import Targets
from ._threads import thread_pool
from ._types import Array, Numbers
from ._validation import as_probabilities, checked_part
from .training.documents import Documents
from .training.folds import group_duplicates, projections, sampled_rows
from .training.leave_one_out import Evidence, left_out
from .training.loss import AttentionLoss
from .training.products import torch_dtype
from .training.statistics import CorpusStatistics, Scaling

__all__ = ["DaskClsAttentionClassifier"]


@dataclass(eq=False)
class Parts:
    """Values on the workers of a cluster, one for each part of the documents.

    Dask computes those of a lost worker again. Functions get a value and the same `arguments`, and
    perhaps one of `each`, which has an argument per part.
    """

    client: Client
    futures: list[Future]

    def map(self, function: Callable[..., Any], *arguments: Any, each: Iterable[Any] = ()) -> Parts:
        """Return a function's results, which stay on the workers."""
        return Parts(self.client, self._tasks(function, arguments, each))

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of a function's results, added up as a tree."""
        terms = self._tasks(function, arguments)
        while len(terms) > 1:
            sums = self.client.map(_added, terms[:-1:2], terms[1::2], pure=False)
            without_partner = terms[len(terms) // 2 * 2 :]
            terms = sums + without_partner
        return terms[0].result()

    def gather(
        self, function: Callable[..., Any], *arguments: Any, each: Iterable[Any] = ()
    ) -> list[Any]:
        """Return a function's results in the order of the parts."""
        return list(self.client.gather(self._tasks(function, arguments, each)))

    def _tasks(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], each: Iterable[Any] = ()
    ) -> list[Future]:
        """Submit a task for each part."""
        # The scheduler keeps one copy of the arguments, so a lost worker cannot lose them.
        shared = self.client.submit(tuple, arguments, pure=False)
        n = len(self.futures)
        own: list[Any] = [(argument,) for argument in each]
        own = own or [()] * n
        columns = [function] * n, self.futures, [shared] * n, own
        return list(self.client.map(_call, *columns, pure=False))


def _call(function: Callable[..., Any], value: Any, shared: tuple[Any], own: tuple[Any]) -> Any:
    """Call a function on a worker."""
    with thread_pool():
        return function(value, *shared, *own)


def _added(one: Any, other: Any) -> Any:
    """Return the sum of two results: numbers, arrays, or tuples of these, in double precision."""
    if isinstance(one, tuple):
        return tuple(map(_added, one, other))
    if isinstance(one, torch.Tensor):
        return one.to(torch.float64) + other
    return one + other


@dataclass(eq=False)
class DaskDocuments:
    """The documents of a fit on a cluster, with the methods of `Documents` that a fit calls.

    parts : :class:`~.documents.Documents` on the workers
    targets : of no documents: the classes of all parts
    shape : numbers of documents and of tokens
    entry_type, largest_entry : of the entries
    """

    parts: Parts
    targets: Targets
    shape: tuple[int, int]
    entry_type: np.dtype[Any]
    largest_entry: float
    entry_scale: float | None = None
    is_damped = False
    trust = None  # people trust words, and these are counts

    def class_sizes(self) -> Array:
        """Return the weights of the classes, (n_classes,)."""
        return np.asarray(self.parts.sum(Documents.class_sizes))

    def entry_sums(self) -> Array:
        """Return the weighted sums of the entries and of their numbers, (2,)."""
        return np.asarray(self.parts.sum(Documents.entry_sums))

    def with_class_factors(self, factors: Array) -> DaskDocuments:
        """Return documents whose weights are multiplied by factors of classes, (n_classes,)."""
        parts = self.parts.map(Documents.with_class_factors, factors)
        return replace(self, parts=parts)

    def damped(self, scale: float, dtype: type[np.floating[Any]]) -> DaskDocuments:
        """Return documents with damped entries, whose unit is `scale`, in a precision."""
        parts = self.parts.map(Documents.damped, scale, dtype)
        return replace(self, parts=parts, entry_scale=scale)

    @cached_property
    def statistics(self) -> CorpusStatistics:
        """Sums over the documents."""
        statistics: CorpusStatistics = self.parts.sum(attrgetter("statistics"))
        return statistics

    @cached_property
    def _in_memory(self) -> tuple[Numbers, Targets, Array, Numbers]:
        """Numbers of the bags, the same for copies, targets and weights, of all documents.

        Also the numbers of the parts' first documents, but for that of the first part.
        """
        fingerprints = self.parts.gather(_fingerprints)
        first, second, values, weights = zip(*fingerprints, strict=True)
        groups = group_duplicates(np.concatenate(first), np.concatenate(second))
        targets = replace(self.targets, values=np.concatenate(values))
        bounds = np.cumsum(list(map(len, weights)))[:-1]
        return groups, targets, np.concatenate(weights), bounds

    def attention_loss(
        self, dtype: type[np.floating[Any]], device: torch.device | str, cls_weight: float = 0.0
    ) -> DaskLoss:
        """Return the sum of the documents' losses, in a precision and on a device."""
        losses = self.parts.map(Documents.attention_loss, dtype, device, cls_weight)
        return DaskLoss(
            losses,
            dtype=torch_dtype(dtype),
            device=torch.device(device),
            cls_weight=cls_weight,
            total_weight=self.statistics.total_weight,
        )

    def evidence(self, loss: DaskLoss, scaling: Scaling) -> DaskEvidence:
        """Return the naive Bayes evidence for each document, without it and its copies."""
        # 1) copies in any parts
        groups, targets, weights, starts = self._in_memory
        group_sizes = np.bincount(groups)
        has_copies = group_sizes[groups] > 1
        of_copies = left_out(targets[has_copies], weights[has_copies], groups[has_copies])
        # 2) those of each part
        copied = np.flatnonzero(has_copies)
        bounds = np.searchsorted(copied, starts)
        rows = [np.flatnonzero(of_part) for of_part in np.split(has_copies, starts)]
        left_out_of_parts = [np.split(array, bounds) for array in of_copies]
        # 3) the evidence
        each = zip(loss.parts.futures, rows, *left_out_of_parts, strict=True)
        parts = self.parts.map(_evidence, scaling, each=each)
        return DaskEvidence(parts, loss)

    def sample(self) -> tuple[int, Documents]:
        """Return the number of different documents, and some documents with all their copies."""
        # 1) the rows among all documents
        groups, targets, weights, starts = self._in_memory
        n_different, rows = sampled_rows(groups, targets, weights)
        # 2) those of each part, numbered within it
        rows_of_parts = np.split(rows, np.searchsorted(rows, starts))
        firsts = np.append(0, starts)
        of_parts = [part - first for part, first in zip(rows_of_parts, firsts, strict=True)]
        # 3) their documents, which come here
        matrices = self.parts.gather(_units, each=of_parts)
        units = sp.vstack(matrices, format="csr")
        sample = Documents(Bags(units), targets[rows], weights[rows], self.entry_scale)
        return n_different, sample

    def without_unseen_tokens(self) -> tuple[DaskDocuments, Numbers]:
        """Return documents with only their own tokens, and these tokens."""
        is_used = self.parts.sum(_token_frequencies) > 0
        is_used[:1] |= not is_used.any()  # at least one
        tokens = np.flatnonzero(is_used)
        parts = self.parts.map(_of_tokens, tokens)
        shape = self.shape[0], len(tokens)
        return replace(self, parts=parts, shape=shape), tokens

    def count_selected(self, scores: Array) -> Numbers:
        """Return the number of documents of positive weight that select each token, (n_tokens,)."""
        return np.asarray(self.parts.sum(Documents.count_selected, scores))


@dataclass(eq=False)
class DaskLoss:
    """The sum of the losses of all parts, with what objectives need of :class:`AttentionLoss`.

    `parts` has those of the parts on the workers.
    """

    parts: Parts
    dtype: torch.dtype
    device: torch.device
    cls_weight: float
    total_weight: float

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the documents' losses and its gradient by the token matrix."""
        value, gradient = self.parts.sum(AttentionLoss.__call__, matrix)
        return value, gradient.to(self.dtype)

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the diagonal of the Hessian, (n_tokens + 1, n_outputs)."""
        curvature: torch.Tensor = self.parts.sum(AttentionLoss.curvature, matrix)
        return curvature.to(self.dtype)


@dataclass(eq=False)
class DaskEvidence:
    """The naive Bayes evidence for all documents, whose parts are on the workers."""

    parts: Parts
    loss: DaskLoss

    def sums(self, x: Array) -> tuple[float, Array, Array]:
        """Return the loss of multiples of the evidence plus intercepts, and its derivatives."""
        sums: tuple[float, Array, Array] = self.parts.sum(Evidence.sums, x)
        return sums

    def loss_with(self, multiples: Array) -> DaskLoss:
        """Return the loss with multiples of the evidence in it."""
        return replace(self.loss, parts=self.parts.map(Evidence.loss_with, multiples))


# What workers compute of the documents of a part.


def _fingerprints(documents: Documents) -> tuple[Array, Array, NDArray[Any], Array]:
    """Return two numbers that copies share, targets and weights of documents."""
    return *projections(documents.bags), documents.targets.values, documents.weights


def _units(documents: Documents, rows: Numbers) -> Any:
    """Return the CSR matrix of some documents."""
    return documents.bags.units[rows]


def _token_frequencies(documents: Documents) -> Numbers:
    """Return the number of documents that have each token, (n_tokens,)."""
    return document_frequencies(documents.bags.units)


def _of_tokens(documents: Documents, tokens: Numbers) -> Documents:
    """Return documents with some of the tokens."""
    return replace(documents, bags=documents.bags.columns(tokens))


def _evidence(
    documents: Documents, scaling: Scaling, own: tuple[AttentionLoss, Numbers, Array, Array]
) -> Evidence:
    """Return the naive Bayes evidence for documents.

    `own` are their loss, the rows of those with copies in any part, and what is left out with each
    of these (:func:`~.training.leave_one_out.left_out`).
    """
    loss, copied, by_class_of_copies, weights_of_copies = own
    by_class = documents.targets.shares() * documents.weights[:, None]
    weights = documents.weights.copy()
    by_class[copied] = by_class_of_copies
    weights[copied] = weights_of_copies
    return Evidence(loss, documents.bags, by_class, weights, scaling)


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

    The model is the same as on one machine, but for near-copies, which are evidence for each other
    here. Documents stay on their workers, which return sums over them. If a worker is lost, its
    chunks are recomputed on others and the fit continues. Predictions for Dask collections are lazy
    Arrays.

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
    def fit(self, X: Any, y: Any, sample_weight: Any = None, token_vectors: Any = None) -> Self:  # type: ignore[override]
        """Fit the classifier.

        Parameters
        ----------
        X : dask Array, DataFrame, Series or Bag
            Counts: an Array of dense or CSR blocks, (n_documents, n_tokens), or a DataFrame. With a
            `vectorizer`, its input: a Bag or a Series of texts. Sizes of chunks may be unknown.
        y : dask Array, Series, DataFrame or Bag
            Class labels, in partitions of the same sizes as those of X; or several columns, of
            several labels or of probabilities, which those of a DataFrame name.
        sample_weight : dask Array, Series or Bag, default=None
            Non-negative document weights, in the same partitions.
        token_vectors : array-like of shape (n_tokens, d), default=None
            As in :meth:`~sklearn_clsattn.ClsAttentionClassifier.fit`, in memory.

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
        make: Any = delayed(_documents, pure=False, nout=2)
        vectorizer = None if self.vectorizer is None else delayed(self.vectorizer, traverse=False)
        client = self.client or get_client()
        with client.as_current(), thread_pool(), fit_task(self, max_iter=self.max_iter) as task:
            # 2) documents, which stay on the workers, and what is known of them
            pairs = []
            for number, partition in enumerate(zip(*columns, strict=True)):
                pairs.extend(make(number, partition, vectorizer))
            futures = client.compute(pairs)
            summaries: list[_Summary] = client.gather(futures[1::2])
            parts = []
            filled = []
            for part, summary in zip(futures[::2], summaries, strict=True):
                if summary.shape[0]:
                    parts.append(part)
                    filled.append(summary)
            documents: Any = _joined(Parts(client, parts), filled)
            # 3) the tokens' number and names
            self.n_features_in_ = documents.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if filled[0].names is not None:
                self.feature_names_in_ = np.array(filled[0].names, dtype=object)
            # 4) the fit
            vectors = None if token_vectors is None else checked_vectors(token_vectors)
            self._fit_documents(documents, torch.device("cpu"), task, vectors=vectors)
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
        client = self.client or get_client()
        with client.as_current():
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


class _Summary(NamedTuple):
    """What is known of the documents of a partition.

    shape : numbers of documents and of tokens
    names : of the tokens, if they have any
    targets : of no documents: their classes and kind
    entry_type, largest_entry : of the entries
    """

    shape: tuple[int, int]
    names: list[str] | None
    targets: Targets
    entry_type: np.dtype[Any]
    largest_entry: float


def _documents(
    number: int, columns: tuple[Any, Any, Any], vectorizer: Any
) -> tuple[Documents, _Summary]:
    """Return a partition of X, y and weights as documents and their summary; errors name it."""
    try:
        X, y, weights = map(_with_length, columns)
        if vectorizer is not None:  # some vectorizers fail without texts
            X = vectorizer.transform(X) if len(X) else vectorizer.transform([""])[:0]
        y = y if hasattr(y, "columns") else np.asarray(y)
        weights = None if weights is None else np.asarray(weights)
        bags, targets, weights, names = checked_part(X, y, weights, "DaskClsAttentionClassifier")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Partition {number} of X (from 0): {error}") from error
    summary = _Summary(bags.shape, names, targets[:0], bags.dtype, bags.largest_entry)
    return Documents(bags, targets, weights), summary


def _joined(parts: Parts, summaries: list[_Summary]) -> DaskDocuments:
    """Return the documents of all parts; raise ValueError if these do not match."""
    # 1) the tokens, which must be the same
    first = summaries[0]
    for other in summaries:
        if (other.shape[1], other.names) != (first.shape[1], first.names):
            raise ValueError(
                f"Got documents with {other.shape[1]:,} tokens after documents with "
                f"{first.shape[1]:,}: expected the same tokens, with the same names, in all parts."
            )
    # 2) the classes of all
    targets = [summary.targets for summary in summaries]
    kinds = {one.kind for one in targets}
    if kinds == {"probabilities", "several labels"}:  # of 0 and 1 by chance
        parts = parts.map(_with_probabilities)
        targets = list(map(as_probabilities, targets))
    elif len(kinds) > 1:
        raise ValueError(f"Expected one kind of y in all documents, got {' and '.join(kinds)}.")
    names = [one.classes for one in targets]
    if not targets[0].has_codes and len({tuple(some.tolist()) for some in names}) > 1:
        raise ValueError("Expected the same columns of y, in the same order, in all parts.")
    classes = targets[0].classes
    if targets[0].has_codes:
        every_name = np.concatenate([some.astype(object) for some in names])
        classes = np.unique(every_name).astype(np.result_type(*names))
    # 3) documents whose targets are among these
    n_documents = sum(summary.shape[0] for summary in summaries)
    return DaskDocuments(
        parts.map(_with_classes, classes),
        Targets(classes, targets[0].values, targets[0].multilabel),
        shape=(n_documents, first.shape[1]),
        entry_type=np.result_type(*[summary.entry_type for summary in summaries]),
        largest_entry=max(summary.largest_entry for summary in summaries),
    )


def _with_probabilities(documents: Documents) -> Documents:
    """Return documents whose targets are probabilities."""
    return replace(documents, targets=as_probabilities(documents.targets))


def _with_classes(documents: Documents, classes: NDArray[Any]) -> Documents:
    """Return documents whose targets are among all classes."""
    return replace(documents, targets=documents.targets.recoded(classes))


def _with_length(column: Any) -> Any:
    """Return a partition's column, an iterator as a list; None stays None."""
    return column if column is None or hasattr(column, "__len__") else list(column)


def _predicted(model: Any, method: str, X: Any, empty: Any) -> Any:
    """Call a method of the model on a partition; return `empty` if it has no documents."""
    if not hasattr(X, "shape"):  # the texts of a Bag, perhaps an iterator
        X = list(X)
    n_documents = len(X) if isinstance(X, list) else X.shape[0]
    if not n_documents:
        return empty
    return getattr(model, method)(X)
