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

from sklearn_clsattn.comparison._baselines import Model, default_models
from sklearn_clsattn.comparison._class_tokens import ClassTokens, class_tokens
from sklearn_clsattn.comparison._measurement import ModelResult, check_folds, measure
from sklearn_clsattn.comparison._texts import (
    check_texts,
    code_test_labels,
    count_tokens,
    shared_texts,
)


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


@dataclass(frozen=True, eq=False)
class FittedComparison:
    """A comparison with what it was measured on, for looking further into it.

    Classes are numbers here, places in ``result.classes``, and so they are to the estimators.

    Parameters
    ----------
    result : ComparisonResult
        The measurements.
    vectorizer : CountVectorizer
        What counted the tokens, fitted.
    estimators : list of estimator of length n_models
        The fitted models, in the order of ``result.models``.
    X, X_test : csr_matrix of shape (n_train, n_tokens) and (n_test, n_tokens)
        The token counts.
    y, y_test : ndarray of shape (n_train,) and (n_test,)
        The classes; those of test texts that training has not are -1.
    """

    result: ComparisonResult
    vectorizer: CountVectorizer
    estimators: list[Any]
    X: Any
    X_test: Any
    y: NDArray[np.intp]
    y_test: NDArray[np.intp]


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
    return fit_and_compare(
        train_texts,
        train_labels,
        test_texts,
        test_labels,
        ngram_range=ngram_range,
        min_df=min_df,
        tune=tune,
        models=models,
        n_top=n_top,
        progress=progress,
        random_state=random_state,
    ).result


def fit_and_compare(
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
) -> FittedComparison:
    """Compare models as :func:`compare` does, and keep them.

    Parameters
    ----------
    train_texts, train_labels, test_texts, test_labels, ngram_range, min_df, tune, models, n_top, \
            progress, random_state
        As in :func:`compare`.

    Returns
    -------
    fitted : FittedComparison
        The result, the fitted models, and the counts that they were fitted and measured on.

    Raises
    ------
    ValueError
        As :func:`compare` does.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import fit_and_compare
    >>> texts, labels = ["so good", "good fun", "so bad", "bad plot"], ["yes", "yes", "no", "no"]
    >>> fitted = fit_and_compare(texts, labels, ["good plot"], ["yes"])
    >>> code = fitted.estimators[0].predict(fitted.X_test)[0]
    >>> fitted.result.classes[code]
    'yes'
    """
    report = progress or (lambda _: None)
    models = default_models(random_state) if models is None else list(models)
    train_texts, train_labels = check_texts(train_texts, train_labels, "training")
    test_texts, test_labels = check_texts(test_texts, test_labels, "test")
    # Codes, so that no model pays for the type of the labels and all types of them will do.
    classes, y = np.unique(train_labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"all training labels are {classes.tolist()[0]!r}; expected two classes or more"
        )
    y_test, notes = code_test_labels(test_labels, classes)
    if tune:
        check_folds(classes, y)
    notes += shared_texts(train_texts, test_texts)

    report(Progress("vectorizing", None, 0, len(models)))
    import torch  # noqa: F401 - so that its import is in no model's time

    start = time.perf_counter()
    vectorizer, X = count_tokens(train_texts, ngram_range, min_df)
    X_test = vectorizer.transform(test_texts)
    vectorize_seconds = time.perf_counter() - start

    results: list[ModelResult] = []
    estimators: list[Any] = []
    tokens: list[ClassTokens] = []
    for n_done, model in enumerate(models):
        step = partial(_report, report, model.name, n_done, len(models))
        result, fitted, unconverged = measure(
            model, X, y, X_test, y_test, tune=tune, random_state=random_state, step=step
        )
        results.append(result)
        estimators.append(fitted)
        if unconverged:
            notes.append(f"{model.name} did not converge {unconverged}.")
        if model.kind == "ours":
            names = vectorizer.get_feature_names_out()
            tokens = class_tokens(fitted, X, names, classes=classes.tolist(), n_top=n_top)
        report(Progress("done", model.name, n_done + 1, len(models), result))
    compared = ComparisonResult(
        models=results,
        tokens=tokens,
        classes=classes.tolist(),
        n_train=len(y),
        n_test=len(y_test),
        n_tokens=X.shape[1],
        vectorize_seconds=vectorize_seconds,
        notes=notes,
    )
    return FittedComparison(compared, vectorizer, estimators, X, X_test, y, y_test)


def _report(
    report: Callable[[Progress], None],
    model: str,
    n_done: int,
    n_models: int,
    stage: Literal["tuning", "fitting"],
) -> None:
    report(Progress(stage, model, n_done, n_models))
