"""Classes in a tree, with hiclass: ``python -m benchmarks.hosts.class_trees --explore FOLDER``.

The groups of 20news are leaves of a tree ("rec.autos" of "rec"). Four ways to predict both levels:

- leaves: one classifier of leaves; the level above has the sums of its leaves' probabilities
- leaf's own: the same classifier, and above the group of the leaf that it predicts
- levels: one classifier a level, which may contradict each other
- hiclass: one classifier for the upper level and one within each of its groups
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from hiclass import LocalClassifierPerParentNode
from hiclass.metrics import f1
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import TokenVectorizer

from .. import pages
from ..models import LOGISTIC, OURS, logistic, text_classifier
from ..problems import Problem, load
from ..processes import timed

COUNTS = "ClsAttentionClassifier() in hiclass, counts"
REGRESSION = "LogisticRegression(C=10) in hiclass, TF-IDF"


def paths(leaves: NDArray[Any]) -> NDArray[Any]:
    """Return the upper class and the leaf, of shape (n, 2)."""
    return np.array([[leaf.split(".")[0], leaf] for leaf in leaves], dtype=object)


def flat(model: Any, data: Problem) -> Iterator[tuple[str, NDArray[Any], float]]:
    """Yield what one classifier of leaves, and one a level, predict, with the seconds of a fit."""
    of_leaves, seconds = timed(lambda: model().fit(data.X_train, data.y_train))
    parents, columns = np.unique(paths(of_leaves.classes_)[:, 0], return_inverse=True)
    probabilities = of_leaves.predict_proba(data.X_test)
    leaves = of_leaves.classes_[probabilities.argmax(axis=1)]
    sums = probabilities @ np.eye(len(parents))[columns]
    above = parents[sums.argmax(axis=1)]
    is_child = parents[columns] == above[:, None]
    below = of_leaves.classes_[np.where(is_child, probabilities, -1).argmax(axis=1)]
    yield "leaves", np.column_stack([above, below]), seconds
    yield "leaf's own", paths(leaves), seconds
    upper, more = timed(lambda: model().fit(data.X_train, paths(data.y_train)[:, 0]))
    yield "levels", np.column_stack([upper.predict(data.X_test), leaves]), seconds + more


def in_hiclass(vectorizer: Any, model: Any, data: Problem) -> tuple[NDArray[Any], float]:
    """Return what hiclass predicts with a classifier for each inner node, and the seconds."""
    tree = make_pipeline(vectorizer, LocalClassifierPerParentNode(model))
    fitted, seconds = timed(lambda: tree.fit(data.X_train, paths(data.y_train)))
    return fitted.predict(data.X_test), seconds


def measures(predicted: NDArray[Any], leaves: NDArray[Any]) -> dict[str, float]:
    """Return accuracies of both levels, hierarchical F1 and the share of consistent pairs."""
    truth = paths(leaves)
    consistent = paths(predicted[:, 1])[:, 0] == predicted[:, 0]
    upper, lower = (predicted == truth).mean(axis=0)
    score = f1(truth.astype(str), predicted.astype(str))
    return {"upper": upper, "leaf": lower, "F1": score, "consistent": consistent.mean()}


def measured(data: Problem) -> Iterator[dict[str, Any]]:
    """Yield the measures of all ways and classifiers."""
    for title, model in {OURS: text_classifier, LOGISTIC: logistic}.items():
        for way, predicted, seconds in flat(model, data):
            yield {
                "way": way,
                "model": title,
                **measures(predicted, data.y_test),
                "seconds": seconds,
            }
    inside = {
        COUNTS: (TokenVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier()),
        REGRESSION: (TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000)),
    }
    for title, (vectorizer, model) in inside.items():
        predicted, seconds = in_hiclass(vectorizer, model, data)
        yield {
            "way": "hiclass",
            "model": title,
            **measures(predicted, data.y_test),
            "seconds": seconds,
        }


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    options = pages.parser("hosts.class_trees", __doc__, "explore").parse_args(arguments)
    found = pd.DataFrame(list(measured(load("20news", explore=options.explore))))
    numbers = ["upper", "leaf", "F1", "consistent"]
    shown = found.assign(seconds=found["seconds"].map("{:.0f}".format))
    shown[numbers] = found[numbers].map("{:.3f}".format)
    notes = f"hiclass {pages.version('hiclass')}, 20news: accuracy of both levels on its test part."
    table = pages.table(shown.columns, shown.to_numpy())
    pages.publish(
        options.output, "Classes in a tree", "hosts.class_trees --explore FOLDER", notes, table
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
