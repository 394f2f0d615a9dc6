"""A model report as dictionaries and lists, which JSON can hold."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from ..explanation import Explanation


def report_dict(report: Any) -> dict[str, Any]:
    """Return a report as dictionaries, lists and plain values.

    Parameters
    ----------
    report : ModelReport
        The report.

    Returns
    -------
    report : dict
        A key for each of its fields; explanations are those of one document each.
    """
    return {field.name: _plain(getattr(report, field.name)) for field in fields(report)}


def _plain(value: Any) -> Any:
    if isinstance(value, Explanation):
        explained = value.to_dict()
        (document,) = explained.pop("documents")
        return _plain({**explained, **document})
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
