"""From fitted models and documents to what a report holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...comparison._measurement import quality
from .._explain import explain
from ..concentration import concentration
from .parts import Case, Cases, Concentration, DataSummary, SelectedToken, Selection, Spread
from .statistics import ModelScores, expected_calibration_error, worst

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

_N_ATTENDED = (1, 3, 10)
_N_SELECTED = 12


@dataclass(frozen=True)
class Entrant:
    """A fitted model and what it says of the test texts.

    Parameters
    ----------
    name : str
        What it is called.
    kind : {"ours", "baseline", "floor"}
        What it is there for.
    proba : ndarray of shape (n_test, n_classes)
        Its probabilities; the most probable class is its prediction.
    fit_seconds, predict_seconds : float or None
        How long it took, where that is known.
    """

    name: str
    kind: str
    proba: Array
    fit_seconds: float | None
    predict_seconds: float | None

    @property
    def predicted(self) -> Codes:
        """The most probable classes."""
        return np.asarray(self.proba.argmax(axis=1))

    def scores(self, y: Codes) -> ModelScores:
        """Return what it reached.

        Parameters
        ----------
        y : ndarray of shape (n_test,)
            The true classes, -1 for those that training has not.

        Returns
        -------
        scores : ModelScores
            All of its measures.
        """
        return ModelScores(
            name=self.name,
            kind=self.kind,
            **quality(y, self.predicted, self.proba),
            calibration_error=expected_calibration_error(self.proba, y),
            fit_seconds=self.fit_seconds,
            predict_seconds=self.predict_seconds,
        )


def take(documents: Any, places: Sequence[int]) -> Any:
    """Return some of the documents, in the layout in which they came.

    Parameters
    ----------
    documents : sequence, matrix or data frame of length n_documents
        The documents.
    places : sequence of int
        Which to return.

    Returns
    -------
    documents : object
        Of the same kind, as far as a Pipeline can tell.
    """
    if hasattr(documents, "iloc"):
        return documents.iloc[list(places)]
    if sp.issparse(documents):
        return sp.csr_array(documents)[list(places)]
    if isinstance(documents, np.ndarray):
        return documents[list(places)]
    return [documents[place] for place in places]


def texts_in(documents: Any) -> NDArray[np.object_] | None:
    """Return documents as an array of texts; None where they are something else.

    Parameters
    ----------
    documents : sequence or matrix
        The documents.

    Returns
    -------
    texts : ndarray of shape (n_documents,), or None
        The texts.
    """
    if sp.issparse(documents) or getattr(documents, "ndim", 1) != 1:
        return None
    texts = list(documents)
    if not all(isinstance(text, str) for text in texts):
        return None
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def data_summary(
    *,
    source: str,
    classes: list[Any],
    y: Codes,
    y_train: Codes | None,
    X: sp.csr_array,
    documents: Any,
    train_documents: Any,
    notes: list[str],
) -> DataSummary:
    """Return what there is to know of the texts.

    Parameters
    ----------
    source : str
        Where they come from.
    classes : list
        The classes.
    y, y_train : ndarray of shape (n_test,) and (n_train,)
        Their places among the classes, -1 for a class that training has not; training's may be
        None.
    X : csr_array of shape (n_test, n_tokens)
        What the classifier is given of the test texts.
    documents, train_documents : sequence
        The documents; training's may be None.
    notes : list of str
        What a reader must know.

    Returns
    -------
    summary : DataSummary
        The summary.
    """
    n_classes = len(classes)
    tokens = np.diff(X.indptr)
    sizes = None if y_train is None else np.bincount(y_train, minlength=n_classes).tolist()
    return DataSummary(
        source=source,
        classes=classes,
        train_sizes=sizes,
        test_sizes=np.bincount(y[y >= 0], minlength=n_classes).tolist(),
        n_train=None if y_train is None else len(y_train),
        n_test=len(y),
        n_unknown=int(np.count_nonzero(y < 0)),
        n_tokens=X.shape[1],
        n_empty=int(np.count_nonzero(tokens == 0)),
        train_words=None if train_documents is None else _words(train_documents),
        test_words=_words(documents),
        test_tokens=_spread(tokens),
        notes=notes,
    )


def selection(
    classifier: Any, X: sp.csr_array, names: NDArray[Any], classes: list[Any], texts: str
) -> Selection:
    """Return which tokens attention selects, and how concentrated it is.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        The fitted classifier.
    X : csr_array of shape (n_texts, n_tokens)
        What it is given.
    names : ndarray of shape (n_tokens,)
        The tokens' names.
    classes : list
        The classes.
    texts : {"training", "test"}
        Which texts these are.

    Returns
    -------
    selection : Selection
        The selection.
    """
    attention = sp.csr_array(classifier.attention(X))
    chosen = sp.csr_array(classifier.select_tokens(X))
    times = np.bincount(chosen.indices[chosen.data.astype(bool)], minlength=X.shape[1])
    present = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    values = np.asarray(classifier.token_values_)
    values = np.stack([-values, values]) if values.ndim == 1 else values
    speaks_for = values.argmax(axis=0)
    order = np.argsort(-times, kind="stable")[: min(_N_SELECTED, np.count_nonzero(times))]
    n_top = min(max(_N_ATTENDED), X.shape[1])
    entropy, shares = concentration(attention, n_top)
    even_entropy, even_shares = concentration(X, n_top)
    filled = ~np.isnan(entropy)
    some = bool(filled.any())
    kept = 1.0 - np.asarray(attention.sum(axis=1)).ravel()[filled]
    return Selection(
        texts=texts,
        n_texts=int(np.count_nonzero(filled)),
        n_selected=int(np.count_nonzero(times)),
        tokens=[
            SelectedToken(
                str(names[token]),
                int(times[token]),
                int(present[token]),
                classes[speaks_for[token]],
            )
            for token in order
        ],
        concentration=[
            Concentration(n, float(ours), float(even))
            for n, ours, even in (
                (n, shares[filled, n - 1].mean(), even_shares[filled, n - 1].mean())
                for n in _N_ATTENDED
                if some and n <= n_top
            )
        ],
        evenly_over=float(np.exp(np.median(entropy[filled]))) if some else None,
        even_evenly_over=float(np.exp(np.median(even_entropy[filled]))) if some else None,
        cls_share=float(kept.mean().clip(0, 1)) if some and classifier.cls_weight_ else None,
    )


class CasePicker:
    """Picks the test texts worth reading, and has them explained all at once.

    Parameters
    ----------
    classes : list
        The classes.
    y : ndarray of shape (n_test,)
        The true classes; texts with -1, whose class training has not, are never picked.
    ours : Entrant
        Our model.
    baseline : Entrant or None
        The one to set beside it.
    """

    def __init__(
        self, classes: list[Any], y: Codes, ours: Entrant, baseline: Entrant | None
    ) -> None:
        self._classes = classes
        self._y = y
        self._ours = ours
        self._baseline = baseline
        self._known = y >= 0
        self._places = np.arange(len(y)), y.clip(min=0)

    def mistakes(self, n: int) -> tuple[int, list[int]]:
        """Return how many mistakes we make, and the places of the most confident ones.

        Parameters
        ----------
        n : int
            How many places to return at most.

        Returns
        -------
        n_all : int
            How many there are.
        places : list of int
            The most confident first.
        """
        wrong = self._known & (self._ours.predicted != self._y)
        return int(wrong.sum()), worst(wrong, self._ours.proba.max(axis=1), n)

    def ours_right(self, n: int) -> tuple[int, list[int]]:
        """Return how often only we are right, and the places where the models are furthest apart.

        Parameters
        ----------
        n : int
            How many places to return at most.

        Returns
        -------
        n_all : int
            How many there are.
        places : list of int
            Those first where our probability of the true class is most above the baseline's.
        """
        return self._only(1, n)

    def baseline_right(self, n: int) -> tuple[int, list[int]]:
        """Return the same for texts where only the baseline is right.

        Parameters
        ----------
        n : int
            How many places to return at most.

        Returns
        -------
        n_all : int
            How many there are.
        places : list of int
            Those first where its probability of the true class is most above ours.
        """
        return self._only(-1, n)

    def _only(self, sign: int, n: int) -> tuple[int, list[int]]:
        if self._baseline is None:
            return 0, []
        ours, theirs = self._ours.predicted == self._y, self._baseline.predicted == self._y
        meant = self._known & (ours & ~theirs if sign > 0 else theirs & ~ours)
        gap = self._ours.proba[self._places] - self._baseline.proba[self._places]
        return int(meant.sum()), worst(meant, sign * gap, n)

    def explained(
        self, estimator: Any, documents: Any, picked: list[tuple[int, list[int]]]
    ) -> list[Cases]:
        """Explain all texts picked.

        Parameters
        ----------
        estimator : Pipeline or ClsAttentionClassifier
            Our model, with labels as classes.
        documents : sequence of length n_test
            What it takes.
        picked : list of (int, list of int)
            What the other methods returned.

        Returns
        -------
        cases : list of Cases
            One for each of `picked`.
        """
        places = sorted({place for _, chosen in picked for place in chosen})
        cases = {}
        if places:
            labels = np.empty(len(places), dtype=object)
            labels[:] = [self._classes[self._y[place]] for place in places]
            explanation = explain(estimator, take(documents, places), y_true=labels)
            for at, place in enumerate(places):
                one = replace(explanation[at], index=np.array([place]))
                cases[place] = self._case(place, one)
        return [Cases(n_all, [cases[place] for place in chosen]) for n_all, chosen in picked]

    def _case(self, place: int, explanation: Any) -> Case:
        true = int(self._y[place])
        ours = self._ours.proba[place]
        theirs = None if self._baseline is None else self._baseline.proba[place]
        return Case(
            index=place,
            true=self._classes[true],
            predicted=self._classes[int(ours.argmax())],
            probability=float(ours.max()),
            true_probability=float(ours[true]),
            baseline_predicted=None if theirs is None else self._classes[int(theirs.argmax())],
            baseline_probability=None if theirs is None else float(theirs.max()),
            baseline_true_probability=None if theirs is None else float(theirs[true]),
            explanation=explanation,
        )


def _words(documents: Any) -> Spread | None:
    texts = texts_in(documents)
    if texts is None:
        return None
    return _spread(np.fromiter((len(text.split()) for text in texts), np.intp, len(texts)))


def _spread(numbers: NDArray[np.intp]) -> Spread:
    low, median, high = np.quantile(numbers, [0.05, 0.5, 0.95], method="inverted_cdf").tolist()
    return Spread(float(low), float(median), float(high), float(numbers.max()))
