"""What the displays share: the way to a fitted model, matplotlib imported late, one style.

Blue speaks for a class, orange against it (of two classes, for the first): apart for colour-blind
readers and in grey print. Everything else takes the colour of the reader's own style, so that
displays can be read on dark backgrounds as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from .._classifier import ClsAttentionClassifier
from .._validation import check_non_negative

FOR, AGAINST, NEUTRAL = "#0072B2", "#D55E00", "#8C8C8C"

Array = NDArray[np.float64]


def classifier_of(estimator: Any) -> ClsAttentionClassifier:
    """Return the fitted attention classifier that `estimator` is, or that its Pipeline ends in."""
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    if not isinstance(last, ClsAttentionClassifier):
        found = type(last).__name__
        ends = f"a Pipeline that ends in {found}" if isinstance(estimator, Pipeline) else found
        raise TypeError(
            "Expected a fitted ClsAttentionClassifier, or a fitted Pipeline that ends in one, "
            f"got {ends}."
        )
    check_is_fitted(last)
    return last


def token_names_of(estimator: Any) -> NDArray[np.object_]:
    """Return the tokens' names: those of the steps before, else of the fit, else indices."""
    classifier = classifier_of(estimator)
    names = getattr(classifier, "feature_names_in_", None)
    before = _steps_before(estimator)
    if before:
        try:
            names = Pipeline(before).get_feature_names_out()
        except (AttributeError, ValueError):
            # A hashing vectorizer and the like have no names, and say so in either way.
            names = None
    if names is None or len(names) != classifier.n_features_in_:
        names = np.arange(classifier.n_features_in_)
    return np.array([str(name) for name in names], dtype=object)


def token_matrix(estimator: Any, X: Any) -> sp.csr_array:
    """Return documents as the classifier gets them, every entry stored once; `X` is unchanged."""
    classifier = classifier_of(estimator)
    before = _steps_before(estimator)
    for _, step in before:  # not a Pipeline of them, which may think that it is not fitted
        X = step.transform(X)
    if not before and _are_texts(X):
        raise ValueError(
            f"Expected a token matrix of shape (n_documents, {classifier.n_features_in_}), got "
            "texts: pass the fitted Pipeline of vectorizer and classifier, or vectorize them."
        )
    X = validate_data(classifier, X, accept_sparse="csr", accept_large_sparse=True, reset=False)
    check_non_negative(X, classifier)
    if not sp.issparse(X):
        return sp.csr_array(np.asarray(X, dtype=np.float64))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return sp.csr_array(X)


@contextmanager
def names_checked() -> Iterator[None]:
    """Let a matrix without names into a model that was fitted with them.

    :func:`token_matrix` has compared the names, and sparse matrices cannot carry them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _steps_before(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps before the classifier, without those that do nothing."""
    steps: list[tuple[str, Any]] = []
    while isinstance(estimator, Pipeline):
        steps += [step for step in estimator.steps[:-1] if step[1] not in (None, "passthrough")]
        estimator = estimator.steps[-1][1]
    # Pipelines within pipelines may have steps of the same name.
    return [(f"{place}", step) for place, (_, step) in enumerate(steps)]


def _are_texts(X: Any) -> bool:
    if isinstance(X, str):
        return True
    if sp.issparse(X) or not hasattr(X, "__len__") or getattr(X, "ndim", 1) != 1:
        return False
    return any(isinstance(document, str) for document in X)


def places_of(target: Any, classes: NDArray[Any]) -> list[int] | None:
    """Return the places in `classes` of one label or of a list of them; None for None."""
    if target is None:
        return None
    many = isinstance(target, list | tuple) or getattr(target, "ndim", 0) == 1
    labels = list(target) if many else [target]
    if not labels:
        raise ValueError("target must be a class or a list of classes, got an empty list.")
    known = classes.tolist()
    for label in labels:
        if label not in known:
            raise ValueError(f"target must be one of the classes {known}, got {label!r}.")
    return [known.index(label) for label in labels]


def per_class(numbers: ArrayLike, n_classes: int, n_tokens: int, name: str) -> Array:
    """Return one row a class. For two classes one row is given, and speaks against the first."""
    rows = np.asarray(numbers, dtype=np.float64)
    if n_classes == 2 and rows.shape == (n_tokens,):
        rows = np.stack([-rows, rows]) + 0.0  # no negative zeros
    if rows.shape != (n_classes, n_tokens):
        expected = f"({n_tokens},)" if n_classes == 2 else f"({n_classes}, {n_tokens})"
        raise ValueError(
            f"{name} must have shape {expected} for {n_classes} classes and {n_tokens} tokens, "
            f"got {np.shape(numbers)}."
        )
    return finite(rows, name)


def per_token(numbers: ArrayLike, n_tokens: int, name: str) -> Array:
    """Return one finite number a token."""
    row = np.asarray(numbers, dtype=np.float64)
    if row.shape != (n_tokens,):
        raise ValueError(
            f"{name} must have shape ({n_tokens},), one entry a token, got {row.shape}."
        )
    return finite(row, name)


def finite(numbers: Array, name: str) -> Array:
    """Return `numbers`, which must be finite."""
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity.")
    return numbers


def names_or_indices(names: Any, n_tokens: int) -> NDArray[np.object_]:
    """Return one string a token."""
    if names is None:
        names = range(n_tokens)
    if len(names) != n_tokens:
        raise ValueError(f"token_names must be {n_tokens} names, one a token, got {len(names)}.")
    return np.array([str(name) for name in names], dtype=object)


def at_least_one(number: int, name: str) -> int:
    """Return `number`, which must be a positive integer."""
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {number!r}.")
    return int(number)


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib, which is in the optional extra 'plot': "
            "pip install 'sklearn-clsattn[plot]'"
        ) from error
    return plt


def axes_for(ax: Any, n_panels: int, n_columns: int, size: tuple[float, float]) -> list[Any]:
    """Return the axes given, or those of a new figure with panels of `size` inches."""
    plt = import_pyplot()
    if ax is None:
        n_rows = -(-n_panels // n_columns)
        figure, grid = plt.subplots(
            n_rows,
            n_columns,
            figsize=(size[0] * n_columns, size[1] * n_rows),
            layout="constrained",
            squeeze=False,
        )
        axes = grid.ravel().tolist()
        for surplus in axes[n_panels:]:
            figure.delaxes(surplus)
        return list(axes[:n_panels])
    axes = np.ravel(np.asarray(ax, dtype=object)).tolist()
    wrong = next((one for one in axes if not hasattr(one, "transAxes")), None)
    if wrong is not None:
        raise TypeError(f"ax must be matplotlib axes or an array of them, got {wrong!r}.")
    if len(axes) != n_panels:
        raise ValueError(
            f"ax must hold as many axes as are drawn, {n_panels}, but holds {len(axes)}: make them "
            f"with plt.subplots(1, {n_panels}), or leave ax out."
        )
    return axes


def as_drawn(axes: list[Any]) -> Any:
    """Return what `ax_` is: the axes, or an array of them where there are several."""
    if len(axes) == 1:
        return axes[0]
    array = np.empty(len(axes), dtype=object)
    array[:] = axes
    return array


def ink() -> Any:
    """Return the colour of text in the reader's style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def tidy(ax: Any, title: str | None = None) -> None:
    """Take away what frames the axes, and set a title; it is never read as mathematics."""
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title, loc="left", fontsize="medium", parse_math=False)


def shown(name: Any, limit: int = 28) -> str:
    """Return a name as it is drawn.

    White space that would not be seen is drawn as signs. Long names lose their middle: n-grams
    often differ at their end alone.
    """
    text = str(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    core = text.strip(" ")
    left = len(text) - len(text.lstrip(" ")) if core else len(text)
    right = len(text) - len(text.rstrip(" ")) if core else 0
    text = "␣" * left + core + "␣" * right
    if not text:
        return "(empty)"
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def class_name(label: Any, limit: int = 20) -> str:
    """Return a class label as it is drawn; a bare number would not be known for one."""
    return shown(label if isinstance(label, str) else f"class {label}", limit)


def signed(number: float) -> str:
    """Return a number with two decimals and its sign; a plain 0 where it is exactly that."""
    return f"{number:+.2f}".replace("-", "−") if number else "0"


def few_ticks(axis: Any, at_most: int, *, whole: bool = False) -> None:
    """Let an axis have so few ticks that their labels stand apart, if asked at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(at_most, steps=[1, 2, 2.5, 5, 10], integer=whole))


def named_bars(
    ax: Any,
    names: list[str],
    lengths: ArrayLike,
    colours: Any,
    notes: list[str] | None = None,
    reach: ArrayLike | None = None,
    room: int = 3,
) -> None:
    """Draw horizontal bars, the first on top, with names at the left and notes at their ends.

    `reach` is where a note stands, if not at the end of its bar; `room` for how many bars there is
    at least, so that few ones are not fat.
    """
    lengths = np.asarray(lengths, dtype=np.float64)
    places = np.arange(len(lengths))
    ax.barh(places, lengths, color=colours, height=0.72, linewidth=0, zorder=2)
    ax.set_yticks(places, names, parse_math=False, fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(lengths), room) - 0.4, -0.6)
    for place, note, end in zip(
        places, notes or [], lengths if reach is None else np.asarray(reach), strict=False
    ):
        ax.annotate(
            note,
            (end, place),
            xytext=(3 if end >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if end >= 0 else "right",
            va="center_baseline",
            fontsize=8,
            parse_math=False,
        )


def apart(ax: Any, rows: NDArray[np.bool_]) -> None:
    """Write names of rows that are no tokens in italics, so that they are not taken for tokens."""
    for label, row in zip(ax.get_yticklabels(), rows, strict=True):
        if row:
            label.set_style("italic")


def say_nothing(ax: Any, why: str) -> None:
    """Write in empty axes why they are empty."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes, parse_math=False)
