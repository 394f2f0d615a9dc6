"""Archives of skops unpacked within bounds, because a small file can stand for any size.

A compressed member can be a thousand times as long as its file, a member can be an archive itself,
an array can declare more items than it has, and an object can be named again and again. skops reads
all of these without limits.
"""

from __future__ import annotations

import io
import json
import math
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, is_zipfile

import numpy as np

UNPACKED_SIZE = "unpacked size"
"""The name by which `trusted` allows an archive of any size."""

_SCHEMA = "schema.json"
_ARRAY = b"\x93NUMPY"  # how files in NumPy's format begin
# An archive may unpack to this number of bytes, or to this multiple of its own.
_USUAL_SIZE = 2**29
_LARGEST_RATIO = 100
# The deflate algorithm compresses no better.
_BEST_RATIO = 1032
_LEAST_SIZE = 64  # of a member, below which no ratio is checked
# A schema may stand for this multiple of the objects that are written in it.
_MOST_REPEATED = 10


class LargeArchive(Exception):
    """An archive unpacks to more bytes than its size allows."""


def unpacked_archive(content: bytes, *, any_size: bool = False) -> bytes:
    """Return an archive of skops without compression.

    Raise LargeArchive if it is much larger than its file, unless it may have `any_size`, and
    ValueError if its members or objects are not what they declare.
    """
    # 1) the members, unpacked
    limit = math.inf if any_size else max(_USUAL_SIZE, _LARGEST_RATIO * len(content))
    archive, sizes = _without_compression(content, limit, may_nest=True)
    with ZipFile(io.BytesIO(archive)) as plain:
        schema = json.loads(plain.read(_SCHEMA))
    # 2) the files that the schema names, once or again and again
    files, by_number, n_parts = _objects_of(schema)
    if sum(sizes.get(name, 0) for name in files) > limit:
        raise LargeArchive
    # 3) the visits to objects: skops visits one wherever it is named, so a list of twice the same
    # list, which has twice the same list, and so on, takes for ever
    is_repeated = len(by_number) < sum(map(len, by_number.values()))
    if is_repeated and _count_visits(schema, by_number) > _MOST_REPEATED * n_parts:
        raise ValueError("it names the same objects again and again")
    return archive


def _without_compression(
    content: bytes, limit: float, *, may_nest: bool
) -> tuple[bytes, dict[str, int]]:
    """Return an archive without compression, and the sizes of its members."""
    made = io.BytesIO()
    sizes: dict[str, int] = {}
    with ZipFile(io.BytesIO(content)) as archive, ZipFile(made, "w") as plain:
        # 1) the declared sizes; of members of one name, only the last can be read
        members = {member.filename: member for member in archive.infolist()}
        for member in members.values():
            is_stored = member.compress_type == ZIP_STORED
            best = 1 if is_stored else _BEST_RATIO
            is_known = is_stored or member.compress_type == ZIP_DEFLATED
            if not is_known or member.file_size > best * member.compress_size + _LEAST_SIZE:
                raise BadZipFile(f"{member.filename} declares a size that it cannot have")
        if sum(member.file_size for member in members.values()) > limit:
            raise LargeArchive
        # 2) the content, which must have these sizes
        for name, member in members.items():
            with archive.open(member) as file:
                data = file.read(member.file_size)  # no more, whatever follows
            if len(data) != member.file_size:
                raise BadZipFile(f"{name} is shorter than it declares")
            sizes[name] = len(data)
            if may_nest and is_zipfile(io.BytesIO(data)):  # a sparse matrix
                data, inside = _without_compression(data, limit, may_nest=False)
                sizes[name] = sum(inside.values())
            if sum(sizes.values()) > limit:
                raise LargeArchive
            _check_array(name, data)
            plain.writestr(name, data)
    return made.getvalue(), sizes


def _check_array(name: str, data: bytes) -> None:
    """Raise ValueError for an array in NumPy's format that declares more items than it has."""
    if not data.startswith(_ARRAY):
        return
    file = io.BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"{name} is an array of another version of the format, {version}")
    shape, _, dtype = readers[version](file)
    if math.prod(shape) * max(dtype.itemsize, 1) > len(data):
        raise ValueError(f"{name} has fewer items than its shape {shape} declares")


def _objects_of(schema: Any) -> tuple[list[str], dict[Any, list[Any]], int]:
    """Return the files that a schema names, its objects by number, and the count of its parts."""
    files: list[str] = []
    by_number: dict[Any, list[Any]] = {}
    n_parts = 0
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        n_parts += 1
        if isinstance(part, dict):
            number = part.get("__id__")
            if number is not None:
                by_number.setdefault(number, []).append(part)
            elif part.get("__loader__") == "JsonNode":
                continue  # a number or text
            if isinstance(part.get("file"), str):
                files.append(part["file"])
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return files, by_number, n_parts


def _count_visits(schema: Any, by_number: dict[Any, list[Any]]) -> int:
    """Return the number of parts of a schema if each object is visited wherever it is named."""
    by_object: dict[Any, int] = {}

    def visits(part: Any) -> int:
        if isinstance(part, list):
            return 1 + sum(map(visits, part))
        if not isinstance(part, dict):
            return 1
        number = part.get("__id__")
        if number is None:
            return 1 + sum(map(visits, part.values()))
        if number not in by_object:
            by_object[number] = 1  # where an object contains itself
            # An object is written in full only once; elsewhere only its number stands.
            by_object[number] = max(1 + sum(map(visits, one.values())) for one in by_number[number])
        return by_object[number]

    return visits(schema)
