"""The machine that the numbers were measured on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import psutil
import threadpoolctl

_LOAD_AT_START = psutil.getloadavg()[0]  # before a benchmark adds to it
_PACKAGES = ("sklearn-clsattn", "scikit-learn", "numpy", "scipy", "torch")


def describe() -> dict[str, Any]:
    """Return processor, its instructions, memory, versions, threads and load."""
    import torch

    pools = threadpoolctl.threadpool_info()
    return {
        "cpu": _cpu_model(),
        "instructions": torch.backends.cpu.get_cpu_capability(),  # such as AVX2 or AVX512
        "cores": joblib.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in _PACKAGES},
        "torch_threads": torch.get_num_threads(),
        "blas_threads": max(
            [1, *(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")]
        ),
        "load_before": round(_LOAD_AT_START, 2),
    }


def summary(machine: dict[str, Any]) -> str:
    """Return the description as a line."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    processor = f"{machine['cpu']} ({machine['instructions']}), {machine['cores']} cores"
    system = f"{machine['memory_gib']:g} GiB, {machine['system']}"
    return (
        f"{processor}, {system}; Python {machine['python']}, {versions}; "
        f"PyTorch on {machine['torch_threads']} threads, BLAS on {machine['blas_threads']}."
    )


def warning(machine: dict[str, Any]) -> str:
    """Return a warning for a page if the machine was busy, else nothing."""
    load, cores = machine["load_before"], machine["cores"]
    busy = f"**The machine was busy** (load {load:g} on {cores} cores): do not trust times."
    return busy if load > 0.5 * cores else ""


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
