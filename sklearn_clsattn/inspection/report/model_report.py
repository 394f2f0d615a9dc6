"""The report of a fitted model: what it reached, what it goes by, and where it is wrong."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import make_pipeline

from ..._classifier import ClsAttentionClassifier
from ...comparison import (
    ClassTokens,
    Model,
    Progress,
    class_tokens,
    default_models,
    fit_and_compare,
)
from ...comparison._measurement import probabilities
from ...comparison._texts import code_test_labels, shared_texts
from ..trace import trace
from .gathering import CasePicker, Entrant, data_summary, selection, texts_in
from .inputs import (
    as_array,
    check_numbers,
    checked_documents,
    columns_of,
    fitted_beside,
    given_baseline,
    most_frequent,
    training_codes,
    versions,
    with_coded_weights,
)
from .parts import Cases, DataSummary, Selection
from .statistics import (
    CalibrationCurve,
    Confusion,
    Difference,
    ModelScores,
    calibration_curve,
    confusion,
    difference,
)

_TITLE = "Model report"
_OURS = "ClsAttentionClassifier"


@dataclass(frozen=True, eq=False, repr=False)
class ModelReport:
    """What a fitted model reached on test texts, what it goes by, and where it is wrong.

    Made by :meth:`from_texts`, which fits models on texts, or :meth:`from_estimator`, of a model
    that is fitted already. It is plain data, which can be pickled; `html` makes one page of it
    that needs no scripts and no network, and notebooks show it.

    Parameters
    ----------
    title : str
        Title of the page.
    data : DataSummary
        The texts.
    models : list of ModelScores
        Our model first, then the baselines and a majority vote.
    baseline : str or None
        Name of the baseline that stands beside our model throughout: the one of highest test
        accuracy. None without a baseline.
    differences : list of Difference
        Our accuracy less that of each other model.
    calibration : list of CalibrationCurve
        Of our model, then of the baseline.
    confusion : Confusion
        Of our model.
    tokens : list of ClassTokens
        The tokens by which our model tells each class.
    selection : Selection
        Which tokens attention selects, and how concentrated it is.
    mistakes : Cases
        Our mistakes, the most confident ones explained.
    ours_right, baseline_right : Cases
        Texts where only our model, or only the baseline, is right; those explained where the two
        are furthest apart.
    made : dict of str to str
        How the report was made.

    See Also
    --------
    explain : Explain single predictions.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import ModelReport
    >>> texts, y = make_token_classification(n_samples=300, as_text=True, random_state=0)
    >>> report = ModelReport.from_texts(texts[:200], y[:200], texts[200:], y[200:])
    >>> [model.name for model in report.models][:2]
    ['ClsAttentionClassifier', 'LogisticRegression, counts']
    >>> report.html().startswith("<!doctype html>")
    True
    """

    title: str
    data: DataSummary
    models: list[ModelScores]
    baseline: str | None
    differences: list[Difference]
    calibration: list[CalibrationCurve]
    confusion: Confusion
    tokens: list[ClassTokens]
    selection: Selection
    mistakes: Cases
    ours_right: Cases
    baseline_right: Cases
    made: dict[str, str]

    @classmethod
    def from_texts(
        cls,
        train_texts: Sequence[str] | NDArray[Any],
        train_labels: ArrayLike,
        test_texts: Sequence[str] | NDArray[Any],
        test_labels: ArrayLike,
        *,
        ngram_range: tuple[int, int] = (1, 1),
        min_df: int = 2,
        classifier: ClsAttentionClassifier | None = None,
        n_top: int = 10,
        n_mistakes: int = 10,
        n_disagreements: int = 5,
        title: str = _TITLE,
        source: str = "",
        made: Mapping[str, str] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Self:
        """Fit our model, logistic regressions and a majority vote on texts, and report.

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
        classifier : ClsAttentionClassifier, default=None
            Our model, unfitted; None for its default parameters.
        n_top : int, default=10
            How many of each class's most important tokens to show.
        n_mistakes, n_disagreements : int, default=10 and 5
            How many mistakes to show, and texts of each kind of disagreement with the baseline.
        title : str, default="Model report"
            Title of the page.
        source : str, default=""
            Where the texts come from, in words.
        made : mapping of str to str, default=None
            More of how the report was made, such as a command.
        progress : callable, default=None
            Called as :func:`~sklearn_clsattn.comparison.compare` does.

        Returns
        -------
        report : ModelReport
            The report.

        Raises
        ------
        ValueError
            As :func:`~sklearn_clsattn.comparison.compare` does, if a number is negative, or if
            the model has an MLP, whose decisions are no sums over tokens.
        TypeError
            If `classifier` is something else.
        """
        check_numbers(n_top=n_top, n_mistakes=n_mistakes, n_disagreements=n_disagreements)
        ours, counts, tfidf, *_, floor = default_models()
        if classifier is not None:
            if not isinstance(classifier, ClsAttentionClassifier):
                raise TypeError(
                    f"classifier must be a ClsAttentionClassifier, got {type(classifier).__name__}"
                )
            if classifier.mlp:
                raise ValueError(
                    "a model with an MLP cannot be reported on: its decisions are no sums over "
                    "tokens. Pass a classifier with mlp=False."
                )
            coded = with_coded_weights(classifier, train_labels)
            ours = Model(ours.name, coded, kind="ours")
        fitted = fit_and_compare(
            *(train_texts, train_labels, test_texts, test_labels),
            ngram_range=ngram_range,
            min_df=min_df,
            models=[ours, counts, tfidf, floor],
            n_top=n_top,
            progress=progress,
        )
        result = fitted.result
        # It was fitted on the classes' numbers, which are of any type of labels.
        labelled = copy.copy(fitted.estimators[0])
        labelled.classes_ = as_array(result.classes)
        if classifier is not None:
            labelled.class_weight = classifier.class_weight
        entrants = [
            Entrant(
                one.name,
                one.kind,
                probabilities(estimator, fitted.X_test),
                one.fit_seconds,
                one.predict_seconds,
            )
            for one, estimator in zip(result.models, fitted.estimators, strict=True)
        ]
        return cls._of(
            make_pipeline(fitted.vectorizer, labelled),
            labelled,
            documents=as_array(test_texts),
            train_documents=as_array(train_texts),
            X=sp.csr_array(fitted.X_test),
            X_train=sp.csr_array(fitted.X),
            y=fitted.y_test,
            y_train=fitted.y,
            names=fitted.vectorizer.get_feature_names_out(),
            entrants=entrants,
            notes=result.notes,
            made={
                "Counting": f"{result.vectorize_seconds:.2f} s, once for all models, in no other "
                "time",
                **(made or {}),
            },
            numbers=(n_top, n_mistakes, n_disagreements),
            title=title,
            source=source,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_test: Any,
        y_test: ArrayLike,
        *,
        X_train: Any = None,
        y_train: ArrayLike | None = None,
        baseline: Any = None,
        n_top: int = 10,
        n_mistakes: int = 10,
        n_disagreements: int = 5,
        title: str = _TITLE,
        source: str = "",
        made: Mapping[str, str] | None = None,
    ) -> Self:
        """Report on a model that is fitted already.

        Parameters
        ----------
        estimator : Pipeline or ClsAttentionClassifier
            A fitted Pipeline from texts that ends in our classifier, a fitted search over one, or
            a fitted classifier.
        X_test : sequence or matrix of length n_test
            What it takes: texts, or a token matrix.
        y_test : array-like of shape (n_test,)
            The classes.
        X_train, y_train : sequence or matrix of length n_train, and array-like, default=None
            What it was fitted on. With it, logistic regressions are fitted on the same columns to
            stand beside it; without, tokens are those of the test texts.
        baseline : estimator, default=None
            A fitted classifier with ``predict_proba`` that takes the same documents, to stand
            beside it.
        n_top, n_mistakes, n_disagreements, title, source, made
            As in :meth:`from_texts`.

        Returns
        -------
        report : ModelReport
            The report.

        Raises
        ------
        TypeError
            If the estimator is or ends in something else.
        sklearn.exceptions.NotFittedError
            If it is not fitted.
        ValueError
            If documents and labels differ in number, or are not what the estimator takes; if no
            test label is one of its classes, or training lacks one of them; if its columns cannot
            be traced back to tokens or its decisions are no sums over them (see
            :func:`~sklearn_clsattn.inspection.explain`); if a number is negative.
        """
        check_numbers(n_top=n_top, n_mistakes=n_mistakes, n_disagreements=n_disagreements)
        X_test, y_test = checked_documents(estimator, X_test, y_test, "test")
        traced = trace(estimator)
        classifier = traced.classifier
        classes = classifier.classes_
        y, notes = code_test_labels(y_test, classes)
        X = columns_of(traced.transform(X_test))
        start = time.perf_counter()
        classifier.predict(X)
        seconds = time.perf_counter() - start
        entrants = [Entrant(_OURS, "ours", probabilities(classifier, X), None, seconds)]
        if baseline is not None:
            entrants.append(given_baseline(baseline, X_test, classes.tolist()))
        train, codes, matrix = None, None, None
        if (X_train is None) != (y_train is None):
            raise ValueError("X_train and y_train belong together: pass both or neither")
        if X_train is not None:
            train, labels = checked_documents(estimator, X_train, y_train, "training")
            codes = training_codes(labels, classes)
            matrix = columns_of(traced.transform(train))
            beside, unconverged = fitted_beside(matrix, codes, X, y)
            entrants += beside
            notes += unconverged
            texts = texts_in(train), texts_in(X_test)
            if texts[0] is not None and texts[1] is not None:
                notes += shared_texts(texts[0], texts[1])
        else:
            entrants.append(most_frequent(y, len(classes)))
            notes.append("Training texts were not given: tokens are those of the test texts.")
        return cls._of(
            estimator,
            classifier,
            documents=X_test,
            train_documents=train,
            X=X,
            X_train=matrix,
            y=y,
            y_train=codes,
            names=traced.columns.names,
            entrants=entrants,
            notes=notes,
            made=dict(made or {}),
            numbers=(n_top, n_mistakes, n_disagreements),
            title=title,
            source=source,
        )

    @classmethod
    def _of(
        cls,
        estimator: Any,
        classifier: ClsAttentionClassifier,
        *,
        documents: Any,
        train_documents: Any,
        X: sp.csr_array,
        X_train: sp.csr_array | None,
        y: NDArray[np.intp],
        y_train: NDArray[np.intp] | None,
        names: NDArray[Any],
        entrants: list[Entrant],
        notes: list[str],
        made: dict[str, str],
        numbers: tuple[int, int, int],
        title: str,
        source: str,
    ) -> Self:
        """Boil down fitted models and their answers to a report."""
        n_top, n_mistakes, n_disagreements = numbers
        classes = classifier.classes_.tolist()
        ours, others = entrants[0], entrants[1:]
        scores = [entrant.scores(y) for entrant in entrants]
        usual = [one for one in others if one.kind == "baseline"]
        # The one that is hardest to beat: max takes the first of equals.
        beside = max(usual, key=lambda one: (one.predicted == y).mean()) if usual else None
        picker = CasePicker(classes, y, ours, beside)
        picked = [
            picker.mistakes(n_mistakes),
            picker.ours_right(n_disagreements),
            picker.baseline_right(n_disagreements),
        ]
        mistakes, ours_right, baseline_right = picker.explained(estimator, documents, picked)
        on, which = (X, "test") if X_train is None else (X_train, "training")
        right = ours.predicted == y
        return cls(
            title=title,
            data=data_summary(
                source=source,
                classes=classes,
                y=y,
                y_train=y_train,
                X=X,
                documents=documents,
                train_documents=train_documents,
                notes=notes,
            ),
            models=scores,
            baseline=None if beside is None else beside.name,
            differences=[difference(one.name, right, one.predicted == y) for one in others],
            calibration=[
                calibration_curve(one.name, one.proba, y) for one in (ours, beside) if one
            ],
            confusion=confusion(y, ours.predicted, len(classes)),
            tokens=class_tokens(classifier, on, names, classes=classes, n_top=n_top),
            selection=selection(classifier, on, names, classes, which),
            mistakes=mistakes,
            ours_right=ours_right,
            baseline_right=baseline_right,
            made={"Model": str(estimator), **made, "Versions": versions()},
        )

    def html(self, *, fragment: bool = False) -> str:
        """Return the report as a page of HTML that needs no scripts and no network.

        Parameters
        ----------
        fragment : bool, default=False
            Whether to return an element to put into a page, rather than a page.

        Returns
        -------
        html : str
            To be written in UTF-8.
        """
        from .page import render_report

        return render_report(self, fragment=fragment)

    def save(self, path: str | Path) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            The file, replaced if it is there.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        Path(path).expanduser().write_text(self.html(), encoding="utf-8", newline="\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dictionaries, lists and plain values, which JSON can hold.

        Returns
        -------
        report : dict
            All that the page shows. Labels that JSON does not know are given as strings.
        """
        from .as_dict import report_dict

        return report_dict(self)

    def _repr_html_(self) -> str:
        return self.html(fragment=True)

    def __repr__(self) -> str:
        named = [f"{model.name} {model.accuracy:.3f}" for model in self.models[1:]]
        return (
            f"<ModelReport: {self.data.n_test:,} test texts, accuracy "
            f"{self.models[0].accuracy:.3f} ({', '.join(named)})>"
        )
