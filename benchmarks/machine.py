"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import threadpoolctl

_PACKAGES = ("sklearn-clsattn", "scikit-learn", "numpy", "scipy", "torch")


def describe() -> dict[str, Any]:
    import torch

    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in _PACKAGES},
        "threads": {
            "torch": torch.get_num_threads(),
            **{
                f"{pool['internal_api']} ({Path(pool['filepath']).name})": pool["num_threads"]
                for pool in threadpoolctl.threadpool_info()
            },
        },
        "torch_mkl": torch.backends.mkl.is_available(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def summary(machine: dict[str, Any]) -> str:
    threads = machine["threads"]
    blas = [number for name, number in threads.items() if "blas" in name]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:g} GiB, "
        f"{machine['system']}; Python {machine['python']}, {versions}; "
        f"PyTorch on {threads['torch']} threads, BLAS on {max([1, *blas])}."
    )


def warning(machine: dict[str, Any]) -> list[str]:
    """Return lines for a page: a warning where the machine was busy, else none."""
    load, cores = machine["load_before"], machine["cores"]
    if load is None or load <= 0.5 * cores:
        return []
    return [f"**The machine was busy** (load {load:g} on {cores} cores): do not trust times.", ""]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _cores() -> int:
    return os.cpu_count() or 1
