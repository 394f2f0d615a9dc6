"""The classifier among others: pipelines, searches, threads, pickles, callbacks."""

import gc
import pickle
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
import torch
from helpers import assert_same_fit, data, settled
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._callbacks import HAS_CALLBACKS
from sklearn_clsattn._core.backend import FEW_MULTIPLICATIONS, ThreadShare, in_threads
from sklearn_clsattn.text import ContextVectorizer, _context

GOOD = "a good film with a good heart/good fun and a plot/a good film/warm and fine and good"
BAD = "a bad film with a dull plot/dull and bad and long/a long dull bad mess/no plot no heart"
TEXTS = 3 * [*GOOD.split("/"), *BAD.split("/")]
LABELS = np.array(3 * (["pos"] * 4 + ["neg"] * 4))
CALLBACKS = pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn < 1.9 has no callbacks")


def test_texts_in_labels_out():
    pipeline = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(TEXTS, LABELS)
    assert_array_equal(pipeline.predict(["good good film", "dull long mess"]), ["pos", "neg"])
    assert pipeline.score(TEXTS, LABELS) == 1.0
    words = pipeline[0].get_feature_names_out()
    importance = pipeline[-1].token_importance_
    assert words[importance.argmax()] == "good"
    assert importance[pipeline[0].vocabulary_["dull"]] < 0
    # Nothing about a text of unknown words but the intercept.
    assert_array_equal(pipeline.decision_function(["unheard"]), pipeline[-1].intercept_)


def test_grid_search_gives_the_same_answer_in_threads():
    pipeline = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    grid = {
        "clsattentionclassifier__C": [0.01, 1.0],
        "clsattentionclassifier__attend_cls": [True, False],
    }

    def search(n_jobs):
        return GridSearchCV(
            pipeline, grid, cv=2, n_jobs=n_jobs, scoring="neg_log_loss", error_score="raise"
        ).fit(TEXTS, LABELS)

    threads = torch.get_num_threads()
    serial = search(1)
    with joblib.parallel_backend("threading"):
        parallel = search(2)
    assert torch.get_num_threads() == threads
    assert parallel.best_params_ == serial.best_params_
    scores = [key for key in serial.cv_results_ if key.endswith("test_score")]
    assert len(scores) >= 4
    for key in scores:
        assert_array_equal(parallel.cv_results_[key], serial.cv_results_[key])
    assert_same_fit(parallel.best_estimator_[-1], serial.best_estimator_[-1])


def test_among_scikit_learns_meta_estimators():
    X, y = data(3)
    model = ClsAttentionClassifier()
    assert (cross_val_score(model, X, y, cv=3) > 0.5).all()

    selector = SelectFromModel(model, importance_getter="token_importance_", max_features=5)
    kept = selector.fit(X, y).get_support(indices=True)
    assert len(kept) <= 5
    assert {0, 1, 2} <= set(kept)  # the tokens that tell the classes apart
    assert selector.transform(X).shape == (60, len(kept))

    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert calibrated.score(X, y) > 0.7

    one_against_rest = OneVsRestClassifier(model).fit(X, y)
    assert len(one_against_rest.estimators_) == 3
    assert one_against_rest.score(X, y) > 0.7


def test_clones_and_parameters():
    X, y = data()
    model = settled(C=0.3, class_weight={0: 2.0, 1: 1.0}).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "classes_")
    assert_same_fit(copy.fit(X, y), model)
    assert repr(ClsAttentionClassifier(C=2.0)) == "ClsAttentionClassifier(C=2.0)"


# Threads


@pytest.fixture
def eight_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


def test_fits_side_by_side_share_the_threads(eight_threads):
    """No more threads than there are for all fits, and all of them back at the end."""
    n_fits, shares, seen = 4, {}, {}
    entered = [threading.Event() for _ in range(n_fits)]
    leave = threading.Event()

    def fit(i):
        with ThreadShare() as shares[i]:
            entered[i].set()
            leave.wait(timeout=30)
            assert torch.get_num_threads() == 1
        seen[i] = torch.get_num_threads()

    workers = [threading.Thread(target=fit, args=(i,)) for i in range(n_fits)]
    for i, (worker, event) in enumerate(zip(workers, entered, strict=True)):
        worker.start()
        assert event.wait(timeout=30)
        # Who was there before gives up threads.
        assert [shares[k].n_threads for k in range(i + 1)] == [8 // (i + 1)] * (i + 1)
    leave.set()
    for worker in workers:
        worker.join(timeout=30)
    assert seen == dict.fromkeys(range(n_fits), 8)
    assert torch.get_num_threads() == 8
    with ThreadShare() as share:
        assert share.n_threads == 8


def test_more_fits_than_threads_get_one_each(eight_threads):
    torch.set_num_threads(2)
    with ThreadShare() as first, ThreadShare() as second:
        assert (first.n_threads, second.n_threads) == (1, 1)
        with ThreadShare() as third:
            assert third.n_threads == 1
    assert torch.get_num_threads() == 2


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_nothing_spins_during_a_fit(eight_threads, monkeypatch):
    """Neither PyTorch nor BLAS has a second thread, and both have their own number back."""
    X, y = data(3, n_documents=300)
    with threadpool_limits(2, "blas"):
        before, seen = blas_threads(), []

        class Watched(ClsAttentionClassifier):
            def _print(self, progress):
                seen.append((torch.get_num_threads(), blas_threads()))

        def watched(*arguments, **options):
            seen.append((torch.get_num_threads(), blas_threads()))
            return minimize(*arguments, **options)

        minimize = _context.minimize
        monkeypatch.setattr(_context, "minimize", watched)
        Watched().fit(X, y)
        ContextVectorizer(min_df=1).fit(TEXTS, LABELS)
        assert len(seen) > 2
        assert all(one == (1, {1}) for one in seen)
        assert (torch.get_num_threads(), blas_threads()) == (8, before)


def test_pytorch_has_the_threads_of_many_dense_multiplications(eight_threads):
    with ThreadShare(FEW_MULTIPLICATIONS - 1):
        assert torch.get_num_threads() == 1
    with ThreadShare(FEW_MULTIPLICATIONS):
        assert torch.get_num_threads() == 8
    assert torch.get_num_threads() == 8


def test_threads_take_what_is_left_and_begin_nothing_after_an_error(eight_threads):
    both = threading.Barrier(2, timeout=30)

    def square(x):
        if x < 2:
            both.wait()  # two threads have begun
        return threading.get_ident(), x * x

    torch.set_num_threads(2)
    threads, squares = zip(*in_threads(square, range(20)), strict=True)
    assert len(set(threads)) == 2
    assert squares == tuple(x * x for x in range(20))
    begun = []

    def fail(x):
        begun.append(x)
        both.wait()
        raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        in_threads(fail, range(20))
    assert len(begun) == 2
    assert torch.get_num_threads() == 2


def test_a_fit_interrupted_as_it_begins_counts_no_longer(eight_threads, monkeypatch):
    def interrupted(n):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(torch, "set_num_threads", interrupted)
        with pytest.raises(KeyboardInterrupt), ThreadShare():
            pass
    gc.collect()
    with ThreadShare() as share:
        assert share.n_threads == 8


def test_a_fit_that_fails_gives_its_threads_back(eight_threads):
    def fail():
        with ThreadShare(), ThreadShare() as share:
            assert share.n_threads == 4
            raise RuntimeError("failed")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed"):
            fail()
        assert torch.get_num_threads() == 8


def test_a_thread_keeps_the_number_that_its_owner_set(eight_threads):
    torch.set_num_threads(1)
    with ThreadShare() as share:
        assert share.n_threads == 1
    assert torch.get_num_threads() == 1


def test_the_number_of_threads_does_not_change_the_fit():
    X, y = data(3, n_documents=300)
    before = torch.get_num_threads()
    fits = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        fits.append(ClsAttentionClassifier().fit(X, y))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    for other in fits[1:]:
        assert_array_equal(other.decision_function(X), fits[0].decision_function(X))


# Pickles, and prediction without PyTorch

WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("PyTorch is not here")

sys.meta_path.insert(0, NoTorch())
import joblib
import numpy as np
import sklearn_clsattn

load = joblib.load if sys.argv[1].endswith("joblib") else np.load
model, X = load(sys.argv[1], allow_pickle=True) if load is np.load else load(sys.argv[1])
terms = model.contributions(X)
results = [
    model.predict(X), model.predict_proba(X), model.decision_function(X),
    model.attention(X).toarray(), model.select_tokens(X).toarray(),
    *(term.toarray() for term in (terms if isinstance(terms, list) else [terms])),
]
assert "torch" not in sys.modules
np.savez(sys.argv[2], *results)
"""


@pytest.mark.parametrize(("n_classes", "how"), [(2, "joblib"), (3, "pickle")])
def test_a_pickled_model_predicts_where_there_is_no_torch(n_classes, how, tmp_path):
    X, y = data(n_classes)
    model = ClsAttentionClassifier().fit(X, y)
    path, answers = tmp_path / f"model.{how}", tmp_path / "answers.npz"
    if how == "joblib":
        joblib.dump((model, X), path)
    else:
        path.write_bytes(pickle.dumps((model, X)))
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(path), str(answers)], check=True, timeout=120
    )
    terms = model.contributions(X)
    expected = [
        model.predict(X),
        model.predict_proba(X),
        model.decision_function(X),
        model.attention(X).toarray(),
        model.select_tokens(X).toarray(),
        *(term.toarray() for term in (terms if isinstance(terms, list) else [terms])),
    ]
    with np.load(answers) as results:
        for result, name in zip(expected, results.files, strict=True):
            assert_array_equal(results[name], result)


def test_everything_fitted_is_numpy():
    X, y = data(3)
    model = ClsAttentionClassifier().fit(X, y)
    assert b"torch" not in pickle.dumps(model)
    fitted = {name: v for name, v in vars(model).items() if name.endswith("_")}
    assert all(isinstance(v, np.ndarray | float | int) for v in fitted.values()), fitted
    copy = pickle.loads(pickle.dumps(model))
    assert_same_fit(copy, model)
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


# Callbacks


class Recorder:
    """Sees every task of a fit; stops it after `stop_after` iterations."""

    def __init__(self, X=None, stop_after=None):
        self.X, self.stop_after = X, stop_after
        self.begun, self.ended, self.losses, self.hooks = [], [], [], []

    def setup(self, estimator, context):
        self.hooks.append("setup")
        self.max_subtasks = context.max_subtasks

    def teardown(self, estimator, context):
        self.hooks.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.begun.append(context.task_name)
        self.shapes = X.shape, y.shape

    def on_fit_task_end(self, estimator, context, *, y=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        if self.X is not None:
            probabilities = fitted_estimator.predict_proba(self.X)
            self.losses.append(-np.log(probabilities[np.arange(len(y)), y]).mean())
            fitted_estimator.contributions(self.X)
        iterations = sum(task.endswith("-iter") for task in self.ended)
        return self.stop_after is not None and iterations >= self.stop_after


@CALLBACKS
def test_callbacks_see_every_iteration():
    X, y = data(3)
    recorder = Recorder(X)
    model = ClsAttentionClassifier(C=1.0, tol=1e-4).set_callbacks(recorder).fit(X, y)
    assert recorder.hooks == ["setup", "teardown"]
    assert recorder.max_subtasks == model.max_iter
    assert recorder.ended == ["lbfgs-iter"] * model.n_iter_ + ["fit"]
    assert recorder.begun == ["fit"] + ["lbfgs-iter"] * model.n_iter_
    assert recorder.shapes == (X.shape, y.shape)
    assert recorder.losses[0] > recorder.losses[-2]
    # The end of the fit shows the whole model, as fitted.
    final = -model.predict_log_proba(X)[np.arange(len(y)), y].mean()
    assert recorder.losses[-2:] == [pytest.approx(final), pytest.approx(final)]
    assert_same_fit(model, ClsAttentionClassifier(C=1.0, tol=1e-4).fit(X, y))


@CALLBACKS
def test_a_callback_can_stop_the_fit():
    X, y = data()
    model = ClsAttentionClassifier(tol=1e-9).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert model.n_iter_ == 2  # and no ConvergenceWarning: it was asked for
    assert len(model.loss_curve_) == 3
    assert model.predict(X).shape == y.shape


@CALLBACKS
def test_callbacks_are_torn_down_where_a_fit_fails():
    X, y = data()

    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("no more")

    failing = Failing()
    with pytest.raises(RuntimeError, match="no more"):
        ClsAttentionClassifier().set_callbacks(failing).fit(X, y)
    assert failing.hooks == ["setup", "teardown"]


@CALLBACKS
def test_scikit_learns_own_callbacks():
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data()
    monitor = ScoringMonitor(scoring="accuracy")
    model = ClsAttentionClassifier().set_callbacks(monitor, ProgressBar()).fit(X, y)
    assert model.score(X, y) > 0.8
    search = GridSearchCV(ClsAttentionClassifier(), {"C": [0.1, 1.0]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.5
