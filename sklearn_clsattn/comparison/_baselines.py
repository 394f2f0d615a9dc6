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

from sklearn_clsattn._classifier import ClsAttentionClassifier
from sklearn_clsattn._transformer import TokenImportanceTransformer

Kind = Literal["ours", "baseline", "floor"]


@dataclass(frozen=True)
class Model:
    """A model to compare, before it is fitted.

    Parameters
    ----------
    name : str
        Its name in tables.
    estimator : estimator
        An unfitted classifier of token counts; it is cloned, never fitted itself. Keys of its
        ``class_weight`` are labels.
    grid : dict of str to list
        The values that tuning tries, as ``GridSearchCV`` takes them; empty for nothing to tune.
    kind : {"ours", "baseline", "floor"}
        Its role. A floor is what any model must beat; it is never marked as the best.
    """

    name: str
    estimator: Any
    grid: dict[str, list[Any]] = field(default_factory=dict)
    kind: Kind = "baseline"


def default_models(random_state: int | None = 0) -> list[Model]:
    """Return our classifier, the usual linear ones and a majority vote, all with their defaults.

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
    # Five values for each model, around its usual optimum, so that all are tuned alike.
    return [
        Model(
            "ClsAttentionClassifier",
            ClsAttentionClassifier(),
            {"C": [0.1, 0.3, 1.0, 3.0, 10.0]},
            kind="ours",
        ),
        Model(
            "LogisticRegression, counts",
            LogisticRegression(),
            {"C": [0.01, 0.03, 0.1, 0.3, 1.0]},
        ),
        Model(
            "LogisticRegression, TF-IDF",
            make_pipeline(TfidfTransformer(), LogisticRegression()),
            {"logisticregression__C": [0.3, 1.0, 3.0, 10.0, 30.0]},
        ),
        Model(
            "MultinomialNB",
            MultinomialNB(),
            {"alpha": [0.03, 0.1, 0.3, 1.0, 3.0]},
        ),
        Model(
            "NB-SVM (log-odds + LR)",
            make_pipeline(
                Binarizer(), TokenImportanceTransformer("log_odds"), LogisticRegression()
            ),
            {"logisticregression__C": [0.01, 0.03, 0.1, 0.3, 1.0]},
        ),
        Model(
            "LinearSVC, TF-IDF",
            make_pipeline(TfidfTransformer(), LinearSVC(random_state=random_state)),
            {"linearsvc__C": [0.03, 0.1, 0.3, 1.0, 3.0]},
        ),
        # "prior" predicts the most frequent class, and has a meaningful log loss.
        Model("majority vote", DummyClassifier(strategy="prior"), kind="floor"),
    ]
