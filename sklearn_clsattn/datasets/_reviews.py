"""Texts and labels from files."""

import os
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._tables import Source, name_of, read_table, separator_hint

# Usual names of columns, in order of preference.
TEXT_COLUMNS = (
    *("text", "review", "review_text", "reviewtext", "sentence", "content", "comment", "body"),
    *("document", "message", "tweet", "phrase", "description"),
)
LABEL_COLUMNS = (
    *("label", "target", "sentiment", "class", "category", "polarity", "stars", "rating"),
    *("score", "y"),
)

# Types of labels of classifiers, as pandas infers them, and their dtypes.
_LABEL_DTYPES: dict[str, Any] = {
    "boolean": np.bool_,
    "integer": np.int64,
    "floating": np.float64,
    "mixed-integer-float": np.float64,
    "string": object,
}


def load_reviews(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    text: str | None = None,
    label: str | Literal[False] | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    return_X_y: bool = False,
) -> Any:
    r"""Load texts and their labels from a file.

    The format follows from the name of the file: ``.csv``, ``.tsv`` (or ``.tab``), JSON lines
    (``.jsonl``, ``.ndjson`` or ``.json``, which may also be one array of objects) or ``.parquet``,
    each also compressed (``.gz``, ``.bz2``, ``.xz``, ``.zip``, ``.tar``, ``.zst``). A stream is
    recognised by its content. Texts are taken as they are: "null" and "NA" stay texts. Every row of
    the file is a row of the result, or an error is raised; only blank lines between rows are
    skipped.

    Parameters
    ----------
    path : str, path-like or binary file
        The file, or a stream of its bytes, such as ``sys.stdin.buffer``.
    text : str, default=None
        Name of the column that holds the texts. If None, the first of the usual names that the file
        has, in upper or lower case: "text", "review", "sentence", "content", "comment", and so on.
    label : str or False, default=None
        Name of the column that holds the labels. If None, the first of the usual names that the
        file has: "label", "target", "sentiment", "class", "category", "stars", "rating", and so on.
        If False, labels are neither needed nor read, as for texts that are to be classified.
    sep : str, default=None
        The character between columns. If None, that of comma, semicolon, tab and "|" which makes
        the most columns of the first row; in doubt a comma for CSV, a tab for TSV. If given, files
        of unknown format are read as CSV.
    encoding : str, default="utf-8"
        Encoding of CSV, TSV and JSON files. A byte order mark is skipped; that of UTF-16 is
        recognised.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With these fields:

        data : ndarray of str objects of shape (n_samples,)
            The texts.
        target : ndarray of shape (n_samples,), or None
            The labels: ints, floats, bools or str objects. None if `label` is False.
        text_column : str
            Name of the column of the texts.
        label_column : str or None
            Name of the column of the labels. None if `label` is False.
        filename : str
            The path of the file, or the name of the stream.
    (data, target) : tuple
        Returned instead if `return_X_y` is True.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file cannot be read in its format or with this encoding, is empty, lacks a required
        column, has texts that are not strings, or has rows without a label.
    ImportError
        If pyarrow, which reads Parquet, or what reads ``.zst`` is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_clsattn.datasets import load_reviews
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "reviews.csv")
    ...     with open(path, "w", encoding="utf-8") as file:
    ...         _ = file.write("review,stars\nIt is terrific.,5\nPainful and boring.,1\n")
    ...     reviews = load_reviews(path)
    >>> reviews.data.tolist(), reviews.target.tolist()
    (['It is terrific.', 'Painful and boring.'], [5, 1])
    >>> reviews.text_column, reviews.label_column
    ('review', 'stars')
    """
    source = _source(path, sep)
    file = name_of(source)
    frame = read_table(source, sep=sep, encoding=encoding)
    text_column, label_column = _columns(frame, text, label, file)
    data = _as_texts(frame[text_column], file)
    target = None if label_column is None else _as_labels(frame[label_column], file)
    if return_X_y:
        return data, target
    return Bunch(
        data=data, target=target, text_column=text_column, label_column=label_column, filename=file
    )


def read_texts(
    path: Source, *, text: str | None, sep: str | None, encoding: str
) -> tuple[pd.DataFrame, NDArray[np.object_]]:
    """Return a file's table, with cells of delimited text as they are written, and its texts."""
    source = _source(path, sep)
    frame = read_table(source, sep=sep, encoding=encoding, strings=True)
    column, _ = _columns(frame, text, False, name_of(source))
    return frame, _as_texts(frame[column], name_of(source))


def _source(path: str | os.PathLike[str] | IO[bytes], sep: str | None) -> Source:
    """Return what to read, if it can be."""
    if sep is not None and len(sep) != 1:
        raise ValueError(f"sep must be a single character, got {sep!r}")
    if not isinstance(path, str | os.PathLike):
        return path
    source = Path(path).expanduser()
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}; expected a file of texts and labels")
    if source.is_dir():
        raise ValueError(f"{source} is a folder; pass one of the files in it")
    return source


def _columns(
    frame: pd.DataFrame, text: str | None, label: str | Literal[False] | None, file: str
) -> tuple[str, str | None]:
    """Return the names of the columns of texts and labels of a table that has rows."""
    text_column = _find_column(frame, text, "text", TEXT_COLUMNS, file)
    label_column = (
        None if label is False else _find_column(frame, label, "label", LABEL_COLUMNS, file)
    )
    if text_column == label_column:
        raise ValueError(f"text and label are both column {text_column!r} of {file}; pass two")
    if frame.empty:
        raise ValueError(f"{file} has columns but no rows; expected a row for each text")
    return text_column, label_column


def _find_column(
    frame: pd.DataFrame, asked: str | None, parameter: str, usual: tuple[str, ...], file: str
) -> str:
    """Return the name of the column `asked` for, or of the first one with a usual name."""
    columns = list(frame.columns)
    if asked in columns:
        return asked
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    for name in usual if asked is None else ():
        if name in by_name:
            return by_name[name]
    what = f"with a usual name for the {parameter}" if asked is None else repr(asked)
    there = ", ".join(repr(_short(column)) for column in columns)
    sep = separator_hint(columns[0]) if len(columns) == 1 else ""
    hint = f", or pass {sep} if that is several columns" if sep else ""
    raise ValueError(
        f"{file} has no column {what}; its columns are {there}: name one with {parameter}={hint}"
    )


def _as_texts(column: "pd.Series[Any]", file: str) -> NDArray[np.object_]:
    """Return a column's texts (n_rows,), which must be strings."""
    texts = column.astype(object).to_numpy()
    wrong = [i for i, value in enumerate(texts) if not isinstance(value, str)]
    if not wrong:
        return texts
    if len(wrong) == len(texts):
        raise ValueError(
            f"column {column.name!r} of {file} holds {column.dtype} values, not text; "
            "name the column of the texts with text="
        )
    value = texts[wrong[0]]
    what = "no text" if _is_missing(value) else f"{_short(repr(value))} in place of a text"
    raise ValueError(
        f"row {wrong[0] + 1} of {file} has {what} in column {column.name!r}; "
        f"{len(wrong)} of {len(texts)} rows are so: fill or remove them"
    )


def _as_labels(column: "pd.Series[Any]", file: str) -> NDArray[Any]:
    """Return a column's labels (n_rows,), which must have one type."""
    labels = column.astype(object).tolist()
    missing = [i for i, value in enumerate(labels) if _is_missing(value)]
    if missing:
        raise ValueError(
            f"row {missing[0] + 1} of {file} has no label in column {column.name!r}; "
            f"{len(missing)} of {len(labels)} rows have none: fill or remove them, or pass "
            "label=False to read texts alone"
        )
    dtype = _LABEL_DTYPES.get(pd.api.types.infer_dtype(labels))
    if dtype is None:
        names = ", ".join(sorted({type(value).__name__ for value in labels}))
        raise ValueError(
            f"column {column.name!r} of {file} has labels of type {names}; expected all strings, "
            "all numbers or all booleans"
        )
    try:
        return np.array(labels, dtype=dtype)
    except OverflowError:
        raise ValueError(
            f"column {column.name!r} of {file} has labels too large for 64 bits; "
            "write them as strings"
        ) from None


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
