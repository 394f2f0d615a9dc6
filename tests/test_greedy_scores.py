"""The greedy order of removal is the one that trying every token finds."""

from copy import copy

import numpy as np
import pytest
from helpers import data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.metrics import comprehensiveness, deletion_curve, greedy_scores, sufficiency


def tried(model, x, code, keep, k):
    """Return the probabilities of a class along the order that predicting every step finds."""
    present = np.zeros_like(x) if keep else x.copy()
    left, curve = np.flatnonzero(x).tolist(), [model.predict_proba(present[None])[0, code]]
    while left and len(curve) <= k:
        candidates = np.tile(present, (len(left), 1))
        candidates[np.arange(len(left)), left] = x[left] if keep else 0
        chances = model.predict_proba(candidates)[:, code]
        best = int(chances.argmax() if keep else chances.argmin())
        if (chances[best] - curve[-1]) * (1 if keep else -1) <= 1e-12:
            break
        present = candidates[best]
        curve.append(chances[best])
        left.pop(best)
    return curve


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([2, 3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 8.0]),
    st.integers(0, 99),
)
def test_every_step_is_the_best_of_all(n_classes, attend_cls, keep, spread, seed):
    X, y = data(n_classes)
    X = X[-9:]
    model = copy(ClsAttentionClassifier(C=1.0, attend_cls=attend_cls).fit(X, y[-9:]))
    rng = np.random.default_rng(seed)
    model.attention_scores_ = spread * rng.normal(size=X.shape[1])
    model.token_values_ = rng.normal(size=model.token_values_.shape)
    codes = model.decision_function(X)
    codes = codes.argmax(axis=1) if codes.ndim == 2 else (codes > 0).astype(int)
    scores = greedy_scores(model, X, keep=keep).toarray()
    for x, code, ranks in zip(X.toarray(), codes, scores, strict=True):
        expected = tried(model, x, code, keep, len(x))
        order = np.argsort(-ranks, kind="stable")[: np.count_nonzero(ranks)]
        found = np.zeros_like(x) if keep else x.copy()
        curve = [model.predict_proba(found[None])[0, code]]
        for token in order:
            found[token] = x[token] if keep else 0
            curve.append(model.predict_proba(found[None])[0, code])
        shared = min(len(curve), len(expected))  # the last steps may be rounding
        assert_allclose(curve[:shared], expected[:shared], atol=1e-9)
        assert_allclose(curve[-1], expected[-1], atol=1e-9)


def test_the_measures_are_those_of_the_best_single_token():
    X, y = data(3)
    model = ClsAttentionClassifier().fit(X, y)
    terms = model.contributions(X)
    greedy = greedy_scores(model, X)
    assert (
        comprehensiveness(model, X, greedy, k=1) >= comprehensiveness(model, X, terms, k=1)
    ).all()
    assert (np.diff(deletion_curve(model, X, greedy, k=5), axis=1) <= 1e-12).all()
    kept = greedy_scores(model, X, keep=True, k=2)
    assert (np.diff(kept.indptr) == np.diff(X.indptr)).all()
    assert ((kept > 0).sum(axis=1) <= 2).all()
    assert sufficiency(model, X, kept, k=1).mean() <= sufficiency(model, X, terms, k=1).mean()


def test_other_models_are_refused():
    X, y = data()
    with pytest.raises(TypeError, match="of this package"):
        greedy_scores("model", X)
    model = ClsAttentionClassifier().fit(X, y)
    with pytest.raises(ValueError, match="not a class"):
        greedy_scores(model, X, target="c")
    with pytest.raises(ValueError, match="k"):
        greedy_scores(model, X, k=0)
