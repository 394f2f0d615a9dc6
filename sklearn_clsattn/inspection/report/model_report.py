"""The report of a fitted model: its measurements, its tokens and its mistakes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from typing import Any, Literal, Self

import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from ... import __version__
from ...comparison import (
    ClassTokens,
    Comparison,
    ModelResult,
    compare,
    default_models,
    seconds_by_features,
)
from ..pages import framed
from .measures import (
    Calibration,
    DataSummary,
    Mistakes,
    calibration,
    confusions,
    data_summary,
    differences,
    labels_to_look_at,
    mistakes,
)
from .page import report_html
from .predictions import (
    Predictions,
    predictions_of_comparison,
    predictions_of_estimator,
)

_TITLE = "Model report"


@dataclass(frozen=True, eq=False, repr=False)
class ModelReport:
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
        The texts: `classes`, `n_train`, `n_test`, `n_tokens`, `notes` and so on.
    models : list of ModelResult
        Our model first, then the baselines and a majority vote.
    baseline : str or None
        Name of the baseline with which our model is compared throughout: the one of highest test
        accuracy among those with probabilities. None without one.
    differences : DataFrame
        Our `accuracy` less that of each other model, a row each, with its `standard_error`, the
        numbers of texts that `only_ours` or `only_other` predicts right, and the `p_value` of
        McNemar's exact test.
    calibration : list of Calibration
        Of our model, then of the baseline: `name`, `bins` (a data frame) and `histogram`.
    confusion : ndarray of shape (n_classes + 1, n_classes)
        Numbers of texts by true class (the last row: classes that are not in training), and by our
        prediction.
    tokens : list of ClassTokens
        The most important tokens of each class.
    mistakes : Mistakes
        How many we make (`n_all`), the most confident ones (`shown`, a data frame), and the
        `explanation` of these.
    labels : DataFrame or None
        Training labels to look at, as :func:`label_issues` returns them. None where training texts
        are not known, or had weights.
    made : dict of str to str
        How the report was made.

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
    """

    title: str
    data: DataSummary
    models: list[ModelResult]
    baseline: str | None
    differences: pd.DataFrame
    calibration: list[Calibration]
    confusion: NDArray[Any]
    tokens: list[ClassTokens]
    mistakes: Mistakes
    labels: pd.DataFrame | None
    made: dict[str, str]

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
        n_top: int = 10,
        n_mistakes: int = 10,
        title: str = _TITLE,
        source: str = "",
        made: Mapping[str, str] | None = None,
        progress: Callable[[int, int, ModelResult], None] | None = None,
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
        n_top : int, default=10
            How many of each class's most important tokens to show.
        n_mistakes : int, default=10
            How many mistakes to show.
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
        """
        _check_numbers(n_top=n_top, n_mistakes=n_mistakes)
        ours, _, tfidf, *_, same, _, floor = default_models()
        comparison = compare(
            *(train_texts, train_labels, test_texts, test_labels),
            ngram_range=ngram_range,
            min_df=min_df,
            models=[ours, same, tfidf, floor],
            n_top=n_top,
            progress=progress,
        )
        return cls.from_comparison(
            comparison, n_mistakes=n_mistakes, title=title, source=source, made=made
        )

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        *,
        n_mistakes: int = 10,
        title: str = _TITLE,
        source: str = "",
        made: Mapping[str, str] | None = None,
    ) -> Self:
        """Report on models that have been compared; nothing is fitted again.

        Parameters
        ----------
        comparison : Comparison
            What :func:`~sklearn_clsattn.comparison.compare` returns.
        n_mistakes, title, source, made
            As in :meth:`from_texts`.

        Returns
        -------
        report : ModelReport
            The report.
        """
        _check_numbers(n_mistakes=n_mistakes)
        seconds = seconds_by_features(comparison.vectorize_seconds)
        given = predictions_of_comparison(comparison)
        made = {"Features": f"{seconds}, in no other time", **(made or {})}
        return cls._of(given, n_mistakes, title, source, made)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_test: Any,
        y_test: ArrayLike,
        *,
        X_train: Any = None,
        y_train: ArrayLike | None = None,
        n_top: int = 10,
        n_mistakes: int = 10,
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
        n_top, n_mistakes, title, source, made
            As in :meth:`from_texts`.

        Returns
        -------
        report : ModelReport
            The report.
        """
        _check_numbers(n_top=n_top, n_mistakes=n_mistakes)
        given = predictions_of_estimator(estimator, X_test, y_test, X_train, y_train, n_top)
        return cls._of(given, n_mistakes, title, source, made or {})

    @classmethod
    def _of(
        cls, given: Predictions, n_mistakes: int, title: str, source: str, made: Mapping[str, str]
    ) -> Self:
        """Make a report from fitted models and their predictions."""
        ours, baseline = given.entrants[0], given.baseline
        return cls(
            title=title,
            data=data_summary(given, source),
            models=[entrant.result for entrant in given.entrants],
            baseline=None if baseline is None else baseline.result.name,
            differences=differences(given),
            calibration=[
                calibration(one.result.name, one.proba, given.y)
                for one in (ours, baseline)
                if one is not None and one.proba is not None
            ],
            confusion=confusions(given.y, ours.predicted, len(given.classes)),
            tokens=given.tokens,
            mistakes=mistakes(given, n_mistakes),
            labels=labels_to_look_at(given),
            made={"Model": str(given.estimator), **made, "Versions": _versions()},
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

    def _repr_html_(self) -> str:
        return framed(self.to_html(), repr(self), 6000)

    def __repr__(self) -> str:
        named = [f"{model.name} {model.accuracy:.3f}" for model in self.models[1:]]
        return (
            f"<ModelReport: {self.data.n_test:,} test texts, accuracy "
            f"{self.models[0].accuracy:.3f} ({', '.join(named)})>"
        )


def _check_numbers(**numbers: int) -> None:
    for name, number in numbers.items():
        check_scalar(number, name, Integral, min_val=0)


def _versions() -> str:
    """Return the versions of this package, Python and the dependencies."""
    named = [f"sklearn-clsattn {__version__}", f"Python {platform.python_version()}"]
    named += [f"{name} {version(name)}" for name in ("scikit-learn", "numpy", "scipy", "torch")]
    return ", ".join(named)
