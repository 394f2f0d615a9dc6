"""What runs on the workers: partitions become documents, and one task a worker trains on them."""

import copy
import pickle
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from distributed import Variable, get_client, get_worker
from distributed.comm import get_address_host

_POLL_S = 0.02
_POINT_COST = 0.05  # of the time of a fit may go into keeping the points that it reaches


class WorkerFailedError(RuntimeError):
    """A worker has to give up because of another one, or is not where its data were."""


class Partition(NamedTuple):
    """A partition: X, (n_documents, n_tokens), labels and weights, (n_documents,) or None."""

    X: Any
    y: Any
    weights: Any


def documents_of(number: int, X: Any, y: Any, weights: Any, vectorizer: Any) -> Partition:
    """Return a partition with its texts as counts, or raise what names it and its worker."""
    with _named(f"partition {number} of X"):
        if vectorizer is not None:
            X = vectorized(vectorizer.transform, X)
        y, weights = (None if a is None else np.asarray(_listed(a)) for a in (y, weights))
        for name, values in (("labels", y), ("weights", weights)):
            if values is not None and len(values) != X.shape[0]:
                raise ValueError(f"{X.shape[0]} documents have {len(values)} {name}.")
        return Partition(X, y, weights)


def vectorized(transform: Callable[[Any], Any], texts: Any) -> Any:
    """Return the counts of a partition of texts, which may be empty."""
    texts = _listed(texts)
    return transform(texts) if len(texts) else transform([""])[:0]


def _listed(values: Any) -> Any:
    """Return a Bag's partition, which may be an iterator, as a list; anything else as it is."""
    return values if hasattr(values, "__len__") else list(values)


def shape_of(part: Partition) -> tuple[int, int, str]:
    """Return how many documents and tokens a partition has, and its worker."""
    return (*part.X.shape, get_worker().address)


def predicted_part(model: Any, method: str, X: Any, empty: Any) -> Any:
    """Return what a method of the model says of a partition; `empty` where it has no documents."""
    X = _listed(X)
    n_documents = X.shape[0] if hasattr(X, "shape") else len(X)
    return getattr(model, method)(X) if n_documents else empty


def joined(parts: list[Partition]) -> Partition:
    """Return some partitions as one."""
    if len(parts) == 1:
        return parts[0]
    first, _, weights = parts[0]
    if sp.issparse(first):
        X: Any = sp.vstack([part.X for part in parts], format="csr")
    elif isinstance(first, np.ndarray):
        X = np.concatenate([part.X for part in parts])
    else:
        import pandas as pd

        X = pd.concat([part.X for part in parts])
    return Partition(
        X,
        np.concatenate([part.y for part in parts]),
        None if weights is None else np.concatenate([part.weights for part in parts]),
    )


def train(
    parts: list[Partition],
    model: Any,
    rank: int,
    addresses: list[str],
    meeting: str,
    point: str,
    timeout: float,
) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """Train with the workers of all `addresses`, of which this has to be the one of `rank`.

    They meet by a Variable of the name `meeting`, and keep the points that they reach in one of the
    name `point`, if any. Rank 0 returns the fitted model and its warnings.
    """
    import torch

    from .._core.parts import PartFailedError
    from .._fit_parts import fit_parts
    from ..distributed import fit_over

    worker = get_worker()
    if worker.address != addresses[rank]:  # Dask starts a lost worker's task elsewhere
        raise WorkerFailedError(f"Dask worker {addresses[rank]} was lost.")

    n_threads = torch.get_num_threads()
    torch.set_num_threads(worker.state.nthreads)  # Dask tells libraries to use one
    first = rank == 0
    try:
        with _named("training"):
            together = joined(parts)
        with warnings.catch_warnings(record=True) if first else nullcontext() as caught:
            if first:
                warnings.simplefilter("always")
            reducer = _reducer(rank, addresses, meeting, timeout)
            learn = partial(fit_parts, watch=_Points(point)) if first and point else fit_parts
            fitted = fit_over(copy.copy(model), reducer, *together, learn)
    except PartFailedError as error:
        kind = WorkerFailedError if error.lost else RuntimeError
        raise kind(_by_address(error, addresses)) from error
    except ValueError as error:
        raise ValueError(_by_address(error, addresses)) from error
    finally:
        torch.set_num_threads(n_threads)
    said = [(str(one.message), one.category) for one in caught or []]
    return (fitted if first else None), said


def _by_address(error: Exception, addresses: list[str]) -> str:
    """Return what an error says, with the workers' addresses in place of their ranks."""

    def address(rank: re.Match[str]) -> str:
        number = int(rank[1])
        return f"Dask worker {addresses[number]}" if number < len(addresses) else rank[0]

    return re.sub(r"\brank (\d+)", address, str(error))


class _Points:
    """Keeps the newest model in a Variable, as often as that takes little of the time."""

    def __init__(self, name: str) -> None:
        self._variable, self._due = Variable(name, client=get_client()), 0.0

    def __call__(self, attributes: Callable[[], dict[str, Any]]) -> None:
        start = time.monotonic()
        if start >= self._due:
            self._variable.set(pickle.dumps(attributes()))
            end = time.monotonic()
            self._due = end + (end - start) / _POINT_COST


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Put the worker's name before what goes wrong."""
    try:
        yield
    except Exception as error:
        kind = next((kind for kind in (ValueError, TypeError) if isinstance(error, kind)), None)
        message = f"On Dask worker {get_worker().address}, {what}: "
        if kind is None:
            raise RuntimeError(f"{message}{type(error).__name__}: {error}") from error
        raise kind(f"{message}{error}") from error


def _reducer(rank: int, addresses: list[str], meeting: str, timeout: float) -> Any:
    """Return what connects these workers, by a group that no other part of the process knows."""
    import torch.distributed as dist

    from .._gloo import GlooReducer

    worker = get_worker()
    task = worker.get_current_task()
    deadline = time.monotonic() + timeout
    limit = timedelta(seconds=timeout)
    hosts = [get_address_host(address) for address in addresses]
    variable = Variable(meeting, client=get_client())

    def check() -> None:
        state = worker.state.tasks.get(task)
        if state is None or state.state == "cancelled":
            raise WorkerFailedError("The fit was cancelled.")

    def until(done: Callable[[], Any]) -> Any:
        while not (found := done()):
            check()
            if time.monotonic() > deadline:
                raise WorkerFailedError(f"Not all workers started training within {timeout} s.")
            time.sleep(_POLL_S)
        return found

    def port_of_rank_0() -> int:
        try:
            return int(variable.get(timeout=1))
        except TimeoutError:
            return 0

    class Reducer(GlooReducer):
        """Ends with the task."""

        def send(self, message: Any) -> Any:
            check()
            return super().send(message)

    try:
        if rank == 0:
            store = dist.TCPStore(hosts[0], 0, None, True, limit, wait_for_workers=False)
            variable.set(store.port)
        else:
            store = dist.TCPStore(hosts[0], until(port_of_rank_0), None, False, limit)
        store.set(f"here {rank}", "")
        everyone = [f"here {other}" for other in range(len(addresses))]
        until(lambda: store.check(everyone))
    except RuntimeError as error:
        raise WorkerFailedError(str(error)) from error
    return Reducer(store, rank, len(addresses), timeout, host=hosts[rank])
