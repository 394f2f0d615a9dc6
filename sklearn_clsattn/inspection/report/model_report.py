"""The report of a fitted model: its measurements, its tokens and its mistakes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from ... import __version__
from ..._classifier import ClsAttentionClassifier
from ..._writing import written_whole
from ...comparison import Comparison, Progress, compare, default_models
from ...comparison._baselines import seconds_by_features
from ..pages import framed
from .cases import telling_cases
from .data import ReportData, plain
from .decisive import hinges, labels_to_look_at
from .inputs import Inputs, check_classifier, inputs_of_comparison, inputs_of_estimator
from .statistics import calibration_curve, confusion, difference, selection
from .text import report_text
from .view import report_html

_TITLE = "Model report"


class ModelReport(ReportData):
    """A fitted model's measurements on test texts, its important tokens, and its mistakes.

    Made by :meth:`from_texts`, which fits models on texts, by :meth:`from_comparison`, of models
    that have been compared, or by :meth:`from_estimator`, of a model that is fitted already. It is
    plain data, which can be pickled; `to_html` makes one page of it that needs no scripts and no
    network, and notebooks show it.

    Parameters
    ----------
    title : str
        Title of the page.
    data : DataSummary
        The texts.
    models : list of ModelResult
        Our model first, then the baselines and a majority vote.
    baseline : str or None
        Name of the baseline with which our model is compared throughout: the one of highest test
        accuracy among those with probabilities. None without one.
    differences : list of Difference
        Our accuracy less that of each other model.
    calibration : list of CalibrationCurve
        Of our model, then of the baseline.
    confusion : Confusion
        Of our model.
    tokens : list of ClassTokens
        The most important and most selected tokens of each class.
    selection : Selection
        Which tokens attention selects, and how concentrated it is.
    mistakes : Cases
        Our mistakes, the most confident ones explained.
    ours_right, baseline_right : Cases
        Texts where only our model, or only the baseline, is right; those explained where the two
        are furthest apart.
    hinges : Hinges or None
        On how many words decisions hang. None for a model with two layers of attention.
    labels : LabelIssues or None
        Training labels to look at. None where training texts are not known, or had weights.
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
    ['ClsAttentionClassifier', 'LogisticRegression, same features']
    >>> report.to_html().startswith("<!doctype html>")
    True
    >>> print(report.to_text())  # doctest: +ELLIPSIS
    Model report
    <BLANKLINE>
    On 100 test texts our model finds the right one of 2 classes for ...
    """

    @classmethod
    def from_texts(
        cls,
        train_texts: Sequence[str] | NDArray[Any],
        train_labels: ArrayLike,
        test_texts: Sequence[str] | NDArray[Any],
        test_labels: ArrayLike,
        *,
        ngram_range: tuple[int, int] = (1, 2),
        min_df: int | Literal["auto"] = "auto",
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

        Ours is that of :func:`~sklearn_clsattn.text.make_text_classifier`. One logistic regression
        has its features without context, the other the TF-IDF of words and their n-grams.

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
        classifier : ClsAttentionClassifier, default=None
            Our classifier of the vectorizer's bags, unfitted; with ``sublinear_counts=False``,
            since these are damped. None for the default parameters.
        n_top : int, default=10
            How many of each class's most important tokens to show.
        n_mistakes, n_disagreements : int, default=10 and 5
            How many mistakes to show, and texts of each kind of disagreement with the baseline.
        title : str, default="Model report"
            Title of the page.
        source : str, default=""
            Where the texts come from, in words.
        made : mapping of str to str, default=None
            Further facts on how the report was made, such as a command.
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
            the model has an MLP, whose decisions are not sums over tokens.
        TypeError
            If a number is no integer, or `classifier` is something else.
        """
        _check_numbers(n_top=n_top, n_mistakes=n_mistakes, n_disagreements=n_disagreements)
        ours, _, tfidf, *_, same, _, floor = default_models()
        if classifier is not None:
            check_classifier(classifier)
            ours = replace(ours, estimator=classifier)
        comparison = compare(
            *(train_texts, train_labels, test_texts, test_labels),
            ngram_range=ngram_range,
            min_df=min_df,
            models=[ours, same, tfidf, floor],
            n_top=n_top,
            progress=progress,
        )
        return cls.from_comparison(
            comparison,
            n_mistakes=n_mistakes,
            n_disagreements=n_disagreements,
            title=title,
            source=source,
            made=made,
        )

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        *,
        n_mistakes: int = 10,
        n_disagreements: int = 5,
        title: str = _TITLE,
        source: str = "",
        made: Mapping[str, str] | None = None,
    ) -> Self:
        """Report on models that have been compared; nothing is fitted again.

        Parameters
        ----------
        comparison : Comparison
            What :func:`~sklearn_clsattn.comparison.compare` returns.
        n_mistakes, n_disagreements, title, source, made
            As in :meth:`from_texts`.

        Returns
        -------
        report : ModelReport
            The report.

        Raises
        ------
        ValueError
            If our model was not compared, if it has an MLP, or if a number is negative.
        TypeError
            If a number is no integer, or our model is no classifier of this package.
        """
        _check_numbers(n_mistakes=n_mistakes, n_disagreements=n_disagreements)
        seconds = seconds_by_features(comparison.vectorize_seconds)
        inputs = inputs_of_comparison(comparison)
        made = {"Features": f"{seconds}, in no other time", **(made or {})}
        return cls._of(inputs, n_mistakes, n_disagreements, title, source, made)

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
        estimator : Pipeline, or classifier of this package
            A fitted Pipeline from texts that ends in our classifier, a fitted search over one, or
            a fitted classifier.
        X_test : sequence or matrix of length n_test
            Its input: texts, or a token matrix.
        y_test : array-like of shape (n_test,)
            The classes.
        X_train, y_train : sequence or matrix of length n_train, and array-like, default=None
            The data on which it was fitted. With it, logistic regressions are fitted on the same
            columns as baselines; without, tokens are those of the test texts.
        baseline : estimator, default=None
            A fitted classifier with ``predict_proba`` for the same documents, to compare with.
        n_top, n_mistakes, n_disagreements, title, source, made
            As in :meth:`from_texts`.

        Returns
        -------
        report : ModelReport
            The report.

        Raises
        ------
        TypeError
            If the estimator is or ends in something else, or a number is no integer.
        sklearn.exceptions.NotFittedError
            If it is not fitted.
        ValueError
            If documents and labels differ in number, or are not the estimator's input; if no test
            label is one of its classes, or one of them is not in training; if its columns cannot
            be traced back to tokens or its decisions are not sums over them (see
            :func:`~sklearn_clsattn.inspection.explain`); if a number is negative.
        """
        _check_numbers(n_top=n_top, n_mistakes=n_mistakes, n_disagreements=n_disagreements)
        inputs = inputs_of_estimator(estimator, X_test, y_test, X_train, y_train, baseline, n_top)
        return cls._of(inputs, n_mistakes, n_disagreements, title, source, made or {})

    @classmethod
    def _of(
        cls,
        inputs: Inputs,
        n_mistakes: int,
        n_disagreements: int,
        title: str,
        source: str,
        made: Mapping[str, str],
    ) -> Self:
        """Make a report from fitted models and their predictions."""
        y, classes = inputs.y, inputs.classes
        ours, *others = inputs.entrants
        usual = [one for one in others if one.result.kind == "baseline" and one.proba is not None]
        # The baseline of highest accuracy, the first of equals.
        beside = max(usual, key=lambda one: one.result.accuracy, default=None)
        mistakes, ours_right, baseline_right = telling_cases(
            inputs, beside, n_mistakes, n_disagreements
        )
        on, which = (inputs.X, "test") if inputs.X_train is None else (inputs.X_train, "training")
        right = ours.predicted == y
        return cls(
            title=title,
            data=inputs.summary(source),
            models=[entrant.result for entrant in inputs.entrants],
            baseline=None if beside is None else beside.result.name,
            differences=[difference(one.result.name, right, one.predicted == y) for one in others],
            calibration=[
                calibration_curve(one.result.name, one.proba, y)
                for one in (ours, beside)
                if one is not None and one.proba is not None
            ],
            confusion=confusion(y, ours.predicted, len(classes)),
            tokens=inputs.tokens,
            selection=selection(inputs.classifier, on, inputs.names, classes, which),
            mistakes=mistakes,
            ours_right=ours_right,
            baseline_right=baseline_right,
            hinges=hinges(inputs),
            labels=labels_to_look_at(inputs),
            made={"Model": str(inputs.estimator), **made, "Versions": _versions()},
        )

    def to_html(self, *, fragment: bool = False) -> str:
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
        return report_html(self, fragment=fragment)

    def to_text(self) -> str:
        """Return the report as plain text, for a terminal: without the texts' explanations.

        Returns
        -------
        text : str
            The summary, the models, the tokens of each class, the most confident mistakes, and
            the notes. Control characters are made visible.
        """
        return report_text(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the measurements of the models, one row for each model.

        Returns
        -------
        frame : DataFrame of shape (n_models, 9)
            With the models' names as index, and the fields of :class:`~.comparison.ModelResult`
            as columns.
        """
        return pd.DataFrame([asdict(model) for model in self.models]).set_index("name")

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
        with written_whole(Path(path), text=True) as file:
            file.write(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dictionaries, lists and plain values, which JSON can hold.

        Returns
        -------
        report : dict
            All that the page shows. Labels that JSON does not know are given as strings.
        """
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def _repr_html_(self) -> str:
        return framed(self.to_html(), repr(self), 6000)

    def __repr__(self) -> str:
        named = [f"{model.name} {model.accuracy:.3f}" for model in self.models[1:]]
        return (
            f"<ModelReport: {self.data.n_test:,} test texts, accuracy "
            f"{self.models[0].accuracy:.3f} ({', '.join(named)})>"
        )


def _check_numbers(**numbers: Any) -> None:
    """Raise an error for parameters that are no integers of 0 or more."""
    for name, number in numbers.items():
        if isinstance(number, bool):  # an integer for check_scalar
            raise TypeError(f"{name} must be an instance of int, not bool.")
        check_scalar(number, name, Integral, min_val=0)


def _versions() -> str:
    """Return the versions of this package, Python and the dependencies."""
    named = [f"sklearn-clsattn {__version__}", f"Python {platform.python_version()}"]
    for package in ("scikit-learn", "numpy", "scipy", "torch"):
        try:
            named.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(named)
