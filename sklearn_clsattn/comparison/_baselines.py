"""The models that a comparison fits: ours, the usual baselines, and a floor."""

from dataclasses import dataclass, field
from typing import Any, Literal

from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC

from sklearn_clsattn._transformer import TokenImportanceTransformer
from sklearn_clsattn.text import make_text_classifier

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
        An unfitted classifier of its features; it is cloned, never fitted itself. Keys of its
        ``class_weight`` are labels.
    grid : dict of str to list
        The values that tuning tries, as ``GridSearchCV`` takes them; empty for nothing to tune.
    kind : {"ours", "baseline", "floor"}
        Its role. A floor is what any model must beat; it is never marked as the best.
    features : {"counts", "plain", "ours"}, default="counts"
        What it is given: counts of words and their n-grams; the words, punctuation and characters
        of a :class:`~sklearn_clsattn.text.ContextVectorizer` with ``context=False``; or the same
        with the gates that it learns from the training labels, once and not in every fold.
    """

    name: str
    estimator: Any
    grid: dict[str, list[Any]] = field(default_factory=dict)
    kind: Kind = "baseline"
    features: Features = "counts"


def default_models(random_state: int | None = 0) -> list[Model]:
    """Return our classifier, the usual linear ones and a majority vote, all with their defaults.

    Ours is that of :func:`~sklearn_clsattn.text.make_text_classifier`, and chooses its C by itself.
    Baselines have their usual features; two have the TF-IDF of our features without context.

    Parameters
    ----------
    random_state : int or None, default=0
        Seed of those that draw random numbers.

    Returns
    -------
    models : list of Model
        Ours first, the majority vote last.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import default_models
    >>> [model.name for model in default_models()][1:4]
    ['LogisticRegression, counts', 'LogisticRegression, TF-IDF', 'MultinomialNB']
    """
    # Five values for each baseline, around its usual optimum, so that all are tuned alike.
    of_tfidf = make_pipeline(TfidfTransformer(), LogisticRegression())
    svc_of_tfidf = make_pipeline(TfidfTransformer(), LinearSVC(random_state=random_state))
    logistic_grid = {"logisticregression__C": [0.3, 1.0, 3.0, 10.0, 30.0]}
    svc_grid = {"linearsvc__C": [0.03, 0.1, 0.3, 1.0, 3.0]}
    return [
        Model(
            "ClsAttentionClassifier",
            make_text_classifier()["classifier"],
            kind="ours",
            features="ours",
        ),
        Model(
            "LogisticRegression, counts", LogisticRegression(), {"C": [0.01, 0.03, 0.1, 0.3, 1.0]}
        ),
        Model("LogisticRegression, TF-IDF", of_tfidf, logistic_grid),
        Model("MultinomialNB", MultinomialNB(), {"alpha": [0.03, 0.1, 0.3, 1.0, 3.0]}),
        Model(
            "NB-SVM (log-odds + LR)",
            make_pipeline(
                Binarizer(), TokenImportanceTransformer("log_odds"), LogisticRegression()
            ),
            {"logisticregression__C": [0.01, 0.03, 0.1, 0.3, 1.0]},
        ),
        Model("LinearSVC, TF-IDF", svc_of_tfidf, svc_grid),
        Model("LogisticRegression, same features", of_tfidf, logistic_grid, features="plain"),
        Model("LinearSVC, same features", svc_of_tfidf, svc_grid, features="plain"),
        # "prior" predicts the most frequent class, and has a meaningful log loss.
        Model("majority vote", DummyClassifier(strategy="prior"), kind="floor"),
    ]


def seconds_by_features(seconds: dict[Features, float]) -> str:
    """Return the seconds that features took to make, in words."""
    return ", ".join(f"{_FEATURES[of]} {spent:.2f} s" for of, spent in seconds.items())
