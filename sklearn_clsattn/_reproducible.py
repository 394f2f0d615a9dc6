"""Archives of skops with the same bytes for the same model."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

_SCHEMA = "schema.json"
_EARLIEST = 1980, 1, 1, 0, 0, 0  # of the dates that an archive can have
# Objects that are never changed: whether two of them are one object is an accident of the process.
_UNCHANGING = ("JsonNode", "TypeNode", "FunctionNode", "TupleNode")
# A vectorizer remembers by its address which list of stop words it has checked.
_ADDRESS = "_stop_words_id"
_UNORDERED = ("set", "frozenset")


def reproducible_archive(content: bytes, level: int) -> bytes:
    """Return an archive of skops, compressed, without what differs from process to process.

    These are addresses of objects, which name files and show which objects are the same, dates,
    and the order of sets.
    """
    # 1) the schema and the files, with numbers for addresses
    with ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
        _number_objects(schema)
        files = _rename_files(schema)
        members = {files[name]: archive.read(name) for name in files}
    members[_SCHEMA] = json.dumps(schema).encode()
    # 2) an archive of them, without dates
    made = io.BytesIO()
    with ZipFile(made, "w") as archive:
        for name, member in members.items():
            # Small files only grow.
            method = ZIP_DEFLATED if len(member) > 256 else ZIP_STORED
            info = ZipInfo(name, _EARLIEST)
            archive.writestr(info, member, compress_type=method, compresslevel=level)
    return made.getvalue()


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries in a schema in the order in which they are written."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(reversed(part))
        elif isinstance(part, dict):
            yield part
            waiting.extend(reversed(list(part.values())))


def _number_objects(schema: Any) -> None:
    """Replace the addresses of objects in a schema by numbers from 1 on, in place."""
    numbers: dict[int, int] = {}  # in the order in which the schema first names the objects
    for node in _nodes(schema):
        # 1) the address of the object itself
        if node.get("__loader__") in _UNCHANGING:
            node.pop("__id__", None)
        elif isinstance(node.get("__id__"), int):
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
        # 2) an address among its attributes
        if node.get("__loader__") == "ObjectNode" and isinstance(node.get("content"), dict):
            attributes = node["content"].get("content", {})
            if _ADDRESS in attributes:
                attributes[_ADDRESS]["content"] = "0"
        # 3) the order of a set
        if node.get("__class__") in _UNORDERED and isinstance(node.get("content"), list):
            node["content"].sort(key=_plain_content)


def _plain_content(node: Any) -> str:
    """Return an element of a set as JSON, without addresses."""
    return json.dumps({name: node[name] for name in node if name != "__id__"}, sort_keys=True)


def _rename_files(schema: Any) -> dict[str, str]:
    """Number the files that a schema names, in place; return the new names by the old ones."""
    names: dict[str, str] = {}
    for node in _nodes(schema):
        old = node.get("file")
        if isinstance(old, str) and "__loader__" in node:
            suffix = old.rpartition(".")[2]
            node["file"] = names.setdefault(old, f"{len(names)}.{suffix}")
    return names
