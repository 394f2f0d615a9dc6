"""Tables from CSV, TSV, JSON lines and Parquet files, whatever their compression."""

import codecs
import csv
import io
import json
import lzma
import re
import tarfile
import warnings
import zipfile
import zlib
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd
from pandas.io.common import get_handle  # type: ignore[import-not-found]

Source = Path | IO[bytes]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst", ".tar")
# What streams of some compressions begin with, by the names that pandas has for them.
_MARKS = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00", "zip": b"PK"}
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
    source: Source, *, sep: str | None, encoding: str, strings: bool = False
) -> pd.DataFrame:
    """Return all rows and columns of a file, with strings as column names, or raise ValueError.

    Cells of delimited text become numbers where a whole column can, unless `strings`.
    """
    name = name_of(source)
    try:
        if codecs.lookup(encoding).name == "utf-8":
            encoding = "utf-8-sig"  # skips a byte order mark
        "".encode(encoding)  # refuses base64 and its like
    except LookupError:
        raise ValueError(f"encoding must be one that Python knows, got {encoding!r}") from None
    try:
        raw, kind = _opened(source)
        with raw:
            head = _head(raw)
            is_utf_16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            if encoding == "utf-8-sig" and is_utf_16:
                encoding = "utf-16"
            if not head and (sep or kind):
                raise pd.errors.EmptyDataError
            if kind in _SEPARATORS or sep is not None:
                first = head.decode(encoding, errors="ignore")
                sep = sep or _separator(first, _SEPARATORS[kind])
                frame = _read_delimited(raw, first, sep, encoding, strings)
            elif kind in _JSON:
                with io.TextIOWrapper(raw, encoding=encoding) as lines:
                    frame = _read_json(lines)
            elif kind in _PARQUET:
                frame = _read_parquet(raw)
            else:
                raise ValueError(
                    "its format is not known; expected a name that ends in .csv, .tsv, .jsonl or "
                    ".parquet, compressed or not, or sep= for other delimited text"
                )
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
    frame.columns = frame.columns.map(str)
    return frame


def name_of(source: Source) -> str:
    """Return what to call a file or a stream."""
    if isinstance(source, Path):
        return str(source)
    return str(getattr(source, "name", type(source).__name__))


def separator_hint(heading: str, sep: str = ",") -> str:
    """Return the argument for the separator of a heading without `sep`: its first mark, if any."""
    marks = [] if sep in heading else re.findall(r"""[^\w\s'".()-]""", heading)
    return f"sep={marks[0]!r}" if marks else ""


def _opened(source: Source) -> tuple[IO[bytes], str]:
    """Return content without its compression, and the extension of its format."""
    if isinstance(source, Path):
        suffixes = [suffix.lower() for suffix in source.suffixes]
        kind = next((suffix for suffix in reversed(suffixes) if suffix not in _COMPRESSIONS), "")
        if suffixes and suffixes[-1] in _COMPRESSIONS:
            return _unpacked(source, "infer", source.stat().st_size), kind
        return open(source, "rb"), kind
    raw: IO[bytes] = io.BytesIO(source.read())
    size = raw.seek(0, io.SEEK_END)
    for compression, mark in _MARKS.items():
        if _head(raw).startswith(mark):
            raw = _unpacked(raw, compression, size)
    head = _head(raw)
    if head.startswith(b"PAR1"):
        return raw, ".parquet"
    # In UTF-16, too, where the other byte of such characters is 0.
    text = head.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
    return raw, ".json" if text.startswith((b"{", b"[")) else ".csv"


def _unpacked(source: Source, compression: str, size: int) -> IO[bytes]:
    """Return content without a compression, if it is not suspiciously large for `size`."""
    content = io.BytesIO()
    limit = max(_LEAST_LIMIT, _LARGEST_RATIO * size)
    with get_handle(source, "rb", compression=compression, is_text=False) as opened:
        while chunk := opened.handle.read(1 << 20):
            content.write(chunk)
            if content.tell() > limit:
                raise ValueError(
                    f"it unpacks to more than {limit / 1e6:,.0f} MB, over {_LARGEST_RATIO} times "
                    "its size, which texts do not; decompress it first if it is what it should be"
                )
    return content


def _head(raw: IO[bytes]) -> bytes:
    """Return a stream's first bytes, and go back to them."""
    raw.seek(0)
    head = raw.read(_HEAD)
    raw.seek(0)
    return head


def _read_delimited(
    raw: IO[bytes], head: str, sep: str, encoding: str, strings: bool
) -> pd.DataFrame:
    """Read CSV or TSV; with index_col=False pandas takes no column for an index."""
    options: Any = {"keep_default_na": False, "index_col": False, "low_memory": False}
    options["dtype"] = str if strings else None
    with warnings.catch_warnings():
        # pandas only warns about rows longer than the header, and truncates them.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(raw, sep=sep, encoding=encoding, **options)
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise ValueError(_too_many_cells(error, head, sep)) from error


def _too_many_cells(error: Exception, head: str, sep: str) -> str:
    """Return what pandas says of a line that has more cells than the first, and what to do."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)):
        where = "line {1} has {2} cells, where the first line has {0}".format(*found.groups())
    elif isinstance(error, pd.errors.ParserWarning):
        where = "a line has more cells than the first line"
    else:
        return str(error)
    hint = separator_hint(head.partition("\n")[0], sep) or "another separator with sep="
    return f"{where}, cut at {sep!r}: put texts with {sep!r} into quotes, or pass {hint}"


def _separator(head: str, usual: str) -> str:
    """Return which usual separator cuts the first two rows alike, and into most columns."""

    def fit(sep: str) -> tuple[bool, int]:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=sep)
        widths = [len(row) for row in islice(filter(None, rows), 2)] or [0]
        return 1 < widths[0] == widths[-1], widths[0]

    return max((usual, ",", ";", "\t", "|"), key=fit)


def _read_json(lines: IO[str]) -> pd.DataFrame:
    """Read JSON lines, or one array of objects; values keep their JSON types.

    Not by pandas, whose reader turns integers beside a missing one into floats, and does not say
    which line is wrong.
    """
    records: list[Any] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not records and line.lstrip().startswith("["):
            records = _parse_json(line + lines.read(), f"the array from line {number} on")
            if not all(isinstance(record, dict) for record in records):
                raise ValueError("expected an array of JSON objects")
            break
        records.append(_parse_json(line, f"line {number}"))
        if not isinstance(records[-1], dict):
            raise ValueError(f"line {number} is not a JSON object")
    if not records:
        raise pd.errors.EmptyDataError
    return pd.DataFrame(records, dtype=object)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON ({error.msg}, character {error.pos + 1})") from error
    except RecursionError as error:
        raise ValueError(f"{where} is not JSON that can be read, as it is too deep") from error


def _read_parquet(raw: IO[bytes]) -> pd.DataFrame:
    try:
        # Types that can be missing, as integers beside a missing one would become floats.
        frame = pd.read_parquet(raw, engine="pyarrow", dtype_backend="numpy_nullable")
    except ImportError as error:
        raise ImportError(
            "reading Parquet files needs pyarrow; install it with "
            "'pip install sklearn-clsattn[parquet]'"
        ) from error
    # The base classes of pyarrow's errors.
    except (ValueError, TypeError, KeyError, OSError, NotImplementedError) as error:
        raise ValueError(f"it is not a Parquet file ({_one_line(error)})") from error
    # An index that was written to the file is a column as well.
    return frame if frame.index.name is None else frame.reset_index()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
