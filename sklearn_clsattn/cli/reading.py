"""Input of the commands: labelled texts, split into training and test set, and saved models."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_clsattn import saving
from sklearn_clsattn.cli.arguments import STDIN
from sklearn_clsattn.comparison import hold_out
from sklearn_clsattn.datasets import load_reviews, make_token_classification
from sklearn_clsattn.datasets._reviews import read_texts, review_batches

SEED = 0
HELD_OUT = 0.2
ROWS = 10_000  # of a batch

Parts = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def split_texts(arguments: Namespace) -> tuple[Parts, str]:
    """Return training and test texts and labels, generated without a file, and their source."""
    if arguments.data is None:
        given = [name for name in ("text", "label", "sep", "test") if getattr(arguments, name)]
        if given:
            raise ValueError(
                f"--{given[0]} needs a file of texts: {arguments.command} DATA --{given[0]} ..."
            )
        texts, labels = _generated_reviews()
        source = (
            f"{len(texts):,} generated reviews, a tenth of their labels drawn at random.\n"
            "Pass a file of labelled texts to use yours."
        )
    else:
        texts, labels, columns = read_labelled(arguments.data, arguments)
        source = f"{arguments.data}: texts in column {columns[0]!r}, labels in {columns[1]!r}."
    if arguments.test is None:
        parts: Parts = hold_out(texts, labels, share=HELD_OUT, random_state=SEED)
        source += f"\n{HELD_OUT:.0%} of the texts, drawn at random (seed {SEED}), are the test set."
    else:
        # The same columns as in the training file.
        test = read_reviews(arguments.test, arguments, text=columns[0], label=columns[1])
        parts = (texts, labels, test.data, test.target)
        source += f"\nTest set: {arguments.test}."
    return parts, source


def _generated_reviews() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return texts and labels (n_texts,) on which models differ and are fitted in seconds."""
    reviews = make_token_classification(
        n_samples=5000,
        n_relevant_per_class=40,
        n_irrelevant=4000,
        document_length=80,
        relevant_share=0.08,
        delta=(0.1, 0.45),
        flip_y=0.1,
        as_text=True,
        return_X_y=False,
        random_state=SEED,
    )
    return reviews.texts, np.array(reviews.target_names, dtype=object)[reviews.target]


def read_reviews(path: Path, arguments: Namespace, **columns: Any) -> Any:
    """Read a file with the options of a command; `columns` are passed to `load_reviews`."""
    columns = {"text": arguments.text, **columns}
    return load_reviews(_source(path), sep=arguments.sep, encoding=arguments.encoding, **columns)


def read_with_columns(path: Path, arguments: Namespace) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a file's table, with its cells as they are, and its texts (n_texts,)."""
    options = {name: getattr(arguments, name) for name in ("text", "sep", "encoding")}
    return read_texts(_source(path), **options)


def read_batches(
    path: Path, arguments: Namespace
) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, str]]]:
    """Yield texts and labels, as strings, of some rows of a file, and the names of the columns."""
    names = ("text", "label", "sep", "encoding")
    options = {name: getattr(arguments, name) for name in names}
    return review_batches(_source(path), rows=ROWS, **options)


def _source(path: Path) -> Any:
    """Return what to read: a file or standard input."""
    if str(path) != STDIN:
        return path
    if sys.stdin is None:
        raise ValueError("standard input is closed; name a file to read")
    return sys.stdin.buffer


def read_labelled(
    path: Path, arguments: Namespace
) -> tuple[NDArray[Any], NDArray[Any], tuple[str, str]]:
    """Return the texts and labels (n_texts,) of a file, and the names of their columns."""
    reviews = read_reviews(path, arguments, label=arguments.label)
    n_classes = len(np.unique(reviews.target))
    check_label_column(str(path), reviews.label_column, n_classes, len(reviews.target))
    return reviews.data, reviews.target, (reviews.text_column, reviews.label_column)


def check_label_column(source: str, column: str, n_classes: int, n_rows: int) -> None:
    """Raise ValueError for a column that has more different labels than one of classes has."""
    if n_classes > 20 and 2 * n_classes > n_rows:
        raise ValueError(
            f"{source} has {n_classes:,} different labels in {n_rows:,} rows of column "
            f"{column!r}; name the column of the classes with --label"
        )


def load_model(path: Path) -> Pipeline:
    """Load a pipeline from texts to probabilities that ``fit`` has saved."""
    if not path.expanduser().is_file():
        raise ValueError(f"there is no file {path}; expected a model that 'fit' has saved")
    model = saving.load_model(path)
    if not (isinstance(model, Pipeline) and len(model) > 1 and hasattr(model, "predict_proba")):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, not a pipeline from texts to probabilities "
            "such as 'fit' saves"
        )
    check_is_fitted(model)
    return model
