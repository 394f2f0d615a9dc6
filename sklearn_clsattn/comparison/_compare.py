"""Fit our classifier and the usual ones on the same texts, and compare their measurements."""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from sklearn_clsattn.comparison._baselines import Features, Model, default_models
from sklearn_clsattn.comparison._class_tokens import ClassTokens, class_tokens
from sklearn_clsattn.comparison._measurement import Entrant, ModelResult, check_folds, measure
from sklearn_clsattn.comparison._texts import (
    check_texts,
    code_test_labels,
    fit_features,
    shared_texts,
)
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer


@dataclass(frozen=True)
class Progress:
    """The progress of a comparison.

    Parameters
    ----------
    stage : {"vectorizing", "tuning", "fitting", "done"}
        The stage that starts; "done" is the end of one model.
    model : str or None
        Name of the model, None while vectorizing.
    n_done, n_models : int
        The number of models that are done, and of all models.
    result : ModelResult or None
        The model's measurements, once it is done.
    """

    stage: Literal["vectorizing", "tuning", "fitting", "done"]
    model: str | None
    n_done: int
    n_models: int
    result: ModelResult | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A comparison of models on the same texts: the fitted models and their measurements.

    Classes are coded as positions in `classes`, also in the estimators.

    Parameters
    ----------
    entrants : list of Entrant
        The fitted models with their predictions and measurements, in the order in which they were
        given.
    tokens : list of ClassTokens
        The most important and most selected tokens of our model; empty where it was not compared.
    classes : list
        The classes of the training labels.
    train_texts, test_texts : ndarray of shape (n_train,) and (n_test,)
        The texts.
    vectorizer : ContextVectorizer or TokenVectorizer
        The fitted vectorizer of our model, or of the first model where ours was not compared.
    X, X_test : csr_matrix of shape (n_train, n_tokens) and (n_test, n_tokens)
        What it makes of the texts.
    y, y_test : ndarray of shape (n_train,) and (n_test,)
        The classes; -1 for test texts of classes that are not in training.
    vectorize_seconds : dict of str to float
        For each kind of features that a model takes, see :class:`Model`, seconds to make them of
        all texts, once for all models.
    notes : list of str
        Caveats about the numbers, such as models that did not converge.
    """

    entrants: list[Entrant]
    tokens: list[ClassTokens]
    classes: list[Any]
    train_texts: NDArray[np.object_]
    test_texts: NDArray[np.object_]
    vectorizer: ContextVectorizer | TokenVectorizer
    X: Any
    X_test: Any
    y: NDArray[np.intp]
    y_test: NDArray[np.intp]
    vectorize_seconds: dict[Features, float]
    notes: list[str]

    @property
    def models(self) -> list[ModelResult]:
        """The measurements of each model."""
        return [entrant.result for entrant in self.entrants]

    @property
    def pipeline(self) -> Pipeline:
        """Our fitted model, from texts to labels.

        Raises
        ------
        ValueError
            If it was not compared.
        """
        ours = next((one for one in self.entrants if one.result.kind == "ours"), None)
        if ours is None:
            raise ValueError("the comparison has no model of kind 'ours'")
        vectorizer, labelled = copy.copy(self.vectorizer), copy.copy(ours.estimator)
        # As objects, so that strings of any length are unchanged.
        dtype = object if isinstance(self.classes[0], str) else None
        for step in (vectorizer, labelled):
            if hasattr(step, "classes_"):
                step.classes_ = np.array(self.classes, dtype=dtype)
        if isinstance(labelled.class_weight, dict):
            weights = {self.classes[k]: weight for k, weight in labelled.class_weight.items()}
            labelled.class_weight = weights
        return Pipeline([("vectorizer", vectorizer), ("classifier", labelled)])

    def to_frame(self) -> pd.DataFrame:
        """Return the measurements, one row for each model, with the models' names as index."""
        return pd.DataFrame([asdict(model) for model in self.models]).set_index("name")

    def to_dict(self) -> dict[str, Any]:
        """Return the measurements as dictionaries, lists and plain values, which JSON can hold.

        Returns
        -------
        comparison : dict
            With `models`, `tokens`, `classes`, the numbers of texts and tokens `n_train`, `n_test`
            and `n_tokens`, `vectorize_seconds` and `notes`.
        """
        return {
            "models": [asdict(model) for model in self.models],
            "tokens": [asdict(tokens) for tokens in self.tokens],
            "classes": self.classes,
            "n_train": len(self.y),
            "n_test": len(self.y_test),
            "n_tokens": self.X.shape[1],
            "vectorize_seconds": self.vectorize_seconds,
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        reached = ", ".join(f"{model.name} {model.accuracy:.3f}" for model in self.models)
        return f"<Comparison on {len(self.y_test):,} test texts: accuracy {reached}>"


def compare(
    train_texts: Sequence[str] | NDArray[Any],
    train_labels: ArrayLike,
    test_texts: Sequence[str] | NDArray[Any],
    test_labels: ArrayLike,
    *,
    ngram_range: tuple[int, int] = (1, 2),
    min_df: int | Literal["auto"] = "auto",
    tune: bool = False,
    models: Sequence[Model] | None = None,
    n_top: int = 10,
    progress: Callable[[Progress], None] | None = None,
    random_state: int | None = 0,
) -> Comparison:
    """Fit models on the same texts, and measure them on others.

    Parameters
    ----------
    train_texts, test_texts : sequence of str of length n_train and n_test
        The texts to fit on and to measure on.
    train_labels, test_labels : array-like of shape (n_train,) and (n_test,)
        Their classes, of any type that can be sorted.
    ngram_range : tuple (min_n, max_n), default=(1, 2)
        Lengths of the word sequences that are tokens.
    min_df : int or "auto", default="auto"
        Word sequences in fewer training texts are left out; "auto" is 1 for fewer than
        5,000 texts, else 2.
    tune : bool, default=False
        Choose each baseline's regularisation by accuracy in 3-fold cross-validation first; ours
        chooses its own in any case.
    models : sequence of Model, default=None
        The models to compare; None for :func:`default_models`.
    n_top : int, default=10
        Maximum number of tokens of each class to return.
    progress : callable, default=None
        Called with a :class:`Progress` when a stage starts or a model is done.
    random_state : int or None, default=0
        Seed of the folds and of models that draw random numbers.

    Returns
    -------
    comparison : Comparison
        The fitted models, their measurements, and the most important tokens of each class in ours.

    Raises
    ------
    ValueError
        If there are no models, texts are not strings, texts and labels differ in number, there are
        fewer than two classes, no token is left, no test label occurs in training, a class weight
        is that of no class, or with `tune` a class has fewer texts than there are folds.

    Notes
    -----
    Models of the same kind of features, see :class:`Model`, get the same matrix; transforming it,
    as to TF-IDF, is part of their fit seconds, and making it is not. PyTorch is imported, and each
    model fitted on a few texts, before anything is timed, so that the time to load libraries is in
    no measurement.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import compare
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> texts, y = make_token_classification(n_samples=300, as_text=True, random_state=0)
    >>> comparison = compare(texts[:200], y[:200], texts[200:], y[200:])
    >>> comparison.models[0].name, comparison.models[0].accuracy > 0.8
    ('ClsAttentionClassifier', True)
    >>> [tokens.label for tokens in comparison.tokens]
    [0, 1]
    """
    report = progress or (lambda _: None)
    models = default_models(random_state) if models is None else list(models)
    if not models:
        raise ValueError("there are no models to compare")
    train_texts, train_labels = check_texts(train_texts, train_labels, "training")
    test_texts, test_labels = check_texts(test_texts, test_labels, "test")
    # Codes, so that labels of any type work and their type is in no measurement.
    unique, y = np.unique(train_labels, return_inverse=True)
    classes = unique.tolist()
    if len(classes) < 2:
        raise ValueError(f"all training labels are {classes[0]!r}; expected two classes or more")
    y_test, notes = code_test_labels(test_labels, classes)
    if tune:
        check_folds(classes, y)
    notes += shared_texts(train_texts, test_texts)

    report(Progress("vectorizing", None, 0, len(models)))
    import torch  # noqa: F401 - so that its import is in no measurement

    made, vectorize_seconds = {}, {}
    for features in dict.fromkeys(model.features for model in models):
        start = time.perf_counter()
        vectorizer, X = fit_features(features, train_texts, y, ngram_range, min_df)
        made[features] = vectorizer, X, vectorizer.transform(test_texts)
        vectorize_seconds[features] = time.perf_counter() - start

    entrants: list[Entrant] = []
    tokens: list[ClassTokens] = []
    for model in models:
        place = model.name, len(entrants), len(models)
        vectorizer, X, X_test = made[model.features]

        def step(stage: Literal["tuning", "fitting"], place: tuple[str, int, int] = place) -> None:
            report(Progress(stage, *place))

        entrant, unconverged = measure(
            *(model, X, y, X_test, y_test),
            classes=classes,
            tune=tune,
            random_state=random_state,
            step=step,
        )
        entrants.append(entrant)
        notes += unconverged
        if model.kind == "ours":
            names = vectorizer.get_feature_names_out()
            tokens = class_tokens(entrant.estimator, X, names, classes=classes, n_top=n_top)
        report(Progress("done", model.name, len(entrants), len(models), entrant.result))
    shown = next((model for model in models if model.kind == "ours"), models[0])
    vectorizer, X, X_test = made[shown.features]
    return Comparison(
        entrants=entrants,
        tokens=tokens,
        classes=classes,
        train_texts=train_texts,
        test_texts=test_texts,
        vectorizer=vectorizer,
        X=X,
        X_test=X_test,
        y=y,
        y_test=y_test,
        vectorize_seconds=vectorize_seconds,
        notes=notes,
    )
