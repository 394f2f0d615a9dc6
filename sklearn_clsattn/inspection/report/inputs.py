"""The input of a report: documents, labels and fitted models, in one form."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import check_is_fitted

from ..._base import BaseAttentionClassifier
from ..._validation import codes_of
from ...comparison import ClassTokens, Comparison, Entrant, class_tokens, default_models
from ...comparison._measurement import measure, score
from ...comparison._texts import code_test_labels, shared_texts
from .._explain import explain
from ..trace import trace
from .data import DataSummary
from .statistics import spread

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Inputs:
    """A fitted model, the documents, and the predictions of all models for them."""

    estimator: Any  # our model, from documents to labels
    classifier: Any  # its last step
    names: NDArray[Any]  # (n_tokens,)
    documents: Any  # the test documents, texts or a matrix
    X: sp.csr_array  # (n_test, n_tokens) the classifier's input
    y: Codes  # (n_test,) positions among the classifier's classes, -1 for others
    entrants: list[Entrant]  # our model first
    tokens: list[ClassTokens]
    notes: list[str]  # caveats about the numbers
    train_documents: Any = None  # the same of the training documents, where they are known
    X_train: sp.csr_array | None = None
    y_train: Codes | None = None

    @property
    def classes(self) -> list[Any]:
        """The classifier's classes."""
        return list(self.classifier.classes_.tolist())

    def summary(self, source: str) -> DataSummary:
        """Return the summary of the documents, which come from `source`."""
        n_tokens, train = np.diff(self.X.indptr), self.y_train
        return DataSummary(
            source=source,
            classes=self.classes,
            train_sizes=None if train is None else self._sizes(train),
            test_sizes=self._sizes(self.y),
            n_train=None if train is None else len(train),
            n_test=len(self.y),
            n_unknown=int(np.count_nonzero(self.y < 0)),
            n_tokens=self.X.shape[1],
            n_empty=int(np.count_nonzero(n_tokens == 0)),
            train_words=_words(self.train_documents),
            test_words=_words(self.documents),
            test_tokens=spread(n_tokens),
            notes=self.notes,
        )

    def _sizes(self, y: Codes) -> list[int]:
        return np.bincount(y[y >= 0], minlength=len(self.classes)).tolist()


def inputs_of_comparison(comparison: Comparison) -> Inputs:
    """Return a comparison's models, ours first."""
    pipeline = comparison.pipeline
    check_classifier(pipeline[-1])
    return Inputs(
        estimator=pipeline,
        classifier=pipeline[-1],
        names=comparison.vectorizer.get_feature_names_out(),
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


def check_classifier(classifier: Any) -> None:
    """Raise TypeError or ValueError for a classifier that cannot be reported on."""
    if not isinstance(classifier, BaseAttentionClassifier):
        raise TypeError(
            "expected classifier to be one of sklearn_clsattn, such as ClsAttentionClassifier, "
            f"got {type(classifier).__name__}"
        )
    if classifier.mlp:
        raise ValueError(
            "a model with an MLP cannot be reported on: its decisions are no sums over tokens. "
            "Pass a classifier with mlp=False."
        )


def inputs_of_estimator(
    estimator: Any,
    X_test: Any,
    y_test: ArrayLike,
    X_train: Any,
    y_train: ArrayLike | None,
    baseline: Any,
    n_top: int,
) -> Inputs:
    """Return a fitted model and those beside it, as `ModelReport.from_estimator` documents."""
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together: pass both or neither")
    documents, labels = _checked_documents(estimator, X_test, y_test, "test")
    traced = trace(estimator)
    classifier, names = traced.classifier, traced.columns.names
    classes = classifier.classes_.tolist()
    y, notes = code_test_labels(labels, classes)
    X = _columns(traced.transform(documents))
    entrants = [score(type(classifier).__name__, "ours", classifier, X, y, classes)]
    if baseline is not None:
        entrants.append(_given(baseline, documents, y, classes))
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
        matrix = _columns(traced.transform(train))
        _, counts, tfidf, *_, floor = default_models()
        # Weights above 1 are such as a ContextVectorizer gives, which have to be scaled.
        scaled = tfidf if matrix.max() > 1 else counts
        same_columns = replace(scaled, name="LogisticRegression, same columns")
        are_counts = np.array_equal(matrix.data, np.round(matrix.data))
        for model in [counts, tfidf, floor] if are_counts else [same_columns, floor]:
            entrant, unconverged = measure(
                *(model, matrix, train_codes, X, y),
                classes=classes,
                tune=False,
                random_state=0,
                step=lambda _: None,
            )
            entrants.append(entrant)
            notes += unconverged
        texts, test_texts = texts_of(train), texts_of(documents)
        if texts is not None and test_texts is not None:
            notes += shared_texts(texts, test_texts)
    on = X if matrix is None else matrix
    tokens = class_tokens(classifier, on, names, classes=classes, n_top=n_top)
    return Inputs(
        *(estimator, classifier, names, documents, X, y, entrants, tokens, notes),
        train_documents=train,
        X_train=matrix,
        y_train=train_codes,
    )


def take(documents: Any, places: list[int]) -> Any:
    """Return some of the documents, as a container of the same type."""
    if hasattr(documents, "iloc"):
        return documents.iloc[places]
    if hasattr(documents, "shape"):
        return documents[places]
    return [documents[place] for place in places]


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
    if array.shape != (n_documents,):
        raise ValueError(
            f"expected one label for each of {n_documents:,} {which} documents, got labels of "
            f"shape {array.shape}"
        )
    if not n_documents:
        raise ValueError(f"there are no {which} documents")
    # Raise what `explain` raises before anything is measured.
    explain(estimator, take(documents, [0]), removal=False, places=False)
    return documents, array


def _columns(given: Any) -> sp.csr_array:
    """Return a classifier's input (n_documents, n_tokens) with every entry stored once."""
    X = sp.csr_array(given, copy=True) if sp.issparse(given) else sp.csr_array(np.asarray(given))
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _training_codes(labels: NDArray[Any], classes: list[Any]) -> Codes:
    """Return the positions of training labels among the classes, or raise ValueError."""
    found, known = set(labels.tolist()), set(classes)
    if found != known:
        strange = sorted(map(repr, found ^ known))[:5]
        raise ValueError(
            "X_train and y_train must be what the estimator was fitted on, with the same "
            f"classes; only one of both has {', '.join(strange)}"
        )
    return codes_of(labels, classes)


def _given(baseline: Any, documents: Any, y: Codes, classes: list[Any]) -> Entrant:
    """Return the predictions of a fitted model that the caller passes."""
    check_is_fitted(baseline)
    name = type(getattr(baseline, "steps", [(None, baseline)])[-1][1]).__name__
    if not hasattr(baseline, "predict_proba"):
        raise ValueError(f"the baseline must have predict_proba, which {name} has not")
    own = np.asarray(baseline.classes_).tolist()
    if sorted(map(repr, own)) != sorted(map(repr, classes)):
        raise ValueError(f"the baseline must have the classes {classes}, got {own}")
    return score(f"{name} (given)", "baseline", baseline, documents, y, classes)


def texts_of(documents: Any) -> NDArray[np.object_] | None:
    """Return documents as an array of texts (n_documents,); None if they are not texts."""
    if documents is None or getattr(documents, "ndim", 1) != 1:
        return None
    texts = np.array([*documents, None], dtype=object)[:-1]  # one dimension in any case
    return texts if all(isinstance(text, str) for text in texts) else None


def _words(documents: Any) -> Any:
    """Return the spread of the numbers of words; None if documents are not texts."""
    texts = texts_of(documents)
    return None if texts is None else spread(np.array([len(text.split()) for text in texts]))
