"""Explain predictions: compute all terms of each decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..text._context_vectorizer import ContextVectorizer
from ..text._teacher_answers import classes_of, to_numpy
from ..text._tokens import only_column
from .decision_sums import AttentionSum, sum_of
from .explanation import Explanation
from .inner_classifiers import Members, has_several_labels, members_of
from .predictor import Predictor, TextModel, WordEffects
from .shown_classes import shown_classes, with_and_without
from .terms import Explained


def explain(
    estimator: Any,
    documents: Any,
    *,
    target: Any = None,
    y_true: ArrayLike | None = None,
) -> Explanation:
    """Explain predictions: what each token adds to the decision, or what deleting it changes.

    The decisions of this package's models, of linear classifiers and of naive Bayes are sums over
    the document's tokens, so the explanation is exact. The *contribution* of a token differs from
    the effect of its *removal*: a text without a word is another text, which is predicted again.
    Of any other classifier of texts, the effects of removing words are returned.

    Parameters
    ----------
    estimator : fitted classifier, Pipeline or search
        - With sums: the classifiers of this package (except those with an MLP),
          :class:`~sklearn_clsattn.TextClassifier`, the linear classifiers of scikit-learn
          (``LogisticRegression``, ``LinearSVC``, ``SGDClassifier``, ``RidgeClassifier``,
          ``Perceptron`` and others; ``SVC`` with a linear kernel and two classes), naive Bayes
          (``MultinomialNB``, ``ComplementNB``, ``BernoulliNB``), ``OneVsRestClassifier`` of linear
          classifiers, and Pipelines and searches that end in any of these.
        - ``CalibratedClassifierCV``, ``FixedThresholdClassifier``, ``TunedThresholdClassifierCV``
          and ``VotingClassifier(voting="soft")`` of these: sums are those of the classifiers
          inside, on average; probabilities and edited texts are the estimator's own.
        - Any other object that predicts texts with ``predict`` and ``predict_proba`` (or
          ``decision_function``), and names its classes in ``classes_`` or ``labels``: effects.
    documents : matrix of shape (n_documents, n_tokens), or sequence of length n_documents
        The estimator's input: of a classifier of counts, the document-term matrix (a data frame
        names its tokens); of a text classifier or a Pipeline, the texts (or rows of a data frame).
    target : label, default=None
        The class whose decision to explain. By default all classes are explained, and ``to_text``
        and similar methods compare two. For two classes, this is the decision for the second, as in
        ``decision_function``. For several labels, `target` must be one of them; the classes are
        then "not" the label and the label.
    y_true : array-like of shape (n_documents,), default=None
        The true classes. For several labels, 1 for documents with the target, or all labels,
        (n_documents, n_labels).

    Returns
    -------
    explanation : Explanation
        Plain data, with ``to_frame()``, ``to_dict()``, ``to_text()`` and ``to_html()``.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If decisions are not sums, and the documents are no texts or the estimator has neither
        probabilities nor decisions; or if it does not name its classes.
    ValueError
        If `target` is not a class, or is missing for several labels.

    Notes
    -----
    Naive Bayes adds log-probabilities. With two classes, the decision is the difference of their
    joint log-probabilities; with more, each class's joint log-probability minus the mean over
    classes. The intercept of ``BernoulliNB`` is the decision for a text without any word; a word
    adds the difference that its presence makes.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection import explain
    >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
    >>> labels = ["good", "bad", "good", "bad"]
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
    >>> explanation = explain(model, ["terrific but long"], y_true=["good"])
    >>> terms = explanation.to_frame().set_index("token")["contribution"]
    >>> bool(terms["terrific"] > 0 > terms["long"])
    True
    >>> bool(abs(terms.sum() - model.decision_function(["terrific but long"])[0]) < 1e-12)
    True
    """
    # 1) The classifiers inside, and the classes; of several labels, one.
    inside = members_of(estimator)
    classifier = inside.members[0].classifier
    classes = _classes(estimator)
    true = None if y_true is None else to_numpy(y_true).copy()
    label = None
    if has_several_labels(classifier):
        label, classes, true = with_and_without(classes, target, true)
        target = classes[1]
    # 2) How the estimator decides, and what it predicts.
    if isinstance(next(iter(inside.members[0].steps), None), ContextVectorizer):
        documents = only_column(documents)
    if not hasattr(documents, "__len__"):
        documents = list(documents)
    texts = _texts(documents)
    decision_sum = sum_of(inside, of_texts=texts is not None)
    deciding: Any = decision_sum if inside.decides else None  # not an average
    predictor = Predictor(
        estimator,
        classes,
        container=_container(documents),
        decision_sum=deciding,
        is_argmax=not inside.decides and inside.threshold is None,
        label=label,
        threshold=inside.threshold,
    )
    # 3) The decisions for documents, their terms, and the predictions.
    explained: Explained = decision_sum or _effects(predictor, classifier, texts)
    read = explained.read(documents)
    outputs = explained.decisions(read)
    check_consistent_length(outputs, true)
    terms = explained.terms(read)
    column = label if label is not None and decision_sum is not None else 0
    shown = shown_classes(classes, target, column)
    if deciding is None:
        predictions = predictor.predict(documents)
    else:
        predictions = predictor.predict_by_sum(documents, read, outputs)
    probabilities = predictions.probabilities
    return Explanation(
        classes=classes.copy(),
        targets=classes[shown.numbers],
        intercept=shown.select_any(explained.intercept),
        index=np.arange(len(outputs)),
        indptr=terms.indptr,
        tokens=terms.tokens,
        weights=terms.weights,
        attention=terms.attention,
        values=shown.select_any(terms.values),
        contributions=shown.select(terms.contributions),
        own_contributions=shown.select_any(terms.own_contributions),
        vector_contributions=shown.select_any(terms.vector_contributions),
        cls_attention=terms.cls_attention,
        decision=shown.select(outputs),
        probability=None if probabilities is None else probabilities[:, shown.numbers],
        predicted=classes[predictions.numbers],
        predicted_probability=predictions.of_predicted,
        true=None if true is None else column_or_1d(true),
        texts=texts,
        text_model=None if texts is None else TextModel(predictor, explained, shown),
        likeness=explained.likeness(shown) if isinstance(explained, AttentionSum) else None,
        inside=_inside(inside),
    )


def _container(documents: Any) -> Callable[[list[str]], Any]:
    """Return the function that puts a list of texts into the container of these texts."""
    if isinstance(documents, pd.Series):
        return pd.Series
    if isinstance(documents, np.ndarray):
        return partial(np.array, dtype=documents.dtype.type)
    return list


def _classes(estimator: Any) -> NDArray[Any]:
    """Return the classes of a fitted estimator, or its labels."""
    classes = classes_of(estimator, np.array([]))
    if classes.ndim != 1 or not len(classes):
        raise TypeError(
            "expected a fitted classifier that names its classes in classes_ or labels, got "
            f"{type(estimator).__name__}"
        )
    return classes


def _texts(documents: Any) -> tuple[str, ...] | None:
    """Return documents as texts, (n_documents,), None if they are something else."""
    if len(getattr(documents, "shape", (1,))) != 1:
        return None
    texts = tuple(documents)
    return texts if all(isinstance(text, str) for text in texts) else None


def _effects(predictor: Predictor, classifier: Any, texts: tuple[str, ...] | None) -> WordEffects:
    """Return the effects of words, where decisions are not sums."""
    if texts is None:
        raise TypeError(
            f"the decisions of {type(classifier).__name__} are not a sum over tokens: they are "
            "explained by deleting words, so pass texts, and the whole Pipeline"
        )
    if (
        getattr(classifier, "decision_function_shape", "ovr") == "ovo"
        and len(predictor.classes) > 2
    ):
        raise ValueError('decisions of pairs of classes: fit with decision_function_shape="ovr"')
    return WordEffects(predictor)


def _inside(inside: Members) -> str:
    """Return whose decisions are explained, if not the estimator's own; else ""."""
    if inside.decides:
        return ""
    if len(inside.members) == 1:
        return f"{type(inside.members[0].classifier).__name__} inside"
    return f"{len(inside.members)} classifiers inside, on average"
