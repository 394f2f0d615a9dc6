"""Tables from CSV, TSV, JSON lines and Parquet files, whatever their compression."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst", ".tar")
_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# What is unpacked may be this many times as large as the file, and this large in any case.
_LARGEST_RATIO = 100
_LEAST_LIMIT = 100_000_000
# Errors of decompressors for damaged files.
_DAMAGED = (
    *(EOFError, OSError, zlib.error, lzma.LZMAError),
    *(zipfile.BadZipFile, tarfile.TarError),
)


def read_table(file: Path, *, sep: str | None, encoding: str) -> pd.DataFrame:
    """Return all rows and columns of a file, with strings as column names.

    The extensions of its name determine format and compression; `sep` separates columns of
    delimited text. Raises ValueError if the file cannot be read, ImportError without pyarrow.
    """
    frame = _read(file, sep, _bom_aware(encoding))
    frame.columns = frame.columns.map(str)
    return frame


def _read(file: Path, sep: str | None, encoding: str) -> pd.DataFrame:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    compression = ""
    while suffixes and suffixes[-1] in _COMPRESSIONS:
        compression = suffixes.pop() + compression
    kind = suffixes[-1] if suffixes else ""
    try:
        if kind in _SEPARATORS or sep is not None:
            return _read_delimited(file, sep or _SEPARATORS[kind], encoding)
        if kind in _JSON:
            content = _unpacked(file, compression)
            return _read_json(io.TextIOWrapper(io.BytesIO(content), encoding=encoding))
        if kind in _PARQUET:
            return _read_parquet(io.BytesIO(_unpacked(file, compression)))
    except UnicodeError as error:
        raise ValueError(
            f"{file} is not written in {encoding.removesuffix('-sig')} ({error}); "
            "pass its encoding, such as encoding='latin-1'"
        ) from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{file} is empty; expected names of columns and rows") from error
    except _DAMAGED as error:
        # An OSError with a number comes from the system: no permission, for example.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"{file} cannot be decompressed ({_one_line(error)}); it is damaged or cut short"
        ) from error
    except (ValueError, pd.errors.ParserWarning) as error:
        raise ValueError(f"{file} cannot be read: {_one_line(error)}") from error
    raise ValueError(
        f"cannot tell the format of {file}; expected a name that ends in .csv, .tsv, .jsonl or "
        ".parquet, compressed or not, or sep= for other delimited text"
    )


def _unpacked(file: Path, compression: str) -> bytes:
    """Return the bytes of a file without its compression, if they are not suspiciously many."""
    if compression == ".zip":
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise ValueError(f"expected one file in the archive, found {len(names)}")
            with archive.open(names[0]) as member:
                return _read_capped(member, file)
    if compression and compression not in _OPENERS:
        raise ValueError(f"cannot decompress {compression} here; decompress it first")
    with _OPENERS.get(compression, lambda path: path.open("rb"))(file) as stream:
        content: bytes = _read_capped(stream, file) if compression else stream.read()
    return content


def _read_capped(stream: Any, file: Path) -> bytes:
    """Return what a decompressor yields; far more than texts ever give is a ValueError."""
    limit = max(_LEAST_LIMIT, _LARGEST_RATIO * file.stat().st_size)
    content = io.BytesIO()
    while chunk := stream.read(1 << 20):
        content.write(chunk)
        if content.tell() > limit:
            raise ValueError(
                f"it unpacks to more than {limit / 1e6:,.0f} MB, over {_LARGEST_RATIO} times its "
                "size, which texts do not; decompress it first if it is what it should be"
            )
    return content.getvalue()


def _read_delimited(file: Path, sep: str, encoding: str) -> pd.DataFrame:
    """Read CSV or TSV; with index_col=False pandas takes no column for an index."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    source: Any = file
    if suffixes and suffixes[-1] in (*_OPENERS, ".zip"):
        source = io.BytesIO(_unpacked(file, suffixes[-1]))
    with warnings.catch_warnings():
        # pandas only warns about rows longer than the header, and truncates them.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame: pd.DataFrame = pd.read_csv(
            source,
            sep=sep,
            encoding=encoding,
            keep_default_na=False,
            index_col=False,
            low_memory=False,
        )
    return frame


def _read_json(lines: Iterable[str]) -> pd.DataFrame:
    """Read JSON lines, or one array of objects; values keep their JSON types."""
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not records and line.lstrip().startswith("["):
            records = _parse_json(line + "".join(lines), f"the array from line {number} on")
            if not all(isinstance(record, dict) for record in records):
                raise ValueError("expected an array of JSON objects")
            break
        record = _parse_json(line, f"line {number}")
        if not isinstance(record, dict):
            raise ValueError(f"line {number} is not a JSON object")
        records.append(record)
    if not records:
        raise pd.errors.EmptyDataError
    # Objects, as pandas would otherwise turn ints beside a missing one into floats.
    return pd.DataFrame(records, dtype=object)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON ({error.msg}, character {error.pos + 1})") from error
    except RecursionError as error:
        raise ValueError(f"{where} is not JSON that can be read, as it is too deep") from error


def _read_parquet(content: io.BytesIO) -> pd.DataFrame:
    if not content.getbuffer().nbytes:
        raise pd.errors.EmptyDataError
    try:
        frame: pd.DataFrame = pd.read_parquet(content, engine="pyarrow")
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
