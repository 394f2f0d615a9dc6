"""What a report is made from: a fitted model, its documents, and the predictions of all models."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.dummy import DummyClassifier

from ..._base import BaseAttentionClassifier
from ..._validation import codes_of
from ...comparison import (
    ClassTokens,
    Comparison,
    Entrant,
    class_tokens,
    code_test_labels,
    default_models,
    measure,
    score,
    shared_texts,
)
from .._explain import explain
from ..displays._inputs import named_classifier, token_matrix

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Predictions:
    """A fitted model, the documents, and the predictions of all models for them."""

    estimator: Any  # our model, from documents to labels
    classifier: Any  # its last step
    documents: Any  # the test documents, texts or a matrix
    X: sp.csr_array  # (n_test, n_tokens) the classifier's input
    y: Codes  # (n_test,) positions among the classifier's classes, -1 for others
    entrants: list[Entrant]  # our model first
    tokens: list[ClassTokens]
    notes: list[str]  # caveats about the numbers
    # The same of the training documents, where they are known.
    train_documents: Any = None
    X_train: sp.csr_array | None = None
    y_train: Codes | None = None

    @property
    def classes(self) -> list[Any]:
        """The classifier's classes."""
        return list(self.classifier.classes_.tolist())

    @property
    def baseline(self) -> Entrant | None:
        """The baseline of highest accuracy among those with probabilities, the first of equals."""
        others = [
            one for one in self.entrants if one.result.kind == "baseline" and one.proba is not None
        ]
        return max(others, key=lambda one: one.result.accuracy, default=None)


def predictions_of_comparison(comparison: Comparison) -> Predictions:
    """Return the predictions of a comparison's models, ours first."""
    pipeline = comparison.pipeline
    if not isinstance(pipeline[-1], BaseAttentionClassifier) or pipeline[-1].mlp:
        raise ValueError(
            "the model of kind 'ours' must be a classifier of sklearn_clsattn without an MLP, with "
            f"which decisions are no sums over tokens, got {pipeline[-1]}"
        )
    return Predictions(
        estimator=pipeline,
        classifier=pipeline[-1],
        documents=comparison.test_texts,
        X=sp.csr_array(comparison.X_test),
        y=comparison.y_test,
        entrants=sorted(comparison.entrants, key=lambda one: one.result.kind != "ours"),
        tokens=comparison.tokens,
        notes=comparison.notes,
        train_documents=comparison.train_texts,
        X_train=sp.csr_array(comparison.X),
        y_train=comparison.y,
    )


def predictions_of_estimator(
    estimator: Any,
    X_test: Any,
    y_test: ArrayLike,
    X_train: Any,
    y_train: ArrayLike | None,
    n_top: int,
) -> Predictions:
    """Return those of a fitted model and of baselines, as `ModelReport.from_estimator` says."""
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together: pass both or neither")
    documents, labels = _checked_documents(estimator, X_test, y_test, "test")
    classifier, names = named_classifier(estimator)
    classes = classifier.classes_.tolist()
    y, notes = code_test_labels(labels, classes)
    X = token_matrix(estimator, documents)
    entrants = [score(type(classifier).__name__, "ours", classifier, X, y, classes)]
    train, train_codes, matrix = None, None, None
    if X_train is None:
        vote = DummyClassifier(strategy="prior").fit(X[y >= 0], y[y >= 0])
        name = "majority vote of the test texts"
        codes = list(range(len(classes)))
        entrants.append(score(name, "floor", vote, X, y, codes, predict_seconds=None))
        notes.append("Training texts were not given: tokens are those of the test texts.")
    else:
        train, labels = _checked_documents(estimator, X_train, y_train, "training")
        train_codes = _training_codes(labels, classes)
        matrix = token_matrix(estimator, train)
        for one in _baselines(matrix):
            entrant, unconverged = measure(one, matrix, train_codes, X, y)
            entrants.append(entrant)
            notes += unconverged
        texts, test_texts = texts_of(train), texts_of(documents)
        if texts is not None and test_texts is not None:
            notes += shared_texts(texts, test_texts)
    of_tokens = X if matrix is None else matrix
    tokens = class_tokens(classifier, of_tokens, names, n_top=n_top)
    return Predictions(
        *(estimator, classifier, documents, X, y, entrants, tokens, notes),
        train_documents=train,
        X_train=matrix,
        y_train=train_codes,
    )


def _baselines(X: sp.csr_array) -> list[Any]:
    """Return the models to fit on the columns X (n_train, n_tokens) of a fitted model."""
    _, counts, tfidf, *_, floor = default_models()
    if np.array_equal(X.data, np.round(X.data)):
        return [counts, tfidf, floor]
    # Weights above 1 are such as a ContextVectorizer gives, which have to be scaled.
    scaled = tfidf if X.max() > 1 else counts
    return [replace(scaled, name="LogisticRegression, same columns"), floor]


def take(documents: Any, positions: list[int]) -> Any:
    """Return some of the documents, as a container of the same type."""
    if hasattr(documents, "iloc"):
        return documents.iloc[positions]
    if hasattr(documents, "shape"):
        return documents[positions]
    return [documents[position] for position in positions]


def texts_of(documents: Any) -> NDArray[np.object_] | None:
    """Return documents as an array of texts (n_documents,); None if they are not texts."""
    if documents is None or getattr(documents, "ndim", 1) != 1:
        return None
    texts = np.array([*documents, None], dtype=object)[:-1]  # one dimension in any case
    return texts if all(isinstance(text, str) for text in texts) else None


def _checked_documents(
    estimator: Any, documents: Any, labels: ArrayLike | None, which: str
) -> tuple[Any, NDArray[Any]]:
    """Return documents that can be explained and their labels, of shape (n_documents,)."""
    if isinstance(documents, str | bytes):
        raise ValueError(f"expected a sequence of {which} documents, got one text")
    if sp.issparse(documents):
        documents = sp.csr_array(documents)  # other formats cannot be indexed by row
    elif not hasattr(documents, "shape"):
        documents = list(documents)
    n_documents = documents.shape[0] if hasattr(documents, "shape") else len(documents)
    array = np.asarray(labels)
    if array.shape != (n_documents,) or not n_documents:
        raise ValueError(
            f"expected {which} documents, and one label for each of them, got {n_documents:,} "
            f"documents and labels of shape {array.shape}"
        )
    # Raise what `explain` raises before anything is measured.
    explain(estimator, take(documents, [0]), places=False)
    return documents, array


def _training_codes(labels: NDArray[Any], classes: list[Any]) -> Codes:
    """Return the positions of training labels among the classes, or raise ValueError."""
    given, known = set(labels.tolist()), set(classes)
    if given != known:
        strange = sorted(map(repr, given ^ known))[:5]
        raise ValueError(
            "X_train and y_train must be what the estimator was fitted on, with the same "
            f"classes; only one of both has {', '.join(strange)}"
        )
    return codes_of(labels, classes)
