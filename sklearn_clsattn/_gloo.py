"""Messages and sums between processes, over a gloo group of their own that fails by name."""

import pickle
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from ._core.parts import PartFailedError

_POLL, _GRACE = 0.25, 2.0  # seconds between looks at the store, and left to the others to answer


class GlooReducer:
    """A :class:`~._core.reducer.Reducer` over processes that share a store.

    `store` has no key of an earlier reducer; a process that does not answer within `timeout`
    seconds is lost. Where one is lost, or fails, all others raise PartFailedError that names it:
    who notices says so in the store, and who is alive answers there, from a thread of its own.
    `host` is where the others reach this process; None is what the machine's name stands for.
    """

    def __init__(
        self, store: Any, rank: int, size: int, timeout: float, host: str | None = None
    ) -> None:
        self.rank, self.size = rank, size
        self._store, self._timeout = store, timeout
        self._ended = threading.Event()
        self._group: Any = None
        if size > 1:
            threading.Thread(target=self._answer, daemon=True).start()
            gloo: Any = dist.ProcessGroupGloo
            options = gloo._Options()
            options._timeout = timedelta(seconds=timeout)
            options._devices = [
                gloo.create_device(hostname=host) if host else gloo.create_default_device()
            ]
            self._group = self._guarded(lambda: gloo(store, rank, size, options))

    def send(self, message: Any) -> Any:
        """Return the message of rank 0."""
        if self.size == 1:
            return message
        content = _packed(message) if self.rank == 0 else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor([len(content)])
        self._wait(lambda: self._group.broadcast(length, 0))
        if self.rank:
            content = torch.empty(int(length), dtype=torch.uint8)
        self._wait(lambda: self._group.broadcast(content, 0))
        return message if self.rank == 0 else pickle.loads(content.numpy().data)

    def sum(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the processes' arrays, in rank 0."""
        if self.size > 1:
            self._wait(lambda: self._group.reduce(torch.from_numpy(flat), 0))
        return flat

    def gather(self, value: Any) -> list[Any]:
        """Return the processes' values, in rank 0."""
        values = [value]
        if self.rank:
            content = _packed(value)
            self._wait(lambda: self._group.send([torch.tensor([len(content)])], 0, 0))
            self._wait(lambda: self._group.send([content], 0, 0))
        else:
            for other in range(1, self.size):
                length = torch.zeros(1, dtype=torch.int64)
                self._receive(length, other)
                content = torch.empty(int(length), dtype=torch.uint8)
                self._receive(content, other)
                values.append(content)
            values[1:] = [pickle.loads(content.numpy().data) for content in values[1:]]
        return values

    def close(self, error: BaseException | None) -> None:
        """End the group: once all have come so far, or at once where there is an error."""
        if self.size > 1 and error is None:
            self._wait(lambda: self._group.barrier())
        elif self.size > 1 and not getattr(error, "lost", False):
            with suppress(RuntimeError):
                self._store.set(f"error of {self.rank}", f"{type(error).__name__}: {error}"[:500])
        self._ended.set()
        self._group = None

    def _receive(self, tensor: torch.Tensor, rank: int) -> None:
        self._wait(lambda: self._group.recv([tensor], rank, 0))

    def _wait(self, start: Callable[[], Any]) -> None:
        self._guarded(lambda: start().wait())

    def _guarded(self, function: Callable[[], Any]) -> Any:
        """Return what a function of the group returns, or raise an error that says who is lost."""
        try:
            return function()
        except RuntimeError as error:
            self._group = None  # whoever waits for this process must not go on to
            lost: list[str] = []
            calling = threading.Thread(target=self._call, args=[lost], daemon=True)
            calling.start()
            calling.join(2 * _GRACE)
            who = "the process that keeps the group's store does not answer"
            who = "; ".join(lost) or (who if calling.is_alive() else "all answer again")
            raise PartFailedError(
                f"The fit stopped in all processes: {who} (timeout {self._timeout:g} s; gloo says: "
                f"{str(error).splitlines()[0]}).",
                lost=True,
            ) from error

    def _call(self, lost: list[str]) -> None:
        """Ask all to answer in the store, and name those that have failed or do not."""
        silent = set(range(self.size)) - {self.rank}
        with suppress(RuntimeError):
            self._store.set("trouble", "")
            self._store.set(f"alive {self.rank}", "")
            end = time.monotonic() + _GRACE
            while silent and time.monotonic() < end:
                time.sleep(_POLL / 2)
                silent = {rank for rank in silent if not self._store.check([f"alive {rank}"])}
            for rank in range(self.size):
                if self._store.check([key := f"error of {rank}"]):
                    lost.append(f"rank {rank} failed with {self._store.get(key).decode()}")
                elif rank in silent:
                    lost.append(f"rank {rank} has ended or does not answer")

    def _answer(self) -> None:
        """Answer to whoever asks in the store, also while this process computes."""
        with suppress(RuntimeError):
            while not self._ended.wait(_POLL):
                if self._store.check(["trouble"]):
                    self._store.set(f"alive {self.rank}", "")
                    return


def _packed(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(pickle.dumps(value, protocol=5)), dtype=torch.uint8)
