"""Our classifier and the usual ones on the same texts, measured alike."""

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC
from sklearn.utils.sparsefuncs import mean_variance_axis

from ._transformer import TokenImportanceTransformer
from ._validation import codes_of
from .metrics import expected_calibration_error
from .text import ContextVectorizer, TokenVectorizer, make_text_classifier

__all__ = ["Comparison", "Model", "ModelResult", "compare"]

Codes = NDArray[np.intp]
Texts = NDArray[np.object_]
Kind = Literal["ours", "baseline", "floor"]
Features = Literal["ours", "plain", "counts"]

_FEATURES: dict[Features, str] = {
    "ours": "our features (words, punctuation and characters by their context)",
    "plain": "the same features without context",
    "counts": "counts of words and their n-grams",
}


@dataclass(frozen=True)
class Model:
    """A model to compare, before it is fitted.

    Parameters
    ----------
    name : str
        Its name in tables.
    estimator : estimator
        An unfitted classifier of its features; it is cloned, never fitted itself.
    kind : {"ours", "baseline", "floor"}
        Its role. A floor is what any model must beat; it is never marked as the best.
    features : {"counts", "plain", "ours"}, default="counts"
        Counts of words and their n-grams, or what a
        :class:`~sklearn_clsattn.text.ContextVectorizer` makes without or with context.
    """

    name: str
    estimator: Any
    kind: Kind = "baseline"
    features: Features = "counts"


@dataclass(frozen=True)
class ModelResult:
    """The measurements of one model on the test texts.

    Parameters
    ----------
    name, kind : str
        As of the :class:`Model`.
    accuracy, macro_f1 : float
        Of all test texts.
    log_loss, calibration_error : float or None
        The former of the texts whose class is in training; None for a model without probabilities.
    fit_seconds, predict_seconds : float or None
        Of all training and all test texts, without vectorizing; None where not measured.
    """

    name: str
    kind: Kind
    accuracy: float
    macro_f1: float
    log_loss: float | None
    calibration_error: float | None
    fit_seconds: float | None = None
    predict_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Entrant:
    """A fitted model, its predicted positions among the classes, (n_test,), and probabilities.

    `proba`, (n_test, n_classes), is None for a model without them.
    """

    result: ModelResult
    estimator: Any
    predicted: Codes
    proba: NDArray[np.float64] | None


@dataclass(frozen=True)
class ClassTokens:
    """A class's most important tokens, with their effects, and its most selected ones.

    The latter, which have the highest attention of a document, are with the number of documents.
    """

    label: Any
    important: list[tuple[str, float]]
    selected: list[tuple[str, int]]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A comparison of models on the same texts: the fitted models and their measurements.

    Parameters
    ----------
    entrants : list
        For each model in the given order its `result`, the fitted `estimator`, and for the test
        texts the `predicted` positions among the classes and the probabilities `proba`, or None.
    tokens : list
        For each class of our model its `label` and its most `important` and most `selected`
        tokens; empty where our model was not compared.
    classes : list
        The classes of the training labels.
    train_texts, test_texts : ndarray of shape (n_train,) and (n_test,)
        The texts.
    vectorizer : ContextVectorizer or TokenVectorizer
        The fitted vectorizer of our model, or of the first model where ours was not compared.
    X, X_test : csr_matrix of shape (n_train, n_tokens) and (n_test, n_tokens)
        What it makes of the texts.
    y, y_test : ndarray of shape (n_train,) and (n_test,)
        Positions among `classes`; -1 for test texts of other classes.
    vectorize_seconds : dict of str to float
        For each `features` of a :class:`Model`, the seconds to make them of all texts.
    notes : list of str
        Caveats about the numbers, such as models that did not converge.
    """

    entrants: list[Entrant]
    tokens: list[ClassTokens]
    classes: list[Any]
    train_texts: Texts
    test_texts: Texts
    vectorizer: ContextVectorizer | TokenVectorizer
    X: Any
    X_test: Any
    y: Codes
    y_test: Codes
    vectorize_seconds: dict[Features, float]
    notes: list[str]

    @property
    def models(self) -> list[ModelResult]:
        """The measurements of each model."""
        return [entrant.result for entrant in self.entrants]

    @property
    def pipeline(self) -> Pipeline:
        """Our fitted model, from texts to labels; a ValueError where it was not compared."""
        ours = [entrant.estimator for entrant in self.entrants if entrant.result.kind == "ours"]
        if not ours:
            raise ValueError("the comparison has no model of kind 'ours'")
        return Pipeline([("vectorizer", self.vectorizer), ("classifier", ours[0])])

    def to_frame(self) -> pd.DataFrame:
        """Return the measurements, one row for each model, with the models' names as index."""
        return pd.DataFrame([asdict(model) for model in self.models]).set_index("name")

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
    models: Sequence[Model] | None = None,
    n_top: int = 10,
    progress: Callable[[int, int, ModelResult], None] | None = None,
) -> Comparison:
    """Fit models on the same texts, and measure them on others.

    Parameters
    ----------
    train_texts, test_texts : sequence of str of length n_train and n_test
        The texts to fit on and to measure on.
    train_labels, test_labels : array-like of shape (n_train,) and (n_test,)
        Their classes, of any type that can be sorted; numbers with fractions become strings.
    ngram_range : tuple (min_n, max_n), default=(1, 2)
        Lengths of the word sequences that are tokens.
    min_df : int or "auto", default="auto"
        Least number of training texts with a token; "auto" is 1 for fewer than 5,000 texts, else 2.
    models : sequence of Model, default=None
        None for our classifier, the usual linear ones and a majority vote.
    n_top : int, default=10
        Maximum number of tokens of each class.
    progress : callable, default=None
        Called after each model with the number of models done, that of all, and a
        :class:`ModelResult`.

    Returns
    -------
    comparison : Comparison
        The fitted models, their measurements, and the tokens of each class in ours.

    Notes
    -----
    Fit seconds include TF-IDF, but not making the matrix of counts, nor loading libraries.

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
    models = default_models() if models is None else list(models)
    if not models:
        raise ValueError("there are no models to compare")
    train_texts, train_labels = _checked_texts(train_texts, train_labels, "training")
    test_texts, test_labels = _checked_texts(test_texts, test_labels, "test")
    if has_fractions(train_labels):
        train_labels, test_labels = train_labels.astype(str), test_labels.astype(str)
    unique, y = np.unique(train_labels, return_inverse=True)
    classes = unique.tolist()
    if len(classes) < 2:
        raise ValueError(f"all training labels are {classes[0]!r}; expected two classes or more")
    y_test, notes = code_test_labels(test_labels, classes)
    notes += shared_texts(train_texts, test_texts)
    import torch  # noqa: F401 - so that its import is in no measurement

    made, vectorize_seconds = {}, {}
    for features in dict.fromkeys(model.features for model in models):
        start = time.perf_counter()
        vectorizer, X = _fit_features(features, train_texts, train_labels, ngram_range, min_df)
        made[features] = vectorizer, X, vectorizer.transform(test_texts)
        vectorize_seconds[features] = time.perf_counter() - start

    entrants: list[Entrant] = []
    tokens: list[ClassTokens] = []
    shown = next((model for model in models if model.kind == "ours"), models[0])
    for model in models:
        vectorizer, X, X_test = made[model.features]
        entrant, unconverged = measure(model, X, train_labels, X_test, y_test)
        entrants.append(entrant)
        notes += unconverged
        if model.kind == "ours":
            names = vectorizer.get_feature_names_out()
            tokens = class_tokens(entrant.estimator, X, names, n_top=n_top)
        if progress is not None:
            progress(len(entrants), len(models), entrant.result)
    vectorizer, X, X_test = made[shown.features]
    data = (classes, train_texts, test_texts, vectorizer, X, X_test, y, y_test)
    return Comparison(entrants, tokens, *data, vectorize_seconds, notes)


def default_models() -> list[Model]:
    """Return our classifier first, the usual linear ones, and a majority vote last."""
    logistic = make_pipeline(TfidfTransformer(), LogisticRegression())
    svc = make_pipeline(TfidfTransformer(), LinearSVC(random_state=0))
    log_odds = TokenImportanceTransformer("log_odds")
    nb_svm = make_pipeline(Binarizer(), log_odds, LogisticRegression())
    ours = make_text_classifier()["classifier"]
    return [
        Model("ClsAttentionClassifier", ours, kind="ours", features="ours"),
        Model("LogisticRegression, counts", LogisticRegression()),
        Model("LogisticRegression, TF-IDF", logistic),
        Model("MultinomialNB", MultinomialNB()),
        Model("NB-SVM (log-odds + LR)", nb_svm),
        Model("LinearSVC, TF-IDF", svc),
        Model("LogisticRegression, same features", logistic, features="plain"),
        Model("LinearSVC, same features", svc, features="plain"),
        # "prior" predicts the most frequent class, and has a meaningful log loss.
        Model("majority vote", DummyClassifier(strategy="prior"), kind="floor"),
    ]


def measure(
    model: Model, X: Any, y: NDArray[Any], X_test: Any, y_test: Codes
) -> tuple[Entrant, list[str]]:
    """Return a model fitted on labels `y` and scored, and a note if the fit did not converge."""
    estimator = clone(model.estimator)
    _warm_up(estimator, X, y)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(X, y)
    seconds = time.perf_counter() - start
    others = [one for one in caught if not issubclass(one.category, ConvergenceWarning)]
    for one in others:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    classes = np.unique(y).tolist()
    entrant = score(model.name, model.kind, estimator, X_test, y_test, classes, fit_seconds=seconds)
    note = f"{model.name} did not converge in the iterations it has by default."
    return entrant, [note] if len(caught) > len(others) else []


def score(
    name: str, kind: Kind, estimator: Any, documents: Any, y: Codes, classes: list[Any], **more: Any
) -> Entrant:
    """Return a fitted model's predictions for documents, with time and quality."""
    start = time.perf_counter()
    labels = estimator.predict(documents)
    seconds = time.perf_counter() - start
    predicted, proba, loss, error = codes_of(labels, classes), None, None, None
    if hasattr(estimator, "predict_proba"):
        proba = np.zeros((len(y), len(classes)))
        given = np.asarray(estimator.predict_proba(documents), dtype=np.float64)
        # Rows of float32 do not add up to exactly 1 in double precision.
        given = given / given.sum(axis=1, keepdims=True)
        proba[:, codes_of(estimator.classes_, classes)] = given
        is_seen, codes = y >= 0, np.arange(len(classes))
        loss = float(log_loss(y[is_seen], proba[is_seen], labels=codes))
        error = expected_calibration_error(y, proba, labels=codes)
    accuracy = float(accuracy_score(y, predicted))
    macro_f1 = float(f1_score(y, predicted, average="macro", zero_division=0.0))
    times = {"predict_seconds": seconds, **more}
    result = ModelResult(name, kind, accuracy, macro_f1, loss, error, **times)
    return Entrant(result, estimator, predicted, proba)


def class_tokens(
    classifier: Any, X: Any, names: Sequence[str] | NDArray[Any], *, n_top: int = 10
) -> list[ClassTokens]:
    """Return, for each class, its most important and its most selected tokens.

    `X` (n_documents, n_tokens) is what the classifier was fitted on. Importance is the effect on
    decisions (:func:`token_effects`); with an MLP, the value for the class, less its mean over the
    classes, times the standard deviation of attention.
    """
    values = values_by_class(classifier.token_values_)
    if classifier.mlp:  # decisions are not sums over tokens
        importance = _effects_of_values(values, classifier.attention(X))
    else:
        importance = token_effects(classifier, X)
    speaks_for = values.argmax(axis=0)
    selected = np.asarray(classifier.selected_tokens_)
    counts = np.asarray(classifier.selection_counts_)
    tokens = []
    for k, label in enumerate(classifier.classes_.tolist()):
        best = np.argsort(-importance[k], kind="stable")[:n_top]
        of_class = np.flatnonzero(speaks_for[selected] == k)[:n_top]
        important = [(str(names[s]), float(importance[k, s])) for s in best if importance[k, s] > 0]
        most = [(str(names[selected[i]]), int(counts[i])) for i in of_class]
        tokens.append(ClassTokens(label, important, most))
    return tokens


def token_effects(classifier: Any, X: Any) -> NDArray[np.float64]:
    """Return the effects (n_classes, n_tokens) of tokens on the decision for each class.

    An effect is the standard deviation, over the documents `X`, of what the token adds to the
    decision for the class less its mean over the classes, negative where it speaks against it.
    """
    if getattr(classifier, "n_layers", 1) == 1 and not classifier.mlp:
        return _effects_of_values(classifier.token_values_, classifier.attention(X))
    contributions = classifier.contributions(X)
    of_classes = contributions if isinstance(contributions, list) else [contributions]
    mean = sum(one.data for one in of_classes) / len(of_classes) if len(of_classes) > 1 else 0.0
    effects = []
    for one in of_classes:
        centred = sp.csr_matrix((one.data - mean, one.indices, one.indptr), one.shape)
        means, variances = mean_variance_axis(centred, axis=0)
        effects.append(np.sign(means) * np.sqrt(variances))
    return values_by_class(effects[0] if len(effects) == 1 else np.array(effects))


def values_by_class(values: ArrayLike) -> NDArray[np.float64]:
    """Return values (n_classes, n_tokens), also of two classes, which the second's stand for."""
    rows = np.asarray(values, dtype=np.float64)
    return np.stack([-rows, rows]) + 0.0 if rows.ndim == 1 else rows  # no negative zeros


def has_fractions(labels: NDArray[Any]) -> bool:
    """Return whether scikit-learn would take labels for targets of a regression."""
    return labels.dtype.kind == "f" and not np.equal(labels, np.floor(labels)).all()


def shared_texts(train_texts: NDArray[Any], test_texts: NDArray[Any]) -> list[str]:
    """Return a note on the number of test texts that are also in training, if there are any."""
    n_shared = len(set(train_texts.tolist()).intersection(test_texts.tolist()))
    return [f"{n_shared:,} distinct test texts are also in the training set."] if n_shared else []


def code_test_labels(test_labels: NDArray[Any], classes: list[Any]) -> tuple[Codes, list[str]]:
    """Return the test labels' positions among the classes, and notes on those without one."""
    y_test = codes_of(test_labels, classes)
    is_unseen = y_test < 0
    labels = ", ".join(sorted({repr(label) for label in test_labels[is_unseen].tolist()})[:5])
    if is_unseen.all():
        few = ", ".join(map(repr, classes[:5]))
        raise ValueError(
            f"no test label occurs in training: test labels are {labels}, training labels {few}"
        )
    note = (
        f"{is_unseen.sum():,} of {len(y_test):,} test texts have labels that are not in training "
        f"({labels}): all models miss them, and log loss leaves them out."
    )
    return y_test, [note] if labels else []


def seconds_by_features(seconds: dict[Features, float]) -> str:
    """Return the seconds that features took to make, in words."""
    return ", ".join(f"{_FEATURES[of]} {spent:.2f} s" for of, spent in seconds.items())


def shown_measure(
    models: Sequence[ModelResult],
    missing: str,
    name: str,
    form: str,
    best_of: Callable[[list[float]], float],
) -> list[tuple[str, bool]]:
    """Return a measure of each model as text, and whether it is the best of several."""
    values = [getattr(model, name) for model in models]
    texts = [missing if value is None else format(value, form) for value in values]
    no_floor = [model.kind != "floor" for model in models]
    ranked = [value for value in compress(values, no_floor) if value is not None]
    best = format(best_of(ranked), form) if len(ranked) > 1 else None
    return [(text, able and text == best) for text, able in zip(texts, no_floor, strict=True)]


def _fit_features(
    features: Features, texts: Texts, labels: NDArray[Any], ngram_range: Any, min_df: Any
) -> tuple[TokenVectorizer | ContextVectorizer, Any]:
    """Return the fitted vectorizer of some features, and the texts' CSR (n_texts, n_features)."""
    if features not in _FEATURES:
        raise ValueError(f"a model's features must be one of {[*_FEATURES]}, got {features!r}")
    if features != "counts":
        is_gated = features == "ours"
        gated = ContextVectorizer(ngram_range=ngram_range, min_df=min_df, context=is_gated)
        return gated, gated.fit_transform(texts, labels)
    least = (1 if len(texts) < 5000 else 2) if min_df == "auto" else min_df
    vectorizer = TokenVectorizer(ngram_range=ngram_range, min_df=least)
    return vectorizer, vectorizer.fit_transform(texts)


def _checked_texts(texts: Any, labels: ArrayLike, which: str) -> tuple[Texts, NDArray[Any]]:
    """Return the `which` texts and labels as arrays of shape (n_texts,), or raise ValueError."""
    texts, labels = np.asarray(texts, dtype=object), np.asarray(labels)
    if texts.ndim != 1 or not len(texts) or labels.shape != texts.shape:
        raise ValueError(
            f"expected {which} texts and one label for each, got texts of shape {texts.shape} and "
            f"labels of shape {labels.shape}"
        )
    return texts, labels


def _warm_up(estimator: Any, X: Any, y: NDArray[Any]) -> None:
    """Fit a copy on three texts of each class, so that libraries load before anything is timed."""
    few = pd.Series(y).groupby(y).head(3).index.to_numpy()
    # Errors and warnings here also occur, and are reported, in the fit that is measured.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        clone(estimator).fit(X[few], y[few])


def _effects_of_values(values: ArrayLike, attention: Any) -> NDArray[np.float64]:
    """Return the effects (n_classes, n_tokens) of tokens that contribute attention times value."""
    centred = values_by_class(values)
    variances = mean_variance_axis(sp.csr_matrix(attention), axis=0)[1]
    return np.asarray((centred - centred.mean(axis=0)) * np.sqrt(variances) + 0.0)  # no -0.0
