"""TrajectoryRecorder and its display, against a slow loop over documents."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
from sklearn_clsattn._callbacks import HAS_CALLBACKS
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import TrajectoryRecorder
from sklearn_clsattn.paper import EmbeddingClassifier, OneStepClassifier

CALLBACKS = pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has callbacks from 1.9 on")
X, y = make_token_classification(60, delta=0, single_relevant=True, random_state=0)


def recorded(model, X=X, **more):
    recorder = TrajectoryRecorder(**more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return recorder, model.set_callbacks(recorder).fit(X, y)


def slow(scores, X):
    """Return concentration, margin and selections, document by document."""
    shares, gaps, chosen = [], [], []
    for row in X.toarray():
        tokens = np.flatnonzero(row)
        highest = scores[tokens].max()
        selected = tokens[scores[tokens] >= highest - 1e-6]
        masses = row[tokens] * np.exp(scores[tokens] - highest)
        shares.append(masses[np.isin(tokens, selected)].sum() / masses.sum())
        others = np.setdiff1d(tokens, selected)
        gaps.append(highest - scores[others].max() if len(others) else np.inf)
        chosen.append(set(selected.tolist()))
    return np.mean(shares), min(gaps) / np.linalg.norm(scores), chosen


@CALLBACKS
@pytest.mark.parametrize(
    "model",
    [
        OneStepClassifier(max_iter=30),
        EmbeddingClassifier(embedding_dim=16, max_iter=12, random_state=0),
    ],
)
def test_it_agrees_with_a_slow_loop(model):
    recorder, model = recorded(model)
    frame = recorder.to_frame()
    assert frame["n_iter"].tolist() == [*range(1, model.n_iter_ + 1), model.n_iter_]
    assert_allclose(recorder.attention_scores[-1], model.attention_scores_, rtol=1e-6)
    *_, at_end = slow(model.attention_scores_, X)
    for scores, (_, row) in zip(recorder.attention_scores, frame.iterrows(), strict=True):
        concentration, margin, chosen = slow(scores.astype(float), X)
        assert row["attention_on_selected"] == pytest.approx(concentration, rel=1e-4)
        if margin > 1e-5:  # else single precision may tie what was none
            assert row["margin"] == pytest.approx(margin, rel=0.01, abs=1e-6)
            same = np.mean([a == b for a, b in zip(chosen, at_end, strict=True)])
            assert row["selection_as_at_end"] == pytest.approx(same)
    assert frame["cosine_to_end"].iloc[-1] == pytest.approx(1)
    assert frame["selection_as_at_end"].iloc[-1] == 1


@CALLBACKS
def test_recording_changes_nothing_and_starts_anew():
    recorder, model = recorded(OneStepClassifier(max_iter=30), every=7)
    assert recorder.n_iters == [*range(7, model.n_iter_ + 1, 7), model.n_iter_]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = OneStepClassifier(max_iter=30).fit(X, y)
        assert_allclose(model.attention_scores_, plain.attention_scores_, rtol=0)
        before = len(recorder.n_iters)
        model.fit(X.toarray(), y)
    assert len(recorder.n_iters) == before


@CALLBACKS
def test_documents_without_tokens_are_left_out():
    padded = X.copy().tolil()
    padded[3] = 0
    recorder, _ = recorded(ClsAttentionClassifier(), X=padded.tocsr())
    assert np.isfinite(recorder.to_frame()["attention_on_selected"]).all()


@CALLBACKS
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's and pyparsing's
def test_the_display_draws_the_record():
    plt = pytest.importorskip("matplotlib.pyplot")
    from sklearn_clsattn.inspection import TrajectoryDisplay

    recorder, _ = recorded(OneStepClassifier(max_iter=30))
    display = TrajectoryDisplay.from_recorder(recorder)
    frame = recorder.to_frame()
    assert display.to_frame().equals(frame)
    assert [ax.get_title(loc="left") for ax in display.ax_] == [
        "Direction of p",
        "Concentration",
        "Margin",
        "Selection",
    ]
    drawn = display.ax_[3].lines[0].get_xydata()
    assert_allclose(drawn, frame[["n_iter", "selection_as_at_end"]])
    plt.close(display.figure_)
    with pytest.raises(ValueError, match="missing: \\['margin'\\]"):
        TrajectoryDisplay(frame.drop(columns="margin"))


def test_bad_input():
    with pytest.raises(ValueError, match="every"):
        TrajectoryRecorder(every=0)
    with pytest.raises(ValueError, match="Nothing was recorded"):
        TrajectoryRecorder().to_frame()


@CALLBACKS
def test_without_documents_in_memory_it_says_so(tmp_path):
    counts = ChunkedCounts.write(tmp_path / "counts", [(X, y)])
    model = ClsAttentionClassifier().set_callbacks(TrajectoryRecorder())
    with pytest.raises(ValueError, match="leave it out of fits on chunks"):
        model.fit_chunks(counts)
    with pytest.raises(ValueError, match="needs a document with a token"):
        recorded(ClsAttentionClassifier(), 0 * X)
