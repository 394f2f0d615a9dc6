"""What the commands read: labelled texts, split in two, and saved models."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_clsattn.comparison import hold_out
from sklearn_clsattn.datasets import load_reviews, make_token_classification

SEED = 0
HELD_OUT = 0.2

Parts = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def split_texts(arguments: Namespace) -> tuple[Parts, str]:
    """Return texts to fit on and texts to measure on.

    Parameters
    ----------
    arguments : Namespace
        What to read, and how; without a file, reviews are generated.

    Returns
    -------
    parts : tuple of (train_texts, train_labels, test_texts, test_labels)
        In the order in which a comparison takes them.
    source : str
        Where they come from, a line or two.

    Raises
    ------
    ValueError, OSError, ImportError
        If files or options are not as they must be.
    """
    if arguments.data is None:
        given = [name for name in ("text", "label", "sep", "test") if getattr(arguments, name)]
        if given:
            raise ValueError(
                f"--{given[0]} needs a file of texts: {arguments.command} DATA --{given[0]} ..."
            )
        texts, labels = _generated_reviews()
        source = (
            f"{len(texts):,} generated reviews, a tenth of their labels drawn at random; "
            "pass a file of labelled texts to use yours."
        )
    else:
        texts, labels, columns = read_labelled(arguments.data, arguments)
        source = f"{arguments.data}: texts in column {columns[0]!r}, labels in {columns[1]!r}."
    if arguments.test is None:
        parts: Parts = hold_out(texts, labels, share=HELD_OUT, random_state=SEED)
        source += f"\n{HELD_OUT:.0%} of the texts, drawn at random (seed {SEED}), are the test set."
    else:
        # The same columns as in the training file, which need not be named twice.
        test = load_reviews(
            arguments.test,
            text=columns[0],
            label=columns[1],
            sep=arguments.sep,
            encoding=arguments.encoding,
        )
        parts = (texts, labels, test.data, test.target)
        source += f"\nTest set: {arguments.test}."
    return parts, source


def _generated_reviews() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return texts hard enough that models differ, few enough to be done in seconds."""
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


def read_labelled(
    path: Path, arguments: Namespace
) -> tuple[NDArray[Any], NDArray[Any], tuple[str, str]]:
    """Return the texts and labels of a file, and the names of the columns they stand in.

    Parameters
    ----------
    path : Path
        The file.
    arguments : Namespace
        How to read it.

    Returns
    -------
    texts, labels : ndarray of shape (n_texts,)
        The texts and labels.
    columns : tuple of (str, str)
        Their columns.

    Raises
    ------
    ValueError, OSError, ImportError
        If it cannot be read, or if its labels are hardly classes.
    """
    reviews = load_reviews(
        path,
        text=arguments.text,
        label=arguments.label,
        sep=arguments.sep,
        encoding=arguments.encoding,
    )
    n_classes = len(np.unique(reviews.target))
    if n_classes > 20 and 2 * n_classes > len(reviews.target):
        raise ValueError(
            f"{path} has {n_classes:,} different labels in {len(reviews.target):,} rows of column "
            f"{reviews.label_column!r}; name the column of the classes with --label"
        )
    return reviews.data, reviews.target, (reviews.text_column, reviews.label_column)


def load_model(path: Path) -> Pipeline:
    """Load a pipeline that ``fit`` has saved, or say that the file is none.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    model : Pipeline
        From texts to probabilities.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    if not path.expanduser().is_file():
        raise ValueError(f"there is no file {path}; expected a model that 'fit' has saved")
    try:
        model = joblib.load(path.expanduser())
    # A file that is no pickle, or that of another library, can raise anything.
    except Exception as error:
        raise ValueError(
            f"{path} is not a model that can be loaded ({type(error).__name__}: {error})"
        ) from error
    if not (isinstance(model, Pipeline) and len(model) > 1 and hasattr(model, "predict_proba")):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, not a pipeline from texts to probabilities "
            "such as 'fit' saves"
        )
    check_is_fitted(model)
    return model
