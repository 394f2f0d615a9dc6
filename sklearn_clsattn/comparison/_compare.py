"""Fit our classifier and the usual ones on the same texts, and measure them alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from sklearn_clsattn.comparison._baselines import Model, default_models
from sklearn_clsattn.comparison._class_tokens import ClassTokens, class_tokens
from sklearn_clsattn.comparison._measurement import ModelResult, check_folds, measure


@dataclass(frozen=True)
class Progress:
    """How far a comparison has come.

    Parameters
    ----------
    stage : {"vectorizing", "tuning", "fitting", "done"}
        What starts now; "done" is the end of one model.
    model : str or None
        Name of the model, None while vectorizing.
    n_done, n_models : int
        How many models are done, and how many there are.
    result : ModelResult or None
        What the model reached, where it is done.
    """

    stage: Literal["vectorizing", "tuning", "fitting", "done"]
    model: str | None
    n_done: int
    n_models: int
    result: ModelResult | None = None


@dataclass(frozen=True)
class ComparisonResult:
    """A comparison of models on the same texts.

    Parameters
    ----------
    models : list of ModelResult
        One a model, in the order in which they were given.
    tokens : list of ClassTokens
        The tokens by which our model tells each class; empty where it was not compared.
    classes : list
        The classes of the training labels.
    n_train, n_test, n_tokens : int
        Numbers of training texts, of test texts and of different tokens.
    vectorize_seconds : float
        Of counting the tokens of all texts, once for all models.
    notes : list of str
        What a reader of the numbers must know, such as models that did not converge.
    """

    models: list[ModelResult]
    tokens: list[ClassTokens]
    classes: list[Any]
    n_train: int
    n_test: int
    n_tokens: int
    vectorize_seconds: float
    notes: list[str]

    def frame(self) -> pd.DataFrame:
        """Return the measurements, one row a model, with the models' names as index."""
        return pd.DataFrame([asdict(model) for model in self.models]).set_index("name")


def compare(
    train_texts: Sequence[str] | NDArray[Any],
    train_labels: ArrayLike,
    test_texts: Sequence[str] | NDArray[Any],
    test_labels: ArrayLike,
    *,
    ngram_range: tuple[int, int] = (1, 1),
    min_df: int = 2,
    tune: bool = False,
    models: Sequence[Model] | None = None,
    n_top: int = 10,
    progress: Callable[[Progress], None] | None = None,
    random_state: int | None = 0,
) -> ComparisonResult:
    """Fit models on the same token counts of the same texts, and measure them on others.

    Parameters
    ----------
    train_texts, test_texts : sequence of str of length n_train and n_test
        The texts to fit on and to measure on.
    train_labels, test_labels : array-like of shape (n_train,) and (n_test,)
        Their classes, of any type that can be sorted.
    ngram_range : tuple (min_n, max_n), default=(1, 1)
        Lengths of the word sequences that are tokens.
    min_df : int, default=2
        Tokens in fewer training texts are left out.
    tune : bool, default=False
        Choose each model's regularisation by accuracy in 3-fold cross-validation first.
    models : sequence of Model, default=None
        What to compare; None for :func:`default_models`.
    n_top : int, default=10
        How many tokens of each class to return, at most.
    progress : callable, default=None
        Called with a :class:`Progress` whenever something starts or is done.
    random_state : int or None, default=0
        Seed of the folds and of models that draw random numbers.

    Returns
    -------
    result : ComparisonResult
        The measurements, and the tokens by which our model tells the classes.

    Raises
    ------
    ValueError
        If texts are not text, texts and labels differ in number, there are fewer than two classes,
        no token is left, no test label occurs in training, or with `tune` a class has fewer texts
        than there are folds.

    Notes
    -----
    All models get the same matrix of counts; what they make of it, such as TF-IDF, is part of
    their fit seconds. PyTorch is imported, and each model fitted on a few texts, before anything
    is timed, so that no model pays for loading libraries.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import compare
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> texts, y = make_token_classification(n_samples=300, as_text=True, random_state=0)
    >>> result = compare(texts[:200], y[:200], texts[200:], y[200:])
    >>> result.models[0].name, result.models[0].accuracy > 0.8
    ('ClsAttentionClassifier', True)
    >>> [tokens.label for tokens in result.tokens]
    [0, 1]
    """
    report = progress or (lambda _: None)
    models = default_models(random_state) if models is None else list(models)
    train_texts, train_labels = _check_texts(train_texts, train_labels, "training")
    test_texts, test_labels = _check_texts(test_texts, test_labels, "test")
    # Codes, so that no model pays for the type of the labels and all types of them will do.
    classes, y = np.unique(train_labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"all training labels are {classes.tolist()[0]!r}; expected two classes or more"
        )
    y_test, notes = _code_test_labels(test_labels, train_labels, classes)
    if tune:
        check_folds(classes, y)
    n_shared = len(set(train_texts.tolist()).intersection(test_texts.tolist()))
    if n_shared:
        notes.append(f"{n_shared:,} different test texts also stand in the training set.")

    report(Progress("vectorizing", None, 0, len(models)))
    import torch  # noqa: F401 - so that its import is in no model's time

    start = time.perf_counter()
    vectorizer, X = count_tokens(train_texts, ngram_range, min_df)
    X_test = vectorizer.transform(test_texts)
    vectorize_seconds = time.perf_counter() - start

    results: list[ModelResult] = []
    tokens: list[ClassTokens] = []
    for n_done, model in enumerate(models):
        step = partial(_report, report, model.name, n_done, len(models))
        result, fitted, unconverged = measure(
            model, X, y, X_test, y_test, tune=tune, random_state=random_state, step=step
        )
        results.append(result)
        if unconverged:
            notes.append(f"{model.name} did not converge {unconverged}.")
        if model.kind == "ours":
            names = vectorizer.get_feature_names_out()
            tokens = class_tokens(fitted, X, names, classes=classes.tolist(), n_top=n_top)
        report(Progress("done", model.name, n_done + 1, len(models), result))
    return ComparisonResult(
        models=results,
        tokens=tokens,
        classes=classes.tolist(),
        n_train=len(y),
        n_test=len(y_test),
        n_tokens=X.shape[1],
        vectorize_seconds=vectorize_seconds,
        notes=notes,
    )


def count_tokens(
    texts: Sequence[str] | NDArray[Any], ngram_range: tuple[int, int], min_df: int
) -> tuple[CountVectorizer, Any]:
    """Fit a vectorizer on texts and count their tokens.

    Parameters
    ----------
    texts : sequence of str of length n_texts
        The texts.
    ngram_range : tuple (min_n, max_n)
        Lengths of the word sequences that are tokens.
    min_df : int
        Tokens in fewer texts are left out.

    Returns
    -------
    vectorizer : CountVectorizer
        The fitted vectorizer.
    X : csr_matrix of shape (n_texts, n_tokens)
        The counts.

    Raises
    ------
    ValueError
        If no token is left.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import count_tokens
    >>> vectorizer, X = count_tokens(["so good", "so bad"], (1, 1), min_df=2)
    >>> vectorizer.get_feature_names_out().tolist(), X.toarray().tolist()
    (['so'], [[1], [1]])
    """
    vectorizer = CountVectorizer(ngram_range=ngram_range, min_df=min_df)
    try:
        return vectorizer, vectorizer.fit_transform(texts)
    except ValueError as error:
        raise ValueError(
            f"no word of the {len(texts):,} training texts stands in {min_df} of them or more, so "
            "there is nothing to learn from: lower min_df, or give more texts"
        ) from error


def hold_out(
    texts: Sequence[str] | NDArray[Any],
    labels: ArrayLike,
    *,
    share: float = 0.2,
    random_state: int | None = 0,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Split texts into some to fit on and some to measure on, each with all classes.

    Parameters
    ----------
    texts : sequence of str of length n_texts
        The texts.
    labels : array-like of shape (n_texts,)
        Their classes.
    share : float, default=0.2
        Share of the texts, of every class, to measure on.
    random_state : int or None, default=0
        Seed of the split.

    Returns
    -------
    train_texts, train_labels, test_texts, test_labels : ndarray
        The two parts, in the order in which :func:`compare` takes them.

    Raises
    ------
    ValueError
        If there are too few texts to have all classes in both parts.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import hold_out
    >>> parts = hold_out([f"text {i}" for i in range(10)], [0, 1] * 5)
    >>> [len(part) for part in parts]
    [8, 8, 2, 2]
    """
    texts, labels = _check_texts(texts, labels, "training")
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"all labels are {classes.tolist()[0]!r}; expected two classes or more")
    if sizes.min() < 2 or round(share * len(texts)) < len(classes):
        raise ValueError(
            f"cannot hold out {share:.0%} of {len(texts)} texts with all {len(classes)} classes on "
            f"both sides (the smallest, {classes[sizes.argmin()]!s}, has {sizes.min()}); give more "
            "texts, or a test set of its own"
        )
    train, test = train_test_split(
        np.arange(len(texts)), test_size=share, stratify=labels, random_state=random_state
    )
    return texts[train], labels[train], texts[test], labels[test]


def _report(
    report: Callable[[Progress], None],
    model: str,
    n_done: int,
    n_models: int,
    stage: Literal["tuning", "fitting"],
) -> None:
    report(Progress(stage, model, n_done, n_models))


def _check_texts(
    texts: Any, labels: ArrayLike, which: str
) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Return texts and labels as arrays of equal length, or say what is wrong with them."""
    if isinstance(texts, str):
        raise ValueError(f"expected a sequence of {which} texts, got one text")
    texts = np.asarray(texts, dtype=object)
    labels = np.asarray(labels)
    if texts.ndim != 1 or labels.ndim != 1 or len(texts) != len(labels):
        raise ValueError(
            f"expected one label for each {which} text, got texts of shape {texts.shape} and "
            f"labels of shape {labels.shape}"
        )
    if not len(texts):
        raise ValueError(f"there are no {which} texts")
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise ValueError(f"expected {which} texts to be strings, got {wrong!r}")
    return texts, labels


def _code_test_labels(
    test_labels: NDArray[Any], train_labels: NDArray[Any], classes: NDArray[Any]
) -> tuple[NDArray[np.intp], list[str]]:
    """Return the test labels' places among the classes, -1 where they have none, and notes."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    y_test = np.array([place.get(label, -1) for label in test_labels.tolist()])
    unseen = y_test < 0
    if unseen.all():
        few = ", ".join(repr(label) for label in classes.tolist()[:5])
        raise ValueError(
            f"no test label occurs in training: test labels are such as {test_labels.tolist()[0]!r}"
            f", training labels {few}"
        )
    if not unseen.any():
        return y_test, []
    labels = ", ".join(sorted({repr(label) for label in test_labels[unseen].tolist()})[:5])
    return y_test, [
        f"{unseen.sum():,} of {len(y_test):,} test texts have labels that training has not "
        f"({labels}): all models miss them, and log loss leaves them out."
    ]
