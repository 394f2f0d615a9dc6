"""Explain predictions: compute all terms of each decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._base import BaseAttentionClassifier, vector_embeddings
from ..text._answers import classes_of
from .attention_decision import AttentionDecision
from .class_pairs import Targets, targets_of
from .decisions import decision_of
from .explanation import Explanation
from .likeness import Likeness
from .parts import Member, has_several_labels, members_of
from .predictor import Predictor
from .terms import Decision
from .text_model import TextModel
from .word_effects import WordEffects


def explain(
    estimator: Any,
    documents: Any,
    *,
    target: Any = None,
    y_true: ArrayLike | None = None,
) -> Explanation:
    """Explain predictions exactly: what each token of each document adds to the decision.

    The decisions of this package's models, of linear classifiers and of naive Bayes are sums over
    the document's tokens, so nothing is approximated. The *contribution* of a token differs from
    the effect of its *removal*: a text without a word is another text, which is predicted again.
    Of any other classifier of texts, the effects of removing words are returned.

    Parameters
    ----------
    estimator : fitted classifier, Pipeline or search
        - With sums: the classifiers of this package (but one with an MLP),
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

    Notes
    -----
    Naive Bayes adds logarithms of probabilities: the decision is the difference of two classes'
    joint log-probabilities, for more classes each less their mean. The words that a text does not
    have are in the intercept of ``BernoulliNB``.

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
    # 1) The estimator, the classifiers inside, and its classes; of several labels, one.
    members = members_of(estimator)
    first = members[0]
    if not hasattr(documents, "__len__"):
        documents = list(documents)
    true = None if y_true is None else np.array(y_true)
    classes = _classes(estimator)
    label = None
    if has_several_labels(first.classifier):
        label = _number_of_label(classes, target)
        if true is not None and true.ndim == 2:
            true = true[:, label]
        # A label of any type becomes a string beside its negation.
        target = str(classes.tolist()[label])
        classes = np.array([f"not {target}", target], dtype=object)
        true = None if true is None else classes[true.astype(np.intp)]
    # 2) How it decides, and the terms of its decisions.
    container = pd.Series if isinstance(documents, pd.Series) else list
    texts = _texts(first, documents)
    decision = decision_of(members, of_texts=texts is not None)
    deciding = decision if first.decides else None
    is_most_probable = not first.decides and first.threshold is None
    predictor = Predictor(
        estimator, classes, container, deciding, is_most_probable, label, first.threshold
    )
    explained = decision or _effects(predictor, first, has_texts=texts is not None)
    read = explained.read(documents)
    outputs = explained.decisions(read)
    check_consistent_length(outputs, true)
    terms = explained.terms(read)
    targets = targets_of(classes, target, 0 if decision is None else label or 0)
    # 3) The predictions.
    if deciding is None:
        predictions = predictor.predict(documents)
    else:
        predictions = predictor.predict_by_sum(documents, read, outputs)
    probabilities = predictions.probabilities
    # 4) What predicts the texts when they are edited.
    text_model = None
    if texts is not None:
        first_step = first.steps[0] if first.steps else None
        text_model = TextModel(predictor, explained, targets, first_step)
    return Explanation(
        classes=classes.copy(),
        targets=classes[targets.numbers],
        intercept=targets.select_any(explained.intercept),
        index=np.arange(len(outputs)),
        indptr=terms.indptr,
        tokens=terms.tokens,
        weights=terms.weights,
        attention=terms.attention,
        values=targets.select_any(terms.values),
        contributions=targets.select(terms.contributions),
        own_contributions=targets.select_any(terms.own_contributions),
        vector_contributions=targets.select_any(terms.vector_contributions),
        cls_attention=terms.cls_attention,
        decision=targets.select(outputs),
        probability=None if probabilities is None else probabilities[:, targets.numbers],
        predicted=classes[predictions.numbers],
        predicted_probability=predictions.of_predicted,
        true=None if true is None else column_or_1d(true),
        texts=texts,
        text_model=text_model,
        likeness=_likeness(explained, targets),
        inside=_inside(members),
    )


def _classes(estimator: Any) -> NDArray[Any]:
    """Return the classes of a fitted estimator, or its labels."""
    classes = classes_of(estimator, np.array([]))
    if classes.ndim != 1 or not len(classes):
        raise TypeError(f"expected a fitted classifier, got {type(estimator).__name__}")
    return classes


def _number_of_label(labels: NDArray[Any], target: Any) -> int:
    """Return the number of the label to explain, one of several."""
    names = labels.tolist()
    if np.ndim(target) or target not in names:
        raise ValueError(
            f"Documents have several labels: target must be one of {names}, got {target!r}."
        )
    return names.index(target)


def _effects(predictor: Predictor, member: Member, *, has_texts: bool) -> WordEffects:
    """Return the effects of words, where decisions are no sums."""
    if not has_texts:
        raise TypeError(
            f"the decisions of {type(member.classifier).__name__} are not a sum over tokens: they "
            "are explained by deleting words, so pass texts, and the whole Pipeline"
        )
    return WordEffects(predictor)


def _texts(member: Member, documents: Any) -> tuple[str, ...] | None:
    """Return documents as texts, (n_documents,), None if they are something else."""
    if isinstance(member.classifier, BaseAttentionClassifier) and not member.steps:
        return None
    if len(getattr(documents, "shape", (1,))) != 1:
        return None
    texts = tuple(documents)
    return texts if all(isinstance(text, str) for text in texts) else None


def _likeness(decision: Decision | WordEffects, targets: Targets) -> Likeness | None:
    """Return the vectors of a model's tokens, if they have some."""
    if not isinstance(decision, AttentionDecision):
        return None
    embeddings = vector_embeddings(decision.classifier)
    if embeddings is None:
        return None
    return Likeness(decision.names, embeddings, targets.outputs, targets.sign)


def _inside(members: list[Member]) -> str:
    """Return whose decisions are explained, if not the estimator's own; else ""."""
    if members[0].decides:
        return ""
    if len(members) == 1:
        return f"{type(members[0].classifier).__name__} inside"
    return f"{len(members)} classifiers inside, on average"
