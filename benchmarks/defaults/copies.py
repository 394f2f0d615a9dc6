"""Which folds: dealt out by content, or at random, where many documents are copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from sklearn_clsattn._core import choose_c

from .curve import Curve
from .question import Question, Row
from .sets import Split

SHARE = 0.3


def measure(split: Split) -> dict[str, Row]:
    n = len(split.y_train)
    copied = np.random.default_rng(split.seed).choice(n, int(SHARE * n), replace=False)
    split = replace(
        split,
        X_train=sp.vstack([split.X_train, split.X_train[copied]]).tocsr(),
        y_train=np.concatenate([split.y_train, split.y_train[copied]]),
    )
    curve = Curve(split)
    every_fold = {"ENOUGH_DOCUMENTS": 4 * n, "SAMPLE_SIZE": 2 * n}
    chosen = {"content": curve.chosen(**every_fold)}
    with patch.object(choose_c, "deal", at_random):
        chosen["random"] = curve.chosen(**every_fold)
    return {
        "oracle": curve.at(curve.best()),
        **{name: curve.at(C, seconds, n_fits) for name, (C, n_fits, seconds) in chosen.items()},
    }


def at_random(groups: NDArray[np.intp], codes: NDArray[np.intp], n_folds: int) -> NDArray[np.intp]:
    """Return stratified random folds that know nothing of copies, (n_documents,)."""
    folds: Any = np.empty(len(codes), dtype=np.intp)
    dealer = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for fold, (_, rows) in enumerate(dealer.split(codes[:, None], codes)):
        folds[rows] = fold
    return folds


QUESTION = Question(
    "copies",
    "How are folds dealt out?",
    f"{SHARE:.0%} of the training documents are there twice. All four folds are held out, and the "
    "guess is left out. By content, the copies of a document fall into its fold; at random, most "
    "are trained on while it is held out.",
    {
        "oracle": "oracle",
        "content": "by content (**the default**)",
        "random": "stratified, at random",
    },
    "oracle",
    measure,
    unit="content",
    count="fits",
    sizes=(2_000, None),
    seeds=2,
    takes=lambda split: split.n_splits > 1,
)
