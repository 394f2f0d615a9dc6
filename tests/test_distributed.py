"""Fits over processes: the same model on each, and errors by name where one is lost."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta

import numpy as np
import pytest
import torch
import torch.distributed as dist
from helpers import process_context
from ranks import assert_same, cut, documents

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier, distributed
from sklearn_clsattn._core.part import Part

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork-less gloo and signals"),
]

TIMEOUT = 4.0
BOUNDS = [0, 0, 130, 343]


def connect(rank, size, address, timeout=60.0):
    """Join a gloo group; the store stands in the test's process, which is never lost."""
    torch.set_num_threads(1)
    store = dist.TCPStore(*address, is_master=False, timeout=timedelta(seconds=timeout))
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout)
    )


def work(rank, size, address, folder, answers):
    """Fit in all ways, on one rank, and send what comes of it."""
    import warnings

    warnings.filterwarnings("ignore", message="[0-9] workers have")
    connect(rank, size, address)
    X, y, weights = documents(3)
    mine = cut(BOUNDS, X, y, weights)[rank]
    models = {"default": distributed.fit(ClsAttentionClassifier(), *mine)}
    local = mine  # rank 0 has no document, and so no files
    if rank:
        local = (ChunkedCounts.write(f"{folder}/{rank}", [mine], chunk_entries=1000),)
    models["files"] = distributed.fit(ClsAttentionClassifier(C=1.0), *local)
    model = ClsAttentionClassifier(C=1.0)
    for batch in (slice(0, None, 2), slice(1, None, 2)):
        part = [array[batch] for array in mine]
        model = distributed.partial_fit(model, *part[:2], None, part[2])
    models["batches"] = model
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            distributed.fit(ClsAttentionClassifier(C=1.0), *mine)
    except Exception as error:
        models["warning"] = str(error)
    try:
        distributed.fit(ClsAttentionClassifier(), mine[0][:, rank:], mine[1])
    except ValueError as error:
        models["error"] = str(error)
    group = dist.new_group([0, 1])  # some ranks of all
    if rank < 2:
        half = cut([0, 150, 343], X, y, weights)[rank]
        models["group"] = distributed.fit(ClsAttentionClassifier(), *half, process_group=group)
    answers.put((rank, models))
    dist.barrier()
    dist.destroy_process_group()


def lose(rank, size, address, how, answers):
    """Fit on some ranks, of which rank 1 is lost during the fit."""
    connect(rank, size, address, TIMEOUT)
    X, y, weights = documents(3)
    whole_loss, evaluations = Part.loss, []

    def loss(self, *arguments):
        evaluations.append(1)
        if rank == 1 and len(evaluations) == 3:
            answers.put(("lost at", time.monotonic()))
            answers.close()
            answers.join_thread()
            if how == "exit":
                raise KeyboardInterrupt
            os.kill(os.getpid(), how)
        return whole_loss(self, *arguments)

    Part.loss = loss
    part = cut([0, 100, 200, 343][: size + 1], X, y, weights)[rank]
    try:
        distributed.fit(ClsAttentionClassifier(C=1.0, tol=1e-6), *part)
    except BaseException as error:
        answers.put((rank, f"{type(error).__name__}: {error}", time.monotonic()))
        answers.close()
        answers.join_thread()
    os._exit(0)  # a group that has lost a member cannot be left in peace


class Ranks:
    """Processes of their own, and what they answer."""

    def __init__(self, function, size, *arguments):
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        context = process_context()
        self.answers = context.Queue()
        self.processes = [
            context.Process(
                target=function,
                args=(rank, size, ("127.0.0.1", self.store.port), *arguments, self.answers),
            )
            for rank in range(size)
        ]
        for process in self.processes:
            process.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.join()


@pytest.mark.slow
def test_every_rank_ends_with_the_model_of_all_documents(tmp_path):
    """On three ranks, of which one has no document, and on a group of two of them."""
    X, y, weights = documents(3)
    with Ranks(work, 3, str(tmp_path)) as ranks:
        found = dict(ranks.answers.get(timeout=100) for _ in range(3))
    expected = {
        "default": ClsAttentionClassifier().fit(X, y, weights),
        "files": ClsAttentionClassifier(C=1.0).fit(X, y, weights),
    }
    batches = ClsAttentionClassifier(C=1.0)
    parts = cut(BOUNDS, np.arange(len(y)))
    for batch in (slice(0, None, 2), slice(1, None, 2)):
        rows = np.concatenate([part[batch] for (part,) in parts])
        batches.partial_fit(X[rows], y[rows], None, weights[rows])
    expected["batches"] = batches
    expected["group"] = expected["default"]
    for rank, models in found.items():
        for way, model in expected.items():
            if way == "group" and rank == 2:
                continue
            assert_same(models[way], model)
            for name, value in vars(found[0][way]).items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(vars(models[way])[name], value)
        assert "3 workers have" in models["warning"]
        assert "same tokens (columns of X) in all parts, but rank 1 has 559" in models["error"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP, "exit"])
def test_a_lost_rank_is_an_error_that_names_it(how):
    size = 2 if how == "exit" else 3
    with Ranks(lose, size, how) as ranks:
        name, lost_at = ranks.answers.get(timeout=100)
        assert name == "lost at"
        errors = {}
        while len(errors) < size - 1:
            rank, error, when = ranks.answers.get(timeout=TIMEOUT + 30)
            if rank != 1:
                errors[rank] = error, when - lost_at
    assert sorted(errors) == [rank for rank in range(size) if rank != 1]
    for error, seconds in errors.values():
        said = "failed with KeyboardInterrupt" if how == "exit" else "has ended or does not answer"
        assert f"PartFailedError: The fit stopped in all processes: rank 1 {said}" in error
        assert seconds < (TIMEOUT if how == signal.SIGSTOP else 0.0) + 5.0


def test_without_a_group_it_says_what_to_do():
    X, y, _ = documents()
    with pytest.raises(RuntimeError, match=r"init_process_group first, or start .* torchrun"):
        distributed.fit(ClsAttentionClassifier(), X, y)


TRAIN = """
import torch.distributed as dist
from sklearn_clsattn import ClsAttentionClassifier, distributed
from sklearn_clsattn.datasets import make_token_classification

dist.init_process_group("gloo")
X, y = make_token_classification(400, random_state=0)
mine = slice(dist.get_rank(), None, dist.get_world_size())
model = distributed.fit(ClsAttentionClassifier(C=1.0), X[mine], y[mine])
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {model.score(X, y):.2f}", flush=True)
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_torchrun(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += [f"--master-port={port}", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    # Both write to one output: their lines may run together.
    found = sorted(re.findall(r"rank (\d) of 2: (\d\.\d\d)", done.stdout))
    assert [rank for rank, _ in found] == ["0", "1"]
    assert found[0][1] == found[1][1]
