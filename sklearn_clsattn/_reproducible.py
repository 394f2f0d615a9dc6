"""Archives of skops with the same bytes for the same model."""

from __future__ import annotations

import io
import json
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
    with ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
        _Numbering().renumber(schema)
        files = _rename_files(schema)
        members = {files[name]: archive.read(name) for name in files}
    members[_SCHEMA] = json.dumps(schema).encode()
    made = io.BytesIO()
    with ZipFile(made, "w") as archive:
        for name, member in members.items():
            # Small files only grow.
            method = ZIP_DEFLATED if len(member) > 256 else ZIP_STORED
            info = ZipInfo(name, _EARLIEST)
            archive.writestr(info, member, compress_type=method, compresslevel=level)
    return made.getvalue()


class _Numbering:
    """Numbers of objects in the order in which a schema first names them."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def renumber(self, node: Any) -> None:
        """Replace the addresses of objects in a schema by numbers from 1 on, in place."""
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting.extend(reversed(part))
                continue
            if not isinstance(part, dict):
                continue
            if part.get("__loader__") in _UNCHANGING:
                part.pop("__id__", None)
            elif isinstance(part.get("__id__"), int):
                address = part["__id__"]
                part["__id__"] = self._numbers.setdefault(address, len(self._numbers) + 1)
            if part.get("__loader__") == "ObjectNode" and isinstance(part.get("content"), dict):
                attributes = part["content"].get("content", {})
                if _ADDRESS in attributes:
                    attributes[_ADDRESS]["content"] = "0"
            if part.get("__class__") in _UNORDERED and isinstance(part.get("content"), list):
                part["content"].sort(key=_plain_content)
            waiting.extend(reversed(list(part.values())))


def _plain_content(node: Any) -> str:
    """Return an element of a set as JSON, without addresses."""
    return json.dumps({name: node[name] for name in node if name != "__id__"}, sort_keys=True)


def _rename_files(schema: Any) -> dict[str, str]:
    """Number the files that a schema names, in place; return the new names by the old ones."""
    names: dict[str, str] = {}
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(reversed(part))
        elif isinstance(part, dict):
            old = part.get("file")
            if isinstance(old, str) and "__loader__" in part:
                suffix = old.rpartition(".")[2]
                part["file"] = names.setdefault(old, f"{len(names)}.{suffix}")
            waiting.extend(reversed(list(part.values())))
    return names
