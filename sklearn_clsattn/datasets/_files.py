"""Tables from CSV, TSV, JSON lines and Parquet files, whatever their compression."""

import codecs
import csv
import io
import json
import lzma
import re
import shutil
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd
from pandas.io.common import get_handle  # type: ignore[import-not-found]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst", ".tar")
# What files of some compressions begin with, after the name that pandas has for each.
_MARKS = {
    ".gz": ("gzip", b"\x1f\x8b"),
    ".bz2": ("bz2", b"BZh"),
    ".xz": ("xz", b"\xfd7zXZ\x00"),
    ".zip": ("zip", b"PK"),
}
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 1 << 16  # bytes in which the first row ends
# What is unpacked may be this many times as large as the file, and this large in any case.
_LARGEST_RATIO = 100
_LEAST_LIMIT = 100_000_000
# Errors of decompressors for damaged files.
_DAMAGED = (
    *(EOFError, OSError, zlib.error, lzma.LZMAError),
    *(zipfile.BadZipFile, tarfile.TarError),
)


def read_table(
    source: Path | IO[bytes], *, sep: str | None, encoding: str, strings: bool = False
) -> pd.DataFrame:
    """Return all rows and columns of a file, with strings as column names, or raise ValueError.

    Cells of delimited text become numbers where a whole column can, unless `strings`.
    """
    (frame,) = read_tables(source, sep=sep, encoding=encoding, strings=strings)
    return frame


def read_tables(
    source: Path | IO[bytes],
    *,
    sep: str | None,
    encoding: str,
    rows: int | None = None,
    strings: bool = True,
) -> Iterator[pd.DataFrame]:
    """Yield a file's rows, at most `rows` at a time, as :func:`read_table` returns all of them."""
    encoding = _bom_aware(encoding)
    name = str(source) if isinstance(source, Path) else name_of(source)
    for frame in _read(source, name, sep, encoding, rows, strings):
        frame.columns = frame.columns.map(str)
        yield frame


def name_of(stream: IO[bytes]) -> str:
    """Return what to call a stream."""
    return str(getattr(stream, "name", type(stream).__name__))


def separator_hint(heading: str, sep: str = ",") -> str:
    """Return the argument for the separator of a heading without `sep`: its first mark, if any."""
    marks = [] if sep in heading else re.findall(r"""[^\w\s'".()-]""", heading)
    return f"sep={marks[0]!r}" if marks else ""


def _read(
    source: Path | IO[bytes],
    name: str,
    sep: str | None,
    encoding: str,
    rows: int | None,
    strings: bool,
) -> Iterator[pd.DataFrame]:
    try:
        opened, kind = _opened(source, in_memory=rows is None)
        with opened as raw:
            if encoding == "utf-8-sig" and _head(raw).startswith(_UTF_16_MARKS):
                encoding = "utf-16"
            if kind in _SEPARATORS or sep is not None:
                usual = _SEPARATORS.get(kind, ",")
                yield from _read_delimited(raw, sep, usual, encoding, rows, strings)
                return
            if kind in _JSON:
                with io.TextIOWrapper(raw, encoding=encoding) as lines:
                    yield from _read_json(lines, rows)
                return
            if kind in _PARQUET:
                yield from _read_parquet(raw, rows)
                return
    except UnicodeError as error:
        raise ValueError(
            f"{name} is not written in {encoding.removesuffix('-sig')} ({error}); "
            "pass its encoding, such as encoding='latin-1'"
        ) from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{name} is empty; expected names of columns and rows") from error
    except _DAMAGED as error:
        # An OSError with a number comes from the system: no permission, for example.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"{name} cannot be decompressed ({_one_line(error)}); it is damaged or cut short"
        ) from error
    except ValueError as error:
        raise ValueError(f"{name} cannot be read: {_one_line(error)}") from error
    raise ValueError(
        f"cannot tell the format of {name}; expected a name that ends in .csv, .tsv, .jsonl or "
        ".parquet, compressed or not, or sep= for other delimited text"
    )


def _opened(source: Path | IO[bytes], *, in_memory: bool) -> tuple[IO[bytes], str]:
    """Return content without its compression, in memory or on disk, and its format's extension."""
    if isinstance(source, Path):
        suffixes = [suffix.lower() for suffix in source.suffixes]
        kind = next((suffix for suffix in reversed(suffixes) if suffix not in _COMPRESSIONS), "")
        raw: IO[bytes] = open(source, "rb")  # noqa: SIM115 - closed by who reads it
        if not suffixes or suffixes[-1] not in _COMPRESSIONS:
            return raw, kind
        with raw:
            _, mark = _MARKS.get(suffixes[-1], ("", b""))
            if (head := raw.read(len(mark))) and head != mark:
                raise ValueError(f"it is not compressed as {suffixes[-1]} files are; mend its name")
            size = raw.seek(0, io.SEEK_END)
        return _unpacked(source, "infer", size, _new_file(in_memory)), kind
    raw = _new_file(in_memory)
    shutil.copyfileobj(source, raw)
    size = raw.tell()
    raw.seek(0)
    start = _head(raw)
    for compression, mark in _MARKS.values():
        if start.startswith(mark):
            with raw as packed:
                raw = _unpacked(packed, compression, size, _new_file(in_memory))
    head = _head(raw)
    if head.startswith(b"PAR1"):
        return raw, ".parquet"
    # In UTF-16, too, where the other byte of such characters is 0.
    text = head.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
    return raw, ".json" if text.startswith((b"{", b"[")) else ".csv"


def _head(raw: IO[bytes]) -> bytes:
    """Return a stream's first bytes, and go back to them."""
    head = raw.read(_HEAD)
    raw.seek(0)
    return head


def _new_file(in_memory: bool) -> IO[bytes]:
    """Return an empty file in memory, or one on disk that goes when it is closed."""
    return io.BytesIO() if in_memory else tempfile.TemporaryFile()


def _unpacked(
    source: Path | IO[bytes], compression: str, size: int, content: IO[bytes]
) -> IO[bytes]:
    """Return the bytes without a compression in `content`, if not suspiciously many for `size`."""
    limit = max(_LEAST_LIMIT, _LARGEST_RATIO * size)
    with ExitStack() as closing:
        closing.push(lambda *error: content.close() if error[0] else None)
        opened = closing.enter_context(
            get_handle(source, "rb", compression=compression, is_text=False)
        )
        while chunk := opened.handle.read(1 << 20):
            content.write(chunk)
            if content.tell() > limit:
                raise ValueError(
                    f"it unpacks to more than {limit / 1e6:,.0f} MB, over {_LARGEST_RATIO} times "
                    "its size, which texts do not; decompress it first if it is what it should be"
                )
    content.seek(0)
    return content


def _read_delimited(
    raw: IO[bytes], sep: str | None, usual: str, encoding: str, rows: int | None, strings: bool
) -> Iterator[pd.DataFrame]:
    """Read CSV or TSV; with index_col=False pandas takes no column for an index."""
    head = _head(raw).decode(encoding, errors="ignore")
    sep = sep or _separator(head, usual)
    options: Any = {"keep_default_na": False, "index_col": False, "low_memory": False}
    options["dtype"] = str if strings else None
    with pd.read_csv(raw, sep=sep, encoding=encoding, iterator=True, **options) as reader:
        while True:
            with warnings.catch_warnings():  # not while others use the rows
                # pandas only warns about rows longer than the header, and truncates them.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                try:
                    frame = reader.read(rows)
                except StopIteration:
                    return
                except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
                    raise ValueError(_too_many_cells(error, head, sep)) from error
            yield frame
            if rows is None:
                return


def _too_many_cells(error: Exception, head: str, sep: str) -> str:
    """Return what pandas says of a line that has more cells than the first, and what to do."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
        where = "line {1} has {2} cells, where the first line has {0}".format(*found.groups())
    elif isinstance(error, pd.errors.ParserWarning):
        where = "a line has more cells than the first line"
    else:
        return _one_line(error)
    hint = separator_hint(head.partition("\n")[0], sep) or "another separator with sep="
    return f"{where}, cut at {sep!r}: put texts with {sep!r} into quotes, or pass {hint}"


def _separator(head: str, usual: str) -> str:
    """Return which usual separator cuts the first two rows alike, and into most columns."""

    def fit(sep: str) -> tuple[bool, int]:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=sep)
        widths = [len(row) for row in islice(filter(None, rows), 2)] or [0]
        return 1 < widths[0] == widths[-1], widths[0]

    return max((usual, ",", ";", "\t", "|"), key=fit)


def _read_json(lines: Iterable[str], rows: int | None) -> Iterator[pd.DataFrame]:
    """Read JSON lines, or one array of objects, at once; values keep their JSON types."""
    # Objects, as pandas would otherwise turn ints beside a missing one into floats.
    as_frame = partial(pd.DataFrame, dtype=object)
    records: list[dict[str, Any]] = []
    started = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not started and line.lstrip().startswith("["):
            records = _parse_json(line + "".join(lines), f"the array from line {number} on")
            if not all(isinstance(record, dict) for record in records):
                raise ValueError("expected an array of JSON objects")
            break
        record = _parse_json(line, f"line {number}")
        if not isinstance(record, dict):
            raise ValueError(f"line {number} is not a JSON object")
        started = True
        records.append(record)
        if len(records) == rows:
            yield as_frame(records)
            records = []
    if records:
        yield as_frame(records)
    elif not started:
        raise pd.errors.EmptyDataError


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON ({error.msg}, character {error.pos + 1})") from error
    except RecursionError as error:
        raise ValueError(f"{where} is not JSON that can be read, as it is too deep") from error


def _read_parquet(raw: IO[bytes], rows: int | None) -> Iterator[pd.DataFrame]:
    if not _head(raw):
        raise pd.errors.EmptyDataError
    try:
        for frame in _parquet_frames(raw, rows):
            # An index that was written to the file is a column as well.
            yield frame if frame.index.name is None else frame.reset_index()
    except ImportError as error:
        raise ImportError(
            "reading Parquet files needs pyarrow; install it with "
            "'pip install sklearn-clsattn[parquet]'"
        ) from error
    # The base classes of pyarrow's errors.
    except (ValueError, TypeError, KeyError, OSError, NotImplementedError) as error:
        raise ValueError(f"it is not a Parquet file ({_one_line(error)})") from error


def _parquet_frames(raw: IO[bytes], rows: int | None) -> Iterator[pd.DataFrame]:
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]

    file = ParquetFile(raw)
    for part in [file.read()] if rows is None else file.iter_batches(rows):
        # Else integers beside a missing one become floats.
        yield part.to_pandas(integer_object_nulls=True)


def _bom_aware(encoding: str) -> str:
    """Return the encoding to read with, which skips a byte order mark."""
    try:
        name = codecs.lookup(encoding).name
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses base64 and its like
    except LookupError:
        raise ValueError(f"encoding must be one that Python knows, got {encoding!r}") from None
    return "utf-8-sig" if name == "utf-8" else name


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
