"""TextClassifier: a vectorizer and a classifier of its bags, as one estimator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ._base import add_class_weight
from ._classifier import ClsAttentionClassifier
from ._estimators import CallbackSupportMixin, SavedMixin, all_or_nothing, fit_task
from ._types import Array
from ._writing import written_whole
from .text._context_vectorizer import ContextVectorizer
from .text._known_words import StopWord, TrustedWords
from .text._teacher import learn_from_teachers
from .text._tokens import checked_texts
from .text._word_vectors import WordVectors

_OF_VECTORIZER = (
    "ngram_range",
    "min_df",
    "characters",
    "tokenizer",
    "lowercase",
    "stop_words",
    "trusted_words",
    "context",
    "word_vectors",
)
_OF_CLASSIFIER = "C", "attention_C", "class_weight", "max_iter", "tol", "verbose", "device"


class TextClassifier(SavedMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classifier of texts, with probabilities and reasons that can be checked.

    It has a :class:`~sklearn_clsattn.text.ContextVectorizer`, which turns texts into bags of words,
    word pairs and character n-grams, and a :class:`ClsAttentionClassifier` of these bags. It
    chooses its own penalty, so that there is nothing to tune.
    :func:`~sklearn_clsattn.inspection.explain` shows the reasons of its predictions.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Inverse strength of the penalty on token values; "auto" chooses it by the log loss of
        held-out texts.
    attention_C : float or "auto", default=0.03
        Inverse strength of the penalty on attention scores. With large values (1 or more),
        attention selects sharply. "auto" chooses it together with `C`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by whose ratio the odds of any two are multiplied after training, as
        in :class:`~sklearn_clsattn.ClsAttentionClassifier`. "balanced" predicts as if all classes
        were equally frequent.
    ngram_range : tuple (min_n, max_n), default=(1, 2)
        The smallest and largest number of words in an n-gram.
    min_df : int, float or "auto", default="auto"
        N-grams of words in fewer texts (or in a smaller share of them) are dropped; "auto" is 1 for
        fewer than 5,000 texts, else 2.
    characters : tuple (min_n, max_n) or None, default=(2, 5)
        The smallest and largest length of character n-grams. They add to the scores of words, and
        alone score unknown ones. None turns them off.
    tokenizer : callable or None, default=None
        Returns the tokens of a text, such as ``jieba.lcut``. By default words, contractions,
        numbers and single signs are tokens, in any script.
    lowercase : bool, default=True
        Whether to ignore case.
    stop_words : list, tuple or set, default=None
        Words, and compiled patterns of whole words, that the model must not use. With the default
        tokens, it predicts the same for a text as for the text without them.
    trusted_words : dict, or list, tuple or set, default=None
        Words, and phrases that are n-grams, which the model should use: for each class a list of
        those that speak for it, or some without classes. They are evidence beside the labels, which
        matters most where there are few, and are penalised less than others. The row of a word that
        is trusted for a class, in an explanation, is never against it.
    context : bool, default=True
        Whether the weight of a word depends on its position and on the word before it.
    word_vectors : WordVectors or None, default=None
        Vectors of words that are brought along. With ``fit(..., unlabeled=texts)``, others are
        learned from the texts.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float or "auto", default="auto"
        Training stops at this optimality gap, in nats per text.
    verbose : int, default=0
        If positive, print the progress of training.
    device : str or torch.device, default="cpu"
        Device for training: "cpu", "cuda", "auto" (CUDA if available) or a ``torch.device``.

    Attributes
    ----------
    vectorizer_ : ContextVectorizer
        The fitted vectorizer.
    classifier_ : ClsAttentionClassifier
        The fitted classifier. Its fitted attributes, such as `classes_`, `token_importance_`,
        `selected_tokens_`, `cls_embedding_` and `C_`, are attributes of the text classifier, too.
    teacher_weights_ : ndarray of shape (n_teachers,)
        The share of each teacher in what is learned. If all are 0, labelled texts that were held
        out are predicted better without teachers, and the fit is the one without. Absent without a
        teacher.
    teacher_accuracies_ : ndarray of shape (n_teachers, 3)
        How right each teacher seems to be, and the bounds of a 95 % interval: the share of labelled
        texts that a model taught by this teacher alone predicts correctly. It is too high for a
        teacher that has seen the labels. Without labels, an estimate from the agreement of three or
        more teachers, without an interval; NaN for fewer, and for one that names a single class.
    teacher_answers_ : ndarray of shape (n_teachers,)
        The number of texts that each teacher answers.
    teacher_sharpness_ : float
        The factor by which all decisions are multiplied, chosen by labelled texts held out.

    See Also
    --------
    ClsAttentionClassifier : The classifier alone, for counts.
    sklearn_clsattn.text.ContextVectorizer : The vectorizer alone, with all its parameters.

    Examples
    --------
    >>> from sklearn_clsattn import TextClassifier
    >>> from sklearn_clsattn.datasets import load_requests
    >>> texts, moods = load_requests(target="mood", return_X_y=True)
    >>> model = TextClassifier().fit(texts, moods)
    >>> model.predict(["I am not happy with the sofa.", "No problem at all, thank you!"])
    array(['upset', 'content'], dtype=object)
    """

    _parameter_constraints: dict[str, Any] = {
        **{name: ContextVectorizer._parameter_constraints[name] for name in _OF_VECTORIZER},
        **{name: ClsAttentionClassifier._parameter_constraints[name] for name in _OF_CLASSIFIER},
    }

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        attention_C: float | Literal["auto"] = 0.03,
        class_weight: dict[Any, float] | str | None = None,
        ngram_range: tuple[int, int] = (1, 2),
        min_df: float | Literal["auto"] = "auto",
        characters: tuple[int, int] | None = (2, 5),
        tokenizer: Callable[[str], Iterable[Any]] | None = None,
        lowercase: bool = True,
        stop_words: Collection[StopWord] | None = None,
        trusted_words: TrustedWords | None = None,
        context: bool = True,
        word_vectors: WordVectors | None = None,
        max_iter: int = 300,
        tol: float | Literal["auto"] = "auto",
        verbose: int = 0,
        device: Any = "cpu",
    ) -> None:
        self.C = C
        self.attention_C = attention_C
        self.class_weight = class_weight
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.characters = characters
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.trusted_words = trusted_words
        self.context = context
        self.word_vectors = word_vectors
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.device = device

    @all_or_nothing
    def fit(
        self,
        X: Iterable[str],
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: Iterable[str] | None = None,
        teacher: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the vectorizer and the classifier.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : array-like of shape (n_texts,) or (n_texts, n_classes)
            Their class labels; or a matrix of 0 and 1 with a column for each of several labels; or
            probabilities of the classes. The columns of a data frame name the classes.
        sample_weight : array-like of shape (n_texts,), default=None
            Non-negative weights: a weight of 2 is equivalent to two copies, and 0 to leaving the
            text out; without a teacher its class is still known. Only `min_df` counts each text of
            positive weight once.
        unlabeled : iterable of str, default=None
            More texts of the same kind, without labels. Without a teacher, word similarities are
            learned from them (:class:`~sklearn_clsattn.text.WordVectors`), so that words that occur
            in no labelled text are used as well. They need two words that occur in three texts.
        teacher : estimator, callable, array-like or a list of these, default=None
            Another model, whose probabilities of the `unlabeled` texts are learned as well: an
            estimator of texts with `predict_proba`, a function of a list of texts, or the
            probabilities themselves, an array or a data frame of shape (n_unlabeled, n_classes).
            Names of classes, in `classes_` or in a data frame's columns, are matched with the
            labels. Instead of probabilities it may say labels, (n_unlabeled,), as an estimator with
            `predict` alone does. A row of NaN, or the label None, is no answer: then the text is
            left out.

            An estimator that is not fitted is fitted to X and y, without weights, and
            :class:`~sklearn_clsattn.text.Keywords` to all texts. Several teachers become one, the
            mean of those who answer. The loss of labelled texts that are held out decides how much
            each is believed, and whether teachers help at all. X and y may be empty.
        groups : array-like of shape (n_texts,), default=None
            What texts belong to, such as their author, patient or thread. Texts of one group are
            not evidence for each other: wherever texts are held out, they are held out together.

        Returns
        -------
        self : TextClassifier
            The fitted classifier.

        Examples
        --------
        >>> from sklearn_clsattn import TextClassifier
        >>> from sklearn_clsattn.datasets import load_requests
        >>> texts, topics = load_requests(return_X_y=True)
        >>> few = TextClassifier().fit(texts[:30], topics[:30])
        >>> more = TextClassifier().fit(texts[:30], topics[:30], unlabeled=texts[30:1000])
        >>> bool(more.score(texts[1000:], topics[1000:]) > few.score(texts[1000:], topics[1000:]))
        True
        """
        for name in [name for name in vars(self) if name.startswith("teacher_")]:
            del self.__dict__[name]  # from an earlier fit
        vectorizer = self._new_vectorizer()
        classifier = self._new_classifier()
        # 1) with teachers
        if teacher is not None:
            X = list(checked_texts(X))  # read twice
            unlabeled = None if unlabeled is None else list(checked_texts(unlabeled))
            classifier.set_params(class_weight=None)
            with fit_task(self, X, y, sample_weight):
                lesson = learn_from_teachers(
                    vectorizer, classifier, X, y, sample_weight, unlabeled, teacher, groups
                )
                add_class_weight(lesson.classifier, self.class_weight, lesson.class_sizes)
                self.teacher_weights_ = lesson.weights
                self.teacher_accuracies_ = lesson.accuracies
                self.teacher_answers_ = lesson.n_answers
                self.teacher_sharpness_ = lesson.sharpness
                self.vectorizer_ = lesson.vectorizer
                self.classifier_ = lesson.classifier
                if self.teacher_weights_.any():  # else it knows the labels' classes alone
                    self._check_trusted_classes()
            return self
        # 2) without
        with fit_task(self, X, y, part=classifier):
            given = {"sample_weight": sample_weight, "groups": groups}
            bags = vectorizer._fit_bags(X, y, unlabeled=unlabeled, **given)
            classifier.fit(bags, y, **given)
            self.vectorizer_ = vectorizer
            self.classifier_ = classifier
            self._check_trusted_classes()
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: Iterable[str],
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from a batch of texts, in addition to the batches of earlier calls.

        The first call also fits the vectorizer. Its vocabulary and gates then stay fixed, so the
        first batch should be large. New words in later batches are scored by their letters.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : array-like of shape (n_texts,) or (n_texts, n_labels)
            Their class labels, or 0 and 1 for each of several labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that occur in any batch. The first call needs them; in later calls they may
            be omitted.
        sample_weight : array-like of shape (n_texts,), default=None
            Non-negative weights.

        Returns
        -------
        self : TextClassifier
            The classifier, fitted on all batches so far.

        Raises
        ------
        AttributeError
            After :meth:`fit`, which keeps no memory of its texts, and with
            ``class_weight="balanced"``, which needs all of them.
        ValueError
            With `trusted_words` or `word_vectors`, which need all texts as well.

        Examples
        --------
        >>> from sklearn_clsattn import TextClassifier
        >>> from sklearn_clsattn.datasets import load_requests
        >>> texts, topics = load_requests(return_X_y=True)
        >>> model = TextClassifier()
        >>> for start in (0, 1000):
        ...     batch = slice(start, start + 1000)
        ...     model = model.partial_fit(texts[batch], topics[batch], classes=set(topics))
        >>> bool(model.score(texts[2000:], topics[2000:]) > 0.9)
        True
        """
        for name in ("trusted_words", "word_vectors"):
            if getattr(self, name):
                raise ValueError(f"{name} need all texts at once: use fit.")
        classifier = self._new_classifier()
        if hasattr(self, "classifier_"):
            bags = self.vectorizer_._bags_of(X)
            classifier = copy(self.classifier_).set_params(**classifier.get_params())
        else:
            self.vectorizer_ = self._new_vectorizer()
            bags = self.vectorizer_._fit_bags(X, y, sample_weight=sample_weight)
        try:
            learn = classifier.partial_fit
        except AttributeError as error:  # whose cause says why, not of which estimator
            raise AttributeError(str(error.__cause__)) from error
        self.classifier_ = learn(bags, y, classes, sample_weight)
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Return the most probable class of each text.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        labels : ndarray of shape (n_texts,) or (n_texts, n_classes)
            Labels from `classes_`; for several labels, 1 for each with a probability above 0.5.
        """
        return self._predict_by("predict", X)

    def predict_proba(self, X: Iterable[str]) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        probabilities : ndarray of shape (n_texts, n_classes)
            In the order of `classes_`. Rows sum to 1, except with several labels.
        """
        return self._predict_by("predict_proba", X)

    def predict_log_proba(self, X: Iterable[str]) -> Array:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        log_probabilities : ndarray of shape (n_texts, n_classes)
            Finite even if a probability rounds to 0.
        """
        return self._predict_by("predict_log_proba", X)

    def decision_function(self, X: Iterable[str]) -> Array:
        """Return the decision values.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        decision : ndarray of shape (n_texts,) or (n_texts, n_classes)
            For two classes, the log-odds of ``classes_[1]``; for more, one value per class.
        """
        return self._predict_by("decision_function", X)

    def to_page(
        self,
        path: str | Path,
        *,
        title: str = "Text classifier",
        examples: Iterable[str] = (),
        about: Mapping[str, str] | None = None,
        texts: Iterable[str] = (),
    ) -> None:
        """Write a page that classifies and explains texts in any browser, offline.

        The page is one file, which needs no Python, no server and no network: a text box with the
        prediction and its reasons, words to strike out, the fewest words that decide, and tables
        (CSV) that come back with predictions. Its predictions are those of this classifier.

        Parameters
        ----------
        path : str or path-like
            The file, which is replaced if it exists. Its name should end in ``.html``.
        title : str, default="Text classifier"
            The title of the page.
        examples : iterable of str, default=()
            Texts that the page offers to try, of which it shows the first one.
        about : dict of str, default=None
            What else the page says of the model, such as ``{"Trained on": "2,000 messages of
            2025"}``. Of the training texts it has nothing but their words.
        texts : iterable of str, default=()
            Texts by which it is tried whether numbers of 16 bits are enough, with which the page is
            a third smaller. They are, if no probability of these texts changes by more than 0.001;
            the page says by how much. Without texts, numbers have 32 bits, and probabilities are
            those of :meth:`predict_proba` within 0.000001.

        Raises
        ------
        ValueError
            With a `tokenizer` or with patterns among `stop_words`, which are code of Python.

        See Also
        --------
        to_javascript : The same as a module for services.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn_clsattn import TextClassifier
        >>> model = TextClassifier().fit(["good fun", "bad film"], ["pos", "neg"])
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "films.html"
        ...     model.to_page(path, title="Films", examples=["a good film"])
        ...     path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        from .portable._page import page

        check_is_fitted(self)
        content = page(
            self.vectorizer_,
            self.classifier_,
            title=title,
            examples=checked_texts(examples),
            about=about or {},
            texts=checked_texts(texts),
        )
        with written_whole(Path(path), text=True) as file:
            file.write(content)

    def to_javascript(self, folder: str | Path, *, texts: Iterable[str] = ()) -> None:
        """Write the classifier as a module that browsers, Node and edge functions import.

        Parameters
        ----------
        folder : str or path-like
            The folder, which is made if it does not exist. In it are then ``scorer.js``, an ES
            module without dependencies, its types in ``scorer.d.ts``, and ``model.clsattn``, which
            the module's ``load`` reads.
        texts : iterable of str, default=()
            Texts by which 16 bits are tried, as in :meth:`to_page`.

        Raises
        ------
        ValueError
            With a `tokenizer` or with patterns among `stop_words`, which are code of Python.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn_clsattn import TextClassifier
        >>> model = TextClassifier().fit(["good fun", "bad film"], ["pos", "neg"])
        >>> with TemporaryDirectory() as folder:
        ...     model.to_javascript(folder)
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['model.clsattn', 'scorer.d.ts', 'scorer.js']
        """
        from .portable._page import write_javascript

        check_is_fitted(self)
        write_javascript(
            self.vectorizer_, self.classifier_, Path(folder), texts=checked_texts(texts)
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the tokens, in the order of the columns of `token_importance_`.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_tokens,)
            As those of :class:`~sklearn_clsattn.text.ContextVectorizer`.
        """
        check_is_fitted(self)
        return self.vectorizer_.get_feature_names_out()

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the classifier, such as `classes_` or `token_importance_`.

        Texts have no columns: `n_features_in_` is not among them.
        """
        classifier = self.__dict__.get("classifier_")
        is_fitted_attribute = name.endswith("_") and not name.startswith("_")
        if classifier is None or not is_fitted_attribute or name.endswith("_in_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(classifier, name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = self.class_weight is None
        return tags

    def _check_trusted_classes(self) -> None:
        """Raise ValueError if words are trusted for what is no class."""
        if isinstance(self.trusted_words, dict):
            classes = self.classifier_.classes_.tolist()
            unknown = [label for label in self.trusted_words if label not in classes]
            if unknown:
                raise ValueError(
                    f"trusted_words are of {unknown}, but the classes are {classes}: every class "
                    "with trusted words needs a text."
                )

    def _new_vectorizer(self) -> ContextVectorizer:
        """Return the vectorizer, not fitted."""
        return ContextVectorizer(**{name: getattr(self, name) for name in _OF_VECTORIZER})

    def _new_classifier(self) -> ClsAttentionClassifier:
        """Return the classifier, not fitted."""
        return ClsAttentionClassifier(**{name: getattr(self, name) for name in _OF_CLASSIFIER})

    def _predict_by(self, method: str, X: Iterable[str]) -> Any:
        """Return the result of a method of the classifier for the bags of texts."""
        check_is_fitted(self)
        bags = self.vectorizer_._bags_of(X)
        return getattr(self.classifier_, method)(bags)
