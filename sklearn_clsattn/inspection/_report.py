"""A model on one page: its measures, its important tokens, its mistakes, and labels to check."""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray
from sklearn.calibration import CalibrationDisplay, calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .. import __version__
from .._validation import encode_labels
from ..comparison import (
    baselines,
    fitted_models,
    measure,
    measures_table,
    probability_text,
    text_baselines,
    warn_of_shared_texts,
    warn_of_unknown_labels,
)
from ._explain import explain
from ._label_issues import label_issues
from .decision_sums import sum_of
from .displays import important_tokens, token_importance
from .formatting import label_text, percent
from .inner_classifiers import members_of
from .pages import framed, render

_OURS = "this model"
_N_TOKENS = 10  # of each class
_N_MISTAKES = 10
_N_LABELS = 15
_N_BINS = 10  # of confidence
_EXCERPT = 140  # characters of a text
_MAX_NUMBERED = 20  # classes whose confusions are written as numbers, too
# Texts in pictures stay texts, which every browser has the letters for.
_STYLE = {"svg.fonttype": "none", "text.parse_math": False, "font.size": 9}


class Table(NamedTuple):
    """A table of the page: the headings of its columns, and its rows."""

    heads: list[Any]
    rows: Sequence[Sequence[Any]]


class Page(str):
    """A complete page of HTML, which notebooks show."""

    def _repr_html_(self) -> str:
        return framed(self, "Model report", 5000)

    def __repr__(self) -> str:
        return f"<Page of {len(self):,} characters of HTML>"


def report(
    model: Any,
    X_test: Any,
    y_test: ArrayLike,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    title: str = "Model report",
) -> Page:
    """Return a page on a model: measures, important tokens, mistakes and labels to check.

    Parameters
    ----------
    model : estimator of scikit-learn
        Any that :func:`explain` takes. If it is not fitted, a clone is fitted to the training data.
    X_test : sequence of length n_test, or matrix of shape (n_test, n_tokens)
        Test documents, the input of the model: texts, counts, or rows of a data frame.
    y_test : array-like of shape (n_test,)
        Their classes.
    X_train, y_train : sequence or matrix of length n_train, and array-like, default=None
        The training data. They are also used to fit baselines, and to rank their labels with
        :func:`label_issues`. Without them, the page has no baselines and no labels to check, and
        important tokens are those of the test documents. Only labels of `TextClassifier` and
        `ClsAttentionClassifier` are ranked.
    title : str, default="Model report"
        Title of the page.

    Returns
    -------
    page : str
        The page, complete HTML without scripts that needs no network: write it as UTF-8. Notebooks
        show it. Confusion matrix and calibration curve are pictures where matplotlib is installed,
        otherwise tables.

    Warns
    -----
    UserWarning
        If test texts are also in training, or test labels are not.

    See Also
    --------
    sklearn_clsattn.comparison.compare : The measures as a data frame.

    Examples
    --------
    >>> from sklearn_clsattn import TextClassifier
    >>> from sklearn_clsattn.datasets import load_requests
    >>> from sklearn_clsattn.inspection import report
    >>> texts, y = load_requests(return_X_y=True)
    >>> model = TextClassifier().fit(texts[:200], y[:200])
    >>> page = report(model, texts[200:300], y[200:300], X_train=texts[:200], y_train=y[:200])
    >>> page.startswith("<!doctype html>")
    True
    """
    # 1) The model, fitted to the training data if it is not fitted yet, and its measures.
    X_test = _indexable(X_test)
    labels = column_or_1d(y_test)
    has_training = X_train is not None
    if has_training:
        X_train = _indexable(X_train)
        train_labels = column_or_1d(y_train)
    if has_training and not _is_fitted(model):
        unfitted = {_OURS: model}
        ((_, model, measures),) = fitted_models(unfitted, X_train, train_labels, X_test, labels)
    else:
        measures = measure(model, X_test, labels)
    measured = {_OURS: measures}
    warn_of_unknown_labels(labels, model.classes_)
    # 2) The baselines, and labels to check.
    issues = None
    if has_training:
        if _are_texts(X_train):
            warn_of_shared_texts(X_train, X_test)
        others = _baselines(model, X_train, train_labels)
        for name, _, measures in fitted_models(others, X_train, train_labels, X_test, labels):
            measured[name] = measures
        issues = _labels_to_check(model, X_train, train_labels)
    # 3) The page.
    predicted = model.predict(X_test)
    confidence = _confidence(model, X_test, predicted)
    wrong = np.flatnonzero(predicted != labels)
    most_confident_first = np.argsort(-confidence[wrong], kind="stable")
    has_probabilities = hasattr(model, "predict_proba")
    page = render(
        "report.html",
        title=title,
        n_documents=len(labels),
        n_wrong=len(wrong),
        measures=_measures_table(measures_table(measured)),
        **_pictures(labels, predicted, confidence if has_probabilities else None),
        tokens=_tokens(model, X_train if has_training else X_test),
        mistakes=_mistakes(model, X_test, labels, wrong[most_confident_first]),
        issues=issues,
        model=model,
        version=__version__,
    )
    return Page(page)


def _indexable(documents: Any) -> Any:
    """Return documents whose rows can be chosen by number: a list becomes an array."""
    return documents if hasattr(documents, "shape") else np.asarray(documents, dtype=object)


def _rows(documents: Any, numbers: Any) -> Any:
    """Return the documents with these numbers."""
    return getattr(documents, "iloc", documents)[numbers]


def _are_texts(documents: Any) -> bool:
    """Return whether documents are texts, rather than rows of numbers or of a table."""
    return len(documents.shape) == 1


def _is_fitted(model: Any) -> bool:
    """Return whether a model is fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _baselines(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return unfitted classifiers for the documents of a fitted model, by name.

    For texts, they have a vectorizer of their own. For counts and tables they read what the model's
    classifier reads.
    """
    if _are_texts(X):
        return text_baselines(y)
    steps = members_of(model).members[0].steps
    return baselines(y, make_pipeline(*steps) if steps else "passthrough")


def _confidence(model: Any, documents: Any, predicted: Any) -> Any:
    """Return the probabilities of predicted classes, or else their leads, (n_documents,)."""
    if hasattr(model, "predict_proba"):
        numbers = encode_labels(predicted, model.classes_)
        return model.predict_proba(documents)[np.arange(len(numbers)), numbers]
    decisions = model.decision_function(documents)
    if decisions.ndim == 1:
        return abs(decisions)
    first_two = np.sort(decisions, axis=1)[:, -2:]
    return first_two[:, 1] - first_two[:, 0]


def _measures_table(measures: pd.DataFrame) -> Table:
    """Return the table of models and their measures, a row each."""
    if len(measures) == 1:
        measures = measures.drop(columns="p_value")
    heads = [name.replace("_", " ").replace("f1", "F1") for name in measures.columns]
    cells = []
    for model, row in measures.iterrows():
        texts = [str(model)]
        for name, number in row.items():
            decimals = 2 if str(name).endswith("seconds") else 4
            text = probability_text(number) if name == "p_value" else f"{number:.{decimals}f}"
            texts.append("–" if math.isnan(number) else text)
        cells.append(texts)
    return Table(["model", *heads], cells)


def _pictures(labels: Any, predicted: Any, confidence: Any) -> dict[str, Any]:
    """Return the confusion matrix and the calibration curve, drawn if possible, or as tables.

    There is no curve without probabilities, where `confidence` is None.
    """
    is_right = predicted == labels
    calibration: Any = None
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        if confidence is not None:
            calibration = _calibration_table(is_right, confidence)
        confusion = _confusion_table(labels, predicted)
        return {"confusion": confusion, "calibration": calibration, "are_drawn": False}
    with plt.style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # missing in matplotlib's font
        picture = _confusion_picture(labels, predicted)
        if confidence is not None:
            calibration = _calibration_picture(is_right, confidence)
    return {"confusion": picture, "calibration": calibration, "are_drawn": True}


def _confusion_table(labels: Any, predicted: Any) -> Table:
    """Return the confusion matrix as a table."""
    classes = unique_labels(labels, predicted).tolist()
    counts = confusion_matrix(labels, predicted).tolist()
    rows = [[label, *row] for label, row in zip(classes, counts, strict=True)]
    return Table(["true ↓ predicted →", *classes], rows)


def _calibration_table(is_right: Any, confidence: Any) -> Table:
    """Return the calibration curve of the predicted classes as a table."""
    right, mean_confidence = calibration_curve(
        is_right, confidence, n_bins=_N_BINS, strategy="quantile", pos_label=True
    )
    rows = list(zip(map(percent, mean_confidence), map(percent, right), strict=True))
    return Table(["confidence", "correct"], rows)


def _confusion_picture(labels: Any, predicted: Any) -> str:
    """Return the confusion matrix as the address of a picture."""
    from matplotlib.figure import Figure

    names = [label_text(label) for label in unique_labels(labels, predicted)]
    are_short = sum(map(len, names)) < 40
    has_numbers = len(names) <= _MAX_NUMBERED
    size = max(3.2, 1.0 + len(names) * (0.45 if has_numbers else 0.2))  # inches
    figure = Figure(figsize=(size, size))
    ConfusionMatrixDisplay.from_predictions(
        labels,
        predicted,
        display_labels=names,
        cmap="Blues",
        colorbar=False,
        include_values=has_numbers,
        im_kw={"interpolation": "none"},  # a pixel for each cell
        xticks_rotation="horizontal" if are_short else "vertical",
        ax=figure.subplots(),
    )
    return _address(figure)


def _calibration_picture(is_right: Any, confidence: Any) -> str:
    """Return the calibration curve of the predicted classes as the address of a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.8, 3.2))
    ax = figure.subplots()
    CalibrationDisplay.from_predictions(
        is_right,
        confidence,
        n_bins=_N_BINS,
        strategy="quantile",
        pos_label=True,
        name=_OURS,
        ax=ax,
    )
    ax.set(xlabel="Probability of the predicted class", ylabel="Share of correct predictions")
    return _address(figure)


def _address(figure: Any) -> str:
    """Return a figure as the address of a picture, which contains it."""
    picture = io.BytesIO()
    figure.savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(picture.getvalue()).decode()


def _tokens(model: Any, documents: Any) -> list[tuple[Any, list[tuple[str, float]]]]:
    """Return each class and its most important tokens, with the widths of their bars in percent.

    There are none for a model whose decisions are no sums over tokens.
    """
    if sum_of(members_of(model), of_texts=False) is None:
        return []
    importance = token_importance(model, documents)
    largest = importance.to_numpy().max(initial=0.0)
    classes = []
    for label in importance.columns.tolist():
        bars = []
        for token, width in important_tokens(importance, label, _N_TOKENS).items():
            bars.append((str(token), 100 * width / largest))
        classes.append((label, bars))
    return classes


def _mistakes(model: Any, X: Any, labels: Any, wrong: NDArray[np.intp]) -> str:
    """Return the explanations of the first wrong predictions, as a part of a page."""
    numbers = wrong[:_N_MISTAKES]
    if not len(numbers):
        return Markup()
    explanation = explain(model, _rows(X, numbers), y_true=labels[numbers])
    return Markup(replace(explanation, index=numbers).to_html(fragment=True))


def _labels_to_check(model: Any, X: Any, y: Any) -> Table | str:
    """Return the documents whose labels the others contradict most; a text says why not."""
    try:
        issues = label_issues(model, X, y, top=_N_LABELS)
    except (TypeError, ValueError) as error:
        return str(error)
    issues = issues[issues["margin"] < 0]
    numbers = issues["document"].to_numpy()
    shares = map(percent, issues["probability"])
    heads = ["document", "label", "more likely", "probability of the label"]
    columns: list[Any] = [numbers, issues["label"], issues["suggested"], shares]
    if _are_texts(X):
        heads.append("text")
        columns.append(map(_excerpt, _rows(X, numbers)))
    return Table(heads, list(zip(*columns, strict=True)))


def _excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"
