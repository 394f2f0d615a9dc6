"""A fit as the client sees it: placing, starting, watching, and naming the worker that fails."""

import pickle
import time
import uuid
import warnings
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from distributed import Client, Future, Lock, Variable, wait

from ._worker import WorkerFailedError, shape_of, train

_NAME = "sklearn_clsattn.dask"
_POLL_S = 0.5
_GRACE_S = 2.0


def fit_on_workers(
    client: Client, parts: Sequence[Any], model: Any, *, timeout: float, retries: int
) -> Any:
    """Return the model, fitted on all parts, each where Dask has put it.

    Fits of one cluster wait for each other: two that hold a worker each would wait for ever.
    """
    point = Variable(f"{_NAME}-{uuid.uuid4().hex}", client=client)
    warm_start = model.warm_start
    with client.as_current(), Lock(_NAME):
        futures = client.compute(list(parts))
        try:
            for attempt in range(retries + 1):
                try:
                    fitted = _attempt(
                        client, futures, model, point.name if retries else "", timeout
                    )
                    return fitted.set_params(warm_start=warm_start)
                except WorkerFailedError:
                    if attempt == retries:
                        raise
                    with suppress(TimeoutError):  # none has been reached
                        state = pickle.loads(point.get(timeout=_POLL_S))
                        model.__dict__.update(state)
                        model.warm_start = True
        finally:
            point.delete()
    raise AssertionError


def _attempt(client: Client, parts: list[Future], model: Any, point: str, timeout: float) -> Any:
    """Return the model, fitted by one group of workers."""
    watch = Watch(client, timeout)
    watch.computed(parts)
    shapes: Future = client.submit(list, client.map(shape_of, parts, pure=False), pure=False)
    watch.computed([shapes])
    ranks = _placed(client, parts, shapes.result(timeout=timeout))
    addresses = list(ranks)
    meeting = f"{_NAME}-{uuid.uuid4().hex}"
    tasks = {
        client.submit(
            train,
            own,
            model,
            rank,
            addresses,
            meeting,
            point,
            timeout,
            workers=[address],
            allow_other_workers=True,  # a task that waits for a lost worker would wait for ever
            pure=False,
            key=f"{meeting}-{rank}",
        ): address
        for rank, (address, own) in enumerate(ranks.items())
    }
    try:
        watch.trained(tasks)
        fitted, said = next(iter(tasks)).result(timeout=timeout)
    finally:
        client.cancel(list(tasks), force=True)
        Variable(meeting, client=client).delete()
    for message, category in said:
        warnings.warn(message, category, stacklevel=6)
    return fitted


def _placed(
    client: Client, parts: list[Future], shapes: list[tuple[int, int, str]]
) -> dict[str, list[Future]]:
    """Return the parts that have documents by one of the workers that hold them."""
    filled = [(part, shape) for part, shape in zip(parts, shapes, strict=True) if shape[0]]
    if not filled:
        raise ValueError("Training needs documents of at least two classes, but X has none.")
    widths = [shape[1] for _, shape in filled]
    usual = max(widths, key=widths.count)
    for number, (n_documents, n_tokens, address) in enumerate(shapes):
        if n_documents and n_tokens != usual:
            raise ValueError(
                f"Partition {number} of X, on Dask worker {address}, has {n_tokens} features, "
                f"where most have {usual}: all documents need the same tokens."
            )
    where = client.who_has([part for part, _ in filled])
    ranks: dict[str, list[Future]] = {}
    load: dict[str, int] = {}
    for part, (n_documents, _, last) in filled:
        holders = where.get(part.key) or (last,)
        address = min(holders, key=lambda holder: load.get(holder, 0))
        ranks.setdefault(address, []).append(part)
        load[address] = load.get(address, 0) + n_documents
    return ranks


class Watch:
    """Waits for tasks, as long as their workers answer the scheduler."""

    def __init__(self, client: Client, timeout: float) -> None:
        self.client, self.timeout = client, timeout
        self._heard: dict[str, tuple[float, float]] = {}

    def computed(self, tasks: list[Future]) -> None:
        """Return when all tasks are done, wherever, or raise the first one's error."""
        n_left, since = len(tasks), time.monotonic()
        while left := self._left(tasks):
            _raise_first([task for task in tasks if task.done() and task.status != "finished"])
            silent = self.silent()
            if len(left) < n_left:
                n_left, since = len(left), time.monotonic()
            if time.monotonic() - since > self.timeout:
                if silent:
                    raise WorkerFailedError(_no_answer(silent, self.timeout))
                if not any(self.client.processing().values()):
                    raise WorkerFailedError(
                        f"No Dask worker has computed anything of X for {self.timeout} s: "
                        "perhaps the workers that may compute it are lost."
                    )
        _raise_first([task for task in tasks if task.status != "finished"])

    def trained(self, tasks: dict[Future, str]) -> None:
        """Return when all tasks are done on their workers, or raise by whose fault they are not."""
        while left := self._left(tasks):
            silent = self.silent()
            lost = tasks.keys() - {task for task in tasks if tasks[task] in self._heard}
            broken = [task for task in tasks if task.done() and task.status != "finished"]
            if lost or broken or any(tasks[task] in silent for task in left):
                break
        self._raise_cause(tasks)

    def _raise_cause(self, tasks: dict[Future, str]) -> None:
        """Raise the error that the others come from, a short time after the first of them."""
        until = time.monotonic() + _GRACE_S
        while True:
            left = self._left(tasks)
            failed = [task for task in tasks if task not in left and task.status != "finished"]
            if not (left or failed):
                return
            causes = [
                task for task in failed if not isinstance(task.exception(), WorkerFailedError)
            ]
            _raise_first(causes)
            self.silent()
            lost = [address for address in tasks.values() if address not in self._heard]
            if lost:
                raise WorkerFailedError(f"Dask worker {', '.join(lost)} was lost while it trained.")
            if not left or time.monotonic() > until:
                break
        if left:
            waiting = [tasks[task] for task in left]
            silent = [address for address in self.silent() if address in waiting]
            raise WorkerFailedError(_no_answer(silent or waiting, self.timeout))
        _raise_first(failed)

    def _left(self, tasks: Collection[Future]) -> list[Future]:
        """Return the tasks that are not done in a moment."""
        with suppress(TimeoutError):
            wait(list(tasks), timeout=_POLL_S)
        return [task for task in tasks if not task.done()]

    def silent(self) -> list[str]:
        """Return the workers that the scheduler has not heard of for `timeout` seconds."""
        scheduler: Any = self.client.scheduler
        known = self.client.sync(scheduler.identity, callback_timeout=self.timeout)["workers"]
        now = time.monotonic()
        heard = {address: worker["last_seen"] for address, worker in known.items()}
        self._heard = {
            address: before
            if (before := self._heard.get(address)) and before[0] == last
            else (last, now)
            for address, last in heard.items()
        }
        return [key for key, (_, since) in self._heard.items() if now - since > self.timeout]


def _raise_first(tasks: list[Future]) -> None:
    """Raise the error of the first of some tasks that have failed."""
    if tasks:
        tasks[0].result()


def _no_answer(addresses: list[str], timeout: float) -> str:
    return (
        f"Dask worker {', '.join(addresses)} has not answered for {timeout} s: it may hang, or "
        "`timeout` may be too short for it."
    )
