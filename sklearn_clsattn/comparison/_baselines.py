"""The models that a comparison fits: ours, those that users would pick, and a floor."""

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


@dataclass(frozen=True)
class Model:
    """An entrant of a comparison.

    Parameters
    ----------
    name : str
        What tables call it.
    estimator : estimator
        An unfitted classifier of token counts; it is cloned, never fitted itself.
    grid : dict of str to list
        The values that tuning tries, as ``GridSearchCV`` takes them; empty for nothing to tune.
    kind : {"ours", "baseline", "floor"}
        What it is there for. A floor is what any model must beat; it is never named the best.
    """

    name: str
    estimator: Any
    grid: dict[str, list[Any]] = field(default_factory=dict)
    kind: Literal["ours", "baseline", "floor"] = "baseline"


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
    # Five values a model, around where each is usually best: none is tuned harder than another.
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
        # "prior" votes as "most_frequent" does, and has a log loss that means something.
        Model("majority vote", DummyClassifier(strategy="prior"), kind="floor"),
    ]
