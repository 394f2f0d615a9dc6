"""What all classifiers share, the paper's as well: input, weights, pickles, searches."""

import itertools
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from helpers import assert_same_fit, data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from test_pipelines import CALLBACKS, Recorder

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
)

ADAM = {"max_iter": 6, "random_state": 0}
ALL_AT_ONCE = {"early_stopping": False, **ADAM}
NETWORK = {"embedding_dim": 8, "batch_size": 1000, **ALL_AT_ONCE}
FINITE = {"embedding_dim": 64, "random_state": 0}
TRAININGS = {
    "joint": ClsAttentionClassifier(),
    "one step": OneStepClassifier(max_iter=15, random_state=0),
    "one step, d = 64": OneStepClassifier(max_iter=15, **FINITE),
    "penalized": PenalizedOneStepClassifier(random_state=0),
    "penalized, d = 64": PenalizedOneStepClassifier(**FINITE),
    "frozen": FrozenEmbeddingClassifier(embedding_dim=16, random_state=0),
    "adam": EmbeddingClassifier(**ALL_AT_ONCE),
    "adam, d = 8": EmbeddingClassifier(embedding_dim=8, **ALL_AT_ONCE),
    "adam, stopping early": EmbeddingClassifier(learning_rate=0.2, **ADAM),
    "two layers": AttentionNetworkClassifier(n_layers=2, **NETWORK),
    "mlp": AttentionNetworkClassifier(mlp=True, **NETWORK),
    "two layers, mlp, stopping early": AttentionNetworkClassifier(
        n_layers=2, mlp=True, embedding_dim=8, **ADAM
    ),
}
DETERMINISTIC = {"joint", "one step", "penalized", "adam"}
REDRAWN = {"frozen", "one step, d = 64", "penalized, d = 64"}  # E, where it is asked for
PER_TRAINING = pytest.mark.parametrize("name", TRAININGS)
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])

# Nothing here is trained to the end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def classifier(name, **parameters):
    return clone(TRAININGS[name]).set_params(**parameters)


def dimension(model):
    return getattr(model, "embedding_dim", None)


def attends_to_itself(model):
    return getattr(model, "attend_cls", False)


def is_mlp(name):
    return "mlp" in name


def terms_of(model, X):
    terms = model.contributions(X)
    return terms if isinstance(terms, list) else [terms]


def said_of(model, X):
    """Return everything that a model says of documents, as arrays."""
    return [
        model.predict(X),
        model.predict_proba(X),
        model.predict_log_proba(X),
        model.decision_function(X),
        model.attention(X).toarray(),
        model.select_tokens(X).toarray(),
        *([] if model.mlp else [term.toarray() for term in terms_of(model, X)]),
    ]


# Fitted attributes


@PER_TRAINING
@CLASSES
def test_fitted_attributes(name, n_classes):
    X, y = data(n_classes)
    # The search for C may end where the fit does, which then has no iteration of its own.
    model = classifier(name, **({"C": 1.0} if name == "joint" else {})).fit(X, y)
    n, outputs = X.shape[1], () if n_classes == 2 else (n_classes,)
    d = dimension(model) or (2 if n_classes == 2 else 1 + n_classes)
    assert model.token_importance_.shape == model.token_values_.shape == (*outputs, n)
    assert model.attention_scores_.shape == (n,)
    assert model.intercept_.shape == (1 if n_classes == 2 else n_classes,)
    assert model.cls_embedding_.shape == (d,)
    assert model.output_vector_.shape == (*outputs, d)
    assert model.token_embeddings_.shape == (n, d)
    assert 1 <= model.n_iter_ <= model.max_iter
    assert model.loss_curve_.shape == (model.n_iter_ + 1,)
    if not is_mlp(name):  # of which the learning rate is a large one
        assert model.loss_curve_.min() < model.loss_curve_[0]
    assert (np.isfinite(model.cls_score_), model.cls_weight_ > 0) == 2 * (attends_to_itself(model),)
    counts = np.asarray(model.select_tokens(X).sum(axis=0)).ravel()
    assert_array_equal(model.selection_counts_, counts[model.selected_tokens_])
    assert model.selection_counts_.sum() == counts.sum()
    # Everything is NumPy: nothing needs PyTorch or a GPU to be loaded.
    assert b"torch" not in pickle.dumps(model)
    public = {key: value for key, value in vars(model).items() if key.endswith("_")}
    assert all(isinstance(value, np.ndarray | float | int) for value in public.values()), public
    parameters = model.get_params()
    assert hasattr(model, "optimality_gap_") == ("attention_C" in parameters)
    one_step = parameters.get("train_embeddings", "one_step") == "one_step"
    assert hasattr(model, "step_size_") == ("step_size" in parameters and one_step)
    assert hasattr(model, "direction_curve_") == isinstance(model, OneStepClassifier)
    assert hasattr(model, "validation_loss_curve_") == ("early" in name)
    if "early" in name:
        assert model.validation_loss_curve_.shape == model.loss_curve_.shape


@PER_TRAINING
@CLASSES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_embeddings_have_the_scores_and_the_values(name, n_classes, dtype):
    X, y = data(n_classes)
    model = classifier(name).fit(X.astype(dtype), y)
    E, p, v = model.token_embeddings_, model.cls_embedding_, model.output_vector_
    rtol = 1e-10 if dtype == np.float64 else 2e-5
    for product, array in (
        (E @ p, model.attention_scores_),
        (E @ v.T, model.token_values_.T),
    ):
        if array is model.attention_scores_ and getattr(model, "n_layers", 1) == 2:
            continue  # of two layers p meets a key-query matrix first
        assert_allclose(product, array, rtol=rtol, atol=rtol * np.abs(array).max())


@PER_TRAINING
@CLASSES
def test_contributions_add_up_and_attention_is_shared_out(name, n_classes):
    X, y = data(n_classes)
    model = classifier(name).fit(X, y)
    decision = model.decision_function(X).reshape(len(y), -1)
    attention = model.attention(X)
    shares = np.asarray(attention.sum(axis=1)).ravel()
    assert attention.data.min() >= 0
    assert shares.max() <= 1 + 1e-12
    if not attends_to_itself(model):
        assert_allclose(shares[:-1], 1)
    assert_array_equal(attention.toarray() > 0, X.toarray() > 0)
    if is_mlp(name):
        with pytest.raises(ValueError, match="no sum over tokens"):
            model.contributions(X)
        return
    sums = [np.asarray(term.sum(axis=1)).ravel() for term in terms_of(model, X)]
    assert_allclose(np.column_stack(sums) + model.intercept_, decision, rtol=1e-9, atol=1e-12)


# Input


@PER_TRAINING
def test_formats(name):
    X, y = data(3)
    expected = classifier(name).fit(X, y)
    frame = pd.DataFrame(X.toarray(), columns=[f"word {s}" for s in range(X.shape[1])])
    formats = [sp.csc_array(X), sp.coo_matrix(X), sp.lil_matrix(X), X.toarray()]
    for Z in formats:
        assert_same_fit(classifier(name).fit(Z, y), expected)
        assert_allclose(expected.decision_function(Z), expected.decision_function(X), rtol=1e-12)
    framed = classifier(name).fit(frame, pd.Series(y))
    assert_same_fit(framed, expected)
    assert_array_equal(framed.feature_names_in_, frame.columns)
    assert not hasattr(expected, "feature_names_in_")
    with pytest.raises(ValueError, match="feature names"):
        framed.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match=r"19 features.*expecting 20"):
        expected.predict(X[:, :-1])


@PER_TRAINING
@CLASSES
def test_labels(name, n_classes):
    X, y = data(n_classes)
    labels = np.array(["ham", "news", "spam"])[:n_classes]
    expected = classifier(name).fit(X, y)
    model = classifier(name).fit(X, labels[y])
    assert_same_fit(model, expected)
    assert_array_equal(model.classes_, labels)
    assert_array_equal(model.predict(X), labels[expected.predict(X)])
    assert_array_equal(classifier(name).fit(X, labels[y].tolist()).predict(X), model.predict(X))


@PER_TRAINING
def test_number_types(name):
    X, y = data(3)
    expected = classifier(name).fit(X.astype(np.float32), y)
    for dtype in (np.int64, np.uint8):  # trained on in single precision as well
        Z = X.astype(dtype)
        model = classifier(name).fit(Z, y)
        assert_same_fit(model, expected)
        assert_array_equal(model.predict_proba(Z), expected.predict_proba(X))
    for attribute in ("attention_scores_", "token_values_", "intercept_"):
        assert getattr(expected, attribute).dtype == np.float64
    if name in DETERMINISTIC - {"one step"}:  # whose descent is not at its end
        double = classifier(name).fit(X, y)
        assert_allclose(expected.predict_proba(X), double.predict_proba(X), atol=5e-3)


@PER_TRAINING
@CLASSES
def test_tokens_never_seen_and_documents_without_tokens(name, n_classes):
    X, y = data(n_classes)  # the last token is in no document, the last document is empty
    X, y = sp.vstack([X, sp.csr_matrix((3, X.shape[1]))]).tocsr(), np.append(y, [0, 1, 1])
    model = classifier(name).fit(X, y)
    unseen = np.zeros((2, X.shape[1]))
    unseen[0, -1], unseen[1, [0, -1]] = 3.0, 1.0
    for said in said_of(model, np.vstack([unseen, np.zeros(X.shape[1])])):
        assert np.isfinite(said).all()
    if dimension(model) is None:
        assert_array_equal(model.token_values_[..., -1], 0)
    empty = np.zeros((1, X.shape[1]))
    assert model.attention(empty).sum() == 0
    assert not model.select_tokens(empty).toarray().any()
    if not is_mlp(name):
        assert_array_equal(np.ravel(model.decision_function(empty)), model.intercept_)


@PER_TRAINING
def test_X_is_never_altered(name):
    X, y = data(3)
    for row in range(X.shape[0]):  # unsorted indices must stay as they are, too
        part = slice(X.indptr[row], X.indptr[row + 1])
        X.data[part], X.indices[part] = X.data[part][::-1].copy(), X.indices[part][::-1].copy()
    X.has_sorted_indices = False
    before = [array.tobytes() for array in (X.data, X.indices, X.indptr)]
    said_of(classifier(name).fit(X, y), X)
    assert [array.tobytes() for array in (X.data, X.indices, X.indptr)] == before


@pytest.mark.parametrize("name", [name for name in TRAININGS if "early" not in name])
@CLASSES
def test_weights_are_repetition(name, n_classes):
    X, y = data(n_classes)
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), repeats)
    weighted = classifier(name).fit(X, y, sample_weight=repeats)
    repeated = classifier(name).fit(X[rows], y[rows])
    kept = np.flatnonzero(repeats)
    dropped = classifier(name).fit(X[kept], y[kept], sample_weight=repeats[kept])
    for other in (repeated, dropped):
        assert_allclose(other.decision_function(X), weighted.decision_function(X), atol=1e-6)
        assert_allclose(other.token_importance_, weighted.token_importance_, atol=1e-14)
        assert_array_equal(np.sort(other.selected_tokens_), np.sort(weighted.selected_tokens_))
    assert_same_fit(
        classifier(name).fit(X, y, sample_weight=np.ones(len(y))), classifier(name).fit(X, y)
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@PER_TRAINING
def test_cuda_where_there_is_none(name):
    with pytest.raises(ValueError, match="finds no CUDA device"):
        classifier(name, device="cuda").fit(*data())


# One fit and the next


@PER_TRAINING
def test_random_state(name):
    X, y = data(3)
    first = classifier(name).fit(X, y)
    assert_same_fit(classifier(name).fit(X, y), first)
    assert_same_fit(first.fit(X, y), classifier(name).fit(X, y))
    assert_array_equal(first.token_embeddings_, classifier(name).fit(X, y).token_embeddings_)
    if name == "joint":
        return  # draws nothing, and has no such parameter
    other = classifier(name, random_state=1).fit(X, y)
    if name in DETERMINISTIC:
        assert_same_fit(other, first)
    else:
        assert np.abs(other.decision_function(X) - first.decision_function(X)).max() > 1e-6
    if dimension(first) is not None:
        assert not np.allclose(other.token_embeddings_, first.token_embeddings_)
        assert not np.allclose(other.cls_embedding_, first.cls_embedding_)
    # A generator is drawn from, so that its second fit is another; None is random.
    generator = np.random.RandomState(0)
    assert_same_fit(classifier(name, random_state=generator).fit(X, y), first)
    again = classifier(name, random_state=generator).fit(X, y)
    assert (name in DETERMINISTIC) == np.array_equal(
        again.attention_scores_, first.attention_scores_
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *zip(TRAININGS, itertools.repeat({})),
        ("adam, stopping early", {"early_stopping": False}),
        ("adam, d = 8", {"embedding_dim": None}),
        ("penalized, d = 64", {"embedding_dim": None}),
        ("two layers, mlp, stopping early", {"mlp": False, "n_layers": 1}),
    ],
)
def test_a_second_fit_forgets_the_first(name, parameters):
    X, y = data(2)
    Z, z = data(3, seed=1, n_tokens=15)
    model = classifier(name).fit(X, y).set_params(**parameters).fit(Z, z)
    fresh = classifier(name, **parameters).fit(Z, z)
    assert set(vars(model)) == set(vars(fresh))
    for attribute in vars(fresh):
        if attribute.endswith("_"):
            assert_array_equal(getattr(model, attribute), getattr(fresh, attribute))
    for attribute in ("token_embeddings_", "cls_embedding_", "output_vector_"):
        assert_array_equal(getattr(model, attribute), getattr(fresh, attribute))
    for one, other in zip(said_of(model, Z), said_of(fresh, Z), strict=True):
        assert_array_equal(one, other)


@PER_TRAINING
def test_clones(name):
    X, y = data()
    model = classifier(name).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "classes_")
    assert_same_fit(copy.fit(X, y), model)


@PER_TRAINING
def test_a_subclass_with_a_constructor_of_its_own(name):
    kind = type(classifier(name))

    class Sub(kind):
        def __init__(self, extra=1, max_iter=5):
            super().__init__(max_iter=max_iter)
            self.extra = extra

    X, y = data(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations are few
        model = Sub().fit(X, y)
    assert model.n_iter_ <= 5
    assert clone(model).get_params() == {"extra": 1, "max_iter": 5}


def test_grid_search_over_classifiers_gives_the_same_answer_in_parallel():
    X, y = data(2)
    changed = {
        "frozen": {"embedding_dim": 4},
        "penalized": {"attention_C": 0.1, "embedding_dim": 32},
        "one step": {"step_size": 5.0},
        "adam, d = 8": {"learning_rate": 0.01},
        "two layers": {"n_layers": 1, "mlp": True},
    }
    candidates = [classifier(name) for name in TRAININGS]
    candidates += [classifier(name).set_params(**other) for name, other in changed.items()]

    def search(n_jobs):
        return GridSearchCV(
            Pipeline([("classifier", classifier("joint"))]),
            {"classifier": candidates},
            cv=2,
            n_jobs=n_jobs,
            scoring="neg_log_loss",
            error_score="raise",
        ).fit(X, y)

    threads = torch.get_num_threads()
    serial, parallel = search(1), search(2)  # in processes: threads are in test_pipelines.py
    assert torch.get_num_threads() == threads
    assert parallel.best_index_ == serial.best_index_
    for key in ("split0_test_score", "split1_test_score"):
        assert np.isfinite(serial.cv_results_[key]).all()
        assert_array_equal(parallel.cv_results_[key], serial.cv_results_[key])
    assert_same_fit(parallel.best_estimator_[-1], serial.best_estimator_[-1])


# Pickles, and prediction without PyTorch

WITHOUT_TORCH = """
import pickle, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("PyTorch is not here")

sys.meta_path.insert(0, NoTorch())
sys.path.insert(0, sys.argv[1])
with open(sys.argv[2], "rb") as file:
    models, X = pickle.load(file)
results = []
for model, redraws in models:
    terms = [] if model.mlp else model.contributions(X)
    results.append([
        model.predict(X), model.predict_proba(X), model.predict_log_proba(X),
        model.decision_function(X), model.attention(X).toarray(),
        model.select_tokens(X).toarray(),
        *(term.toarray() for term in (terms if isinstance(terms, list) else [terms])),
    ])
    model.cls_embedding_, model.output_vector_
    if not redraws:  # random numbers of PyTorch's
        model.token_embeddings_
assert "torch" not in sys.modules
with open(sys.argv[3], "wb") as file:
    pickle.dump(results, file)
"""


@CLASSES
def test_pickled_models_predict_where_there_is_no_torch(n_classes, tmp_path):
    X, y = data(n_classes)
    models = [classifier(name).fit(X, y) for name in TRAININGS]
    path, answers = tmp_path / "models.pickle", tmp_path / "answers.pickle"
    pairs = [(model, name in REDRAWN) for name, model in zip(TRAININGS, models, strict=True)]
    path.write_bytes(pickle.dumps((pairs, X)))
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path), str(path), str(answers)]
    subprocess.run(command, check=True, timeout=120)
    results = pickle.loads(answers.read_bytes())
    for model, result in zip(models, results, strict=True):
        for one, other in zip(said_of(model, X), result, strict=True):
            assert_array_equal(one, other)


@PER_TRAINING
def test_pickles_are_whole(name):
    X, y = data(3)
    model = classifier(name).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_same_fit(copy, model)
    for attribute in ("token_embeddings_", "cls_embedding_", "output_vector_"):
        assert_array_equal(getattr(copy, attribute), getattr(model, attribute))
    if name in REDRAWN:  # what is random and can be drawn again is not stored
        wide = pickle.dumps(classifier(name, embedding_dim=512).fit(X, y))
        narrow = pickle.dumps(model)
        # p and three output vectors
        assert (len(wide) - len(narrow)) / (512 - model.embedding_dim) / 8 <= 4.1


# Progress


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("frozen", "gap"),
        ("penalized", "gap"),
        ("one step", "unselected attention"),
        ("adam", None),
        ("adam, stopping early", "validation loss"),
        ("two layers", None),
        ("two layers, mlp, stopping early", "validation loss"),
    ],
)
@pytest.mark.parametrize("verbose", [1, 3])
def test_verbose_prints_iterations(name, label, verbose, capsys):
    X, y = data()
    silent = classifier(name).fit(X, y)
    assert capsys.readouterr() == ("", "")
    model = classifier(name, verbose=verbose).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    ending = rf" +{label} (\S+)" if label else "()"
    shown = [re.fullmatch(rf"iteration +(\d+) +loss (\S+){ending}", line) for line in lines]
    assert all(shown), lines
    iterations = [int(match[1]) for match in shown]
    assert iterations == list(range(0, model.n_iter_ + 1, verbose))
    assert_allclose([float(match[2]) for match in shown], model.loss_curve_[iterations], atol=1e-6)
    if label == "validation loss":
        losses = [float(match[3]) for match in shown]
        assert_allclose(losses, model.validation_loss_curve_[iterations], rtol=5e-3)
    assert_same_fit(model, silent)


@CALLBACKS
@PER_TRAINING
def test_callbacks_see_every_iteration(name):
    X, y = data(3)

    class Watcher(Recorder):
        def on_fit_task_end(self, estimator, context, *, y=None, fitted_estimator=None):
            dimensions.append(len(fitted_estimator.cls_embedding_))
            if not fitted_estimator.mlp:
                fitted_estimator.contributions(self.X)
            E, values = fitted_estimator.token_embeddings_, fitted_estimator.token_values_
            assert_allclose(E @ fitted_estimator.output_vector_.T, values.T, atol=1e-9)
            self.losses.append(fitted_estimator.predict_proba(self.X))
            self.ended.append(context.task_name)

    dimensions = []
    recorder = Watcher(X)
    # Fitted before: what a callback sees of a fit must not be the last one's.
    model = classifier(name).fit(X[:, :-3], y).set_callbacks(recorder).fit(X, y)
    assert recorder.hooks == ["setup", "teardown"]
    assert recorder.max_subtasks == model.max_iter
    assert len(recorder.ended) == model.n_iter_ + 1
    assert recorder.ended[-1] == "fit"
    assert dimensions[-1] == len(model.cls_embedding_)
    assert_array_equal(recorder.losses[-1], model.predict_proba(X))
    assert_same_fit(model, classifier(name).fit(X, y))


@CALLBACKS
@PER_TRAINING
def test_a_callback_can_stop_the_fit(name, recwarn):
    X, y = data()
    model = classifier(name, tol=1e-9).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert model.n_iter_ == 2  # and no ConvergenceWarning: it was asked for
    assert not [w for w in recwarn if w.category is ConvergenceWarning]
    assert len(model.loss_curve_) == 3
    assert model.predict(X).shape == y.shape
