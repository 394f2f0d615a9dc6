"""Texts and labels from the files that commands read."""

import codecs
import csv
import io
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.io.common import get_handle  # type: ignore[import-not-found]

from .._validation import is_missing

Source = str | os.PathLike[str] | IO[bytes]

# Usual names of columns, in order of preference.
_USUAL = {
    "text": """text review review_text reviewtext sentence content comment body document message
        tweet phrase description""",
    "label": "label target sentiment class category polarity stars rating score y",
}
# Types of labels of classifiers, as pandas infers them, and their dtypes.
_LABEL_DTYPES: dict[str, Any] = {
    "boolean": np.bool_,
    "integer": np.int64,
    "floating": np.float64,
    "mixed-integer-float": np.float64,
    "string": object,
}
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst", ".tar")
_SIGN = re.compile(r"\S")  # with which the next JSON value begins


@dataclass(frozen=True, eq=False)
class Reviews:
    """Texts and labels of a file.

    `texts` and `labels` have shape (n_texts,); labels are ints, floats, bools or str objects.
    `text_column` and `label_column` are the names of their columns. `file` is the path of the file,
    or the name of the stream.
    """

    texts: NDArray[np.object_]
    labels: NDArray[Any]
    text_column: str
    label_column: str
    file: str


def read_reviews(
    path: Source,
    *,
    text: str | None = None,
    label: str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
) -> Reviews:
    """Return the texts and labels of a file, or of a stream of CSV, JSON or Parquet.

    The file name determines the format: CSV, TSV, JSON lines or Parquet, each possibly compressed.
    Texts are not changed: "null" and "NA" stay texts. Each row of the file becomes a row of the
    result, or an error is raised; only blank lines are skipped.

    `text` and `label` name the columns; by default each is the first common name that the file has,
    in upper or lower case. `sep` is the character between columns; by default the one that splits
    the first row into the most columns. Byte order marks take precedence over `encoding`.
    """
    frame, file = _read_table(path, sep, encoding)
    text_column = _find_column(frame, text, "text", file)
    texts = _as_texts(frame[text_column], file)
    label_column = _find_column(frame, label, "label", file)
    if label_column == text_column:
        raise ValueError(f"text and label are both column {text_column!r} of {file}; pass two")
    labels = _as_labels(frame[label_column], file)
    return Reviews(texts, labels, text_column, label_column, file)


def read_texts(
    path: Source, *, text: str | None, sep: str | None, encoding: str
) -> tuple[pd.DataFrame, NDArray[np.object_]]:
    """Return a file's table, cells as they are written, and its texts; a .txt has one a line."""
    frame, file = _read_table(path, sep, encoding, strings=True)
    return frame, _as_texts(frame[_find_column(frame, text, "text", file)], file)


def read_probabilities(
    table: pd.DataFrame, columns: str, classes: NDArray[Any], file: str
) -> pd.DataFrame:
    """Return the probabilities of classes, (n_texts, n_classes), in columns of a file's table.

    `columns` are names of classes, or CLASS=COLUMN, between commas.
    """
    # 1) the columns
    by_name = {str(label): label for label in classes.tolist()}
    probabilities = {}
    for item in columns.split(","):
        name, _, column = item.strip().partition("=")
        numbers = _numbers(table, column or name, file)
        probabilities[by_name.get(name, name)] = numbers
    # 2) every class needs one
    missing = [name for name, label in by_name.items() if label not in probabilities]
    if missing:
        raise ValueError(
            f"--teacher-columns do not include the labels {', '.join(missing)}: expected a column "
            "for each, as CLASS=COLUMN where it has another name"
        )
    return pd.DataFrame(probabilities)


def _numbers(table: pd.DataFrame, column: str, file: str) -> NDArray[np.float64]:
    """Return the numbers in a column, (n_texts,), which must be in the table and have no gaps."""
    if column not in table.columns:
        raise ValueError(
            f"{file} has no column {column!r}; its columns are {_listed(table.columns)}"
        )
    numbers = pd.to_numeric(table[column], errors="coerce")
    wrong = np.flatnonzero(numbers.isna())
    if len(wrong):
        raise ValueError(
            f"row {wrong[0] + 1} of {file} has {table[column].iloc[wrong[0]]!r:.40} in column "
            f"{column!r}: expected a probability"
        )
    return numbers.to_numpy(np.float64)


def _listed(columns: Iterable[str]) -> str:
    """Return the names of columns, each shortened, as a list in words."""
    return ", ".join(f"{column!r:.40}" for column in columns)


def _read_table(
    source: Source, sep: str | None, encoding: str, strings: bool = False
) -> tuple[pd.DataFrame, str]:
    """Return all rows and columns of a file, with strings as column names, and the file's name.

    Cells of delimited text become numbers where a whole column can, unless `strings`.
    """
    # 1) the file's name
    if sep is not None and len(sep) != 1:
        raise ValueError(f"sep must be a single character, got {sep!r}")
    file = str(getattr(source, "name", type(source).__name__))
    if isinstance(source, str | os.PathLike):
        source = Path(source).expanduser()
        file = str(source)
        if not source.exists():
            raise FileNotFoundError(f"there is no file {file}; expected a file of texts and labels")
    # 2) its table
    try:
        content, kind = _content(source)
        frame = _parsed(content, kind, sep, encoding, strings)
    except ImportError:
        raise
    except Exception as error:  # decompressors and parsers have many
        if getattr(error, "errno", None) is not None:  # of the system: no permission, for example
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{file} cannot be read: {reason}") from error
    if frame.empty:
        raise ValueError(f"{file} is empty; expected column names and a row for each text")
    frame.columns = frame.columns.map(str)
    return frame, file


def _content(source: Path | IO[bytes]) -> tuple[bytes, str]:
    """Return content without its compression, and the extension of its format."""
    # 1) of a file, whose last extension may be that of a compression
    if isinstance(source, Path):
        kind = ""
        for suffix in source.suffixes:
            if suffix.lower() not in _COMPRESSIONS:
                kind = suffix.lower()
        with get_handle(source, "rb", compression="infer", is_text=False) as opened:
            return opened.handle.read(), kind
    # 2) of a stream, by how it begins
    content = source.read()
    if content.startswith(b"PAR1"):
        return content, ".parquet"
    # Without byte order marks and spaces; in UTF-16, the other byte of such characters is 0.
    begin = content[:1000].lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
    return content, ".json" if begin.startswith((b"{", b"[")) else ".csv"


def _parsed(
    content: bytes, kind: str, sep: str | None, encoding: str, strings: bool
) -> pd.DataFrame:
    """Return the table that content is in a format, without rows if it is blank."""
    if not content:
        return pd.DataFrame()
    # With `sep`, content is delimited text, whatever the file's name.
    if kind in _PARQUET and sep is None:
        # Types that can be missing, as integers beside a missing one would become floats.
        frame = pd.read_parquet(
            io.BytesIO(content), engine="pyarrow", dtype_backend="numpy_nullable"
        )
        # An index that was written to the file is a column as well.
        return frame if frame.index.name is None else frame.reset_index()
    if kind in _JSON and sep is None:
        return pd.DataFrame(_json_records(_decoded(content, encoding)), dtype=object)
    if kind == ".txt" and strings and sep is None:  # texts alone, one a line
        lines = io.StringIO(_decoded(content, encoding), newline=None)
        return pd.DataFrame({"text": [line.rstrip("\n") for line in lines if line.strip()]})
    if kind not in _SEPARATORS and sep is None:
        raise ValueError(
            "its format is unknown; expected a name that ends in .csv, .tsv, .jsonl or "
            ".parquet, compressed or not, or sep= for other delimited text"
        )
    return _delimited(_decoded(content, encoding), sep, _SEPARATORS.get(kind, ","), strings)


def _delimited(text: str, sep: str | None, usual: str, strings: bool) -> pd.DataFrame:
    """Return the table of delimited text, without rows if it is blank."""
    if not text.strip():
        return pd.DataFrame()
    sep = sep or _separator(text, usual)
    with warnings.catch_warnings():
        # pandas only warns about rows longer than the header, and truncates them.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            _check_names(next(_rows(text, sep)))
            return pd.read_csv(
                io.StringIO(text, newline=""),
                sep=sep,
                dtype=str if strings else None,
                keep_default_na=False,
                index_col=False,  # otherwise pandas may take a column for an index
                low_memory=False,
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            reason: Any = error
            if isinstance(error, pd.errors.ParserWarning):
                reason = "Some rows are longer than the first."
            raise ValueError(
                f"{reason} Rows are split at {sep!r}: quote texts that contain {sep!r}, or pass "
                "another separator with sep="
            ) from error


def _check_names(names: Iterable[str]) -> None:
    """Raise ValueError for two columns of one name; any number may have none."""
    for name, n_columns in Counter(names).items():
        if n_columns > 1 and name.strip():
            raise ValueError(
                f"it has {n_columns} columns with the name {name!r}; rename or remove all but one"
            )


def _decoded(content: bytes, encoding: str) -> str:
    """Return content as text, without a byte order mark."""
    try:
        # What is called UTF-8, by default as well, may be UTF-16 of Windows.
        if codecs.lookup(encoding).name == "utf-8":
            marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            is_marked = content.startswith(marks)
            encoding = "utf-16" if is_marked else "utf-8-sig"
            if not is_marked and (other := _utf16_without_mark(content)) is not None:
                raise ValueError(
                    "it looks like UTF-16 without a byte order mark; pass its encoding, such as "
                    f"encoding='{other}'"
                )
        return content.decode(encoding)
    except LookupError:
        raise ValueError(f"encoding must be a Python encoding, got {encoding!r}") from None
    except UnicodeError as error:
        raise ValueError(f"{error}; pass its encoding, such as encoding='latin-1'") from error


def _utf16_without_mark(content: bytes) -> str | None:
    """Return the encoding of content whose first characters are ASCII in UTF-16, else None."""
    is_zero = [byte == 0 for byte in content[:4]]
    if is_zero == [False, True, False, True]:
        return "utf-16-le"
    if is_zero == [True, False, True, False]:
        return "utf-16-be"
    return None


def _rows(text: str, sep: str) -> Iterator[list[str]]:
    """Return the rows of delimited text, without blank lines."""
    csv.field_size_limit(2**31 - 1)  # by default, a text of 131,073 characters is an error
    return filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=sep))


def _separator(text: str, usual: str) -> str:
    """Return which usual separator cuts the first two rows alike, and into most columns."""

    def fit(sep: str) -> tuple[bool, int]:
        widths = list(map(len, islice(_rows(text, sep), 2)))
        return 1 < widths[0] == widths[-1], widths[0]

    return max((usual, ",", ";", "\t", "|"), key=fit)


def _json_records(text: str) -> list[dict[str, Any]]:
    """Return the records of JSON lines, or of one array of objects; values keep their JSON types.

    pandas would turn integers beside a missing one into floats, and not say which line is wrong.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_json_object)
    records: list[Any] = []
    end = 0
    while sign := _SIGN.search(text, end):
        value, end = decoder.raw_decode(text, sign.start())
        if isinstance(value, list):
            records.extend(value)
        else:
            records.append(value)
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise ValueError(f"record {number} is not a JSON object")
    return records


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dictionary, which must have each name once."""
    _check_names(name for name, _ in pairs)
    return dict(pairs)


def _find_column(frame: pd.DataFrame, asked: str | None, parameter: str, file: str) -> str:
    """Return the name of the column `asked` for, or of the first one with a usual name."""
    # 1) the column asked for, or a usual one
    columns = list(frame.columns)
    if asked in columns:
        return asked
    what = repr(asked)
    if asked is None:
        what = f"with a common name for the {parameter}"
        by_name = {column.strip().lower(): column for column in reversed(columns)}
        for name in _USUAL[parameter].split():
            if name in by_name:
                return by_name[name]
    # 2) or none
    raise ValueError(
        f"{file} has no column {what}; its columns are {_listed(columns)}: choose one with "
        f"{parameter}="
    )


def _as_texts(column: "pd.Series[Any]", file: str) -> NDArray[np.object_]:
    """Return a column's texts (n_rows,), which must be strings."""
    # 1) strings
    texts = column.astype(object).to_numpy()
    wrong = [at for at, value in enumerate(texts) if not isinstance(value, str)]
    if wrong:
        raise ValueError(
            f"row {wrong[0] + 1} of {file} has {texts[wrong[0]]!r:.40} instead of a text in column "
            f"{column.name!r} ({len(wrong)} of {len(texts)} rows are affected): fill or remove "
            "them, or choose the column of the texts with text="
        )
    # 2) without NUL, which UTF-16 that is read as another encoding has
    with_nul = [at for at, text in enumerate(texts) if "\0" in text]
    if with_nul:
        raise ValueError(
            f"row {with_nul[0] + 1} of {file} has the character NUL in column {column.name!r} "
            f"({len(with_nul)} of {len(texts)} rows are affected), which no text has: remove it, "
            "or pass another encoding, such as encoding='utf-16'"
        )
    return texts


def _as_labels(column: "pd.Series[Any]", file: str) -> NDArray[Any]:
    """Return a column's labels (n_rows,), which must have one type."""
    # 1) none missing
    labels = column.astype(object).tolist()
    missing = [at for at, one in enumerate(labels) if is_missing(one) or not str(one).strip()]
    if missing:
        raise ValueError(
            f"row {missing[0] + 1} of {file} has no label in column {column.name!r}; "
            f"{len(missing)} of {len(labels)} rows have none: fill or remove them"
        )
    # 2) of one type
    try:
        return np.array(labels, dtype=_LABEL_DTYPES[pd.api.types.infer_dtype(labels)])
    except (KeyError, OverflowError):
        names = ", ".join(sorted({type(value).__name__ for value in labels}))
        raise ValueError(
            f"column {column.name!r} of {file} has labels of type {names}; expected all strings, "
            "all booleans, or all numbers of up to 64 bits"
        ) from None
