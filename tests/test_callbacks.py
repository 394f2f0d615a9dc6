"""scikit-learn's callbacks see each fit as a task, with a subtask for each iteration."""

import pickle

import numpy as np
import pytest
from helpers import generated_texts, refused
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier, TokenImportanceTransformer
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import EmbeddingClassifier, OneStepClassifier
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")

X, y = make_token_classification(60, n_irrelevant=20, random_state=0)
TEXTS, _ = generated_texts(60, n_irrelevant=20, random_state=0)


class Recorder:
    """A callback that records what happens, for an estimator and all within it."""

    max_propagation_depth = None

    def __init__(self):
        self.happened = []

    def setup(self, estimator, context):
        self.happened.append("setup")

    def teardown(self, estimator, context):
        self.happened.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.happened.append(("begin", type(estimator).__name__, context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.happened.append(("end", type(estimator).__name__, context.task_name))
        if X is not None and hasattr(fitted_estimator, "predict"):
            assert fitted_estimator.predict(X).shape == (60,)

    def names(self, event):
        return [f"{one[1]} {one[2]}" for one in self.happened if one[0] == event]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        ClsAttentionClassifier(C=1.0),
        ClsAttentionClassifier(max_iter=2, tol=1.0),
        ClsAttentionClassifier(),
        OneStepClassifier(max_iter=10),
        EmbeddingClassifier(max_iter=5, random_state=0),
    ],
    ids=str,
)
def test_every_iteration_is_a_task(model):
    recorder = Recorder()
    plain = clone(model).fit(X, y)
    model = clone(model).set_callbacks(recorder)
    model.fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(X), model.predict_proba(X))
    begun, ended = recorder.names("begin"), recorder.names("end")
    name = type(model).__name__
    assert begun[0] == ended[-1] == f"{name} fit"
    iterations = begun.count(f"{name} iteration")
    assert min(model.n_iter_, model.max_iter) <= iterations <= model.max_iter
    assert ended.count(f"{name} iteration") == iterations
    assert (recorder.happened[0], recorder.happened[-1]) == ("setup", "teardown")
    assert vars(model).keys() - vars(plain).keys() == {"_skl_callbacks"}


def test_an_error():
    recorder = Recorder()
    model = ClsAttentionClassifier(C=1.0).set_callbacks(recorder).fit(X, y)
    assert recorder.names("end")[-1] == "ClsAttentionClassifier fit"
    refused("Negative values", model.fit, -X, y)
    assert recorder.happened[-1] == "teardown"
    assert recorder.happened.count("teardown") == recorder.happened.count("setup") == 2
    assert hasattr(model, "classes_")


PIPELINES = {
    "texts": TextClassifier(C=1.0),
    "by hand": make_pipeline(ContextVectorizer(), ClsAttentionClassifier(C=1.0)),
    "counts": make_pipeline(
        TokenVectorizer(), TokenImportanceTransformer(), ClsAttentionClassifier(C=1.0)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_pass_them_on_without_a_warning(name):
    recorder = Recorder()
    model = clone(PIPELINES[name]).set_callbacks(recorder)
    model.fit(TEXTS, y)
    assert recorder.happened.count("setup") == recorder.happened.count("teardown") == 1
    begun, ended = recorder.names("begin"), recorder.names("end")
    assert sorted(begun) == sorted(ended)
    last = model.classifier_ if name == "texts" else model[-1]
    assert begun.count("ClsAttentionClassifier iteration") >= last.n_iter_
    expected = clone(PIPELINES[name]).set_callbacks().fit(TEXTS, y)
    np.testing.assert_array_equal(model.predict_proba(TEXTS), expected.predict_proba(TEXTS))
    pickle.loads(pickle.dumps(expected))
    assert not hasattr(last, "_skl_callbacks")


def test_a_fit_with_a_teacher():
    recorder = Recorder()
    model = TextClassifier(C=1.0, characters=None).set_callbacks(recorder)
    model.fit(TEXTS, y, unlabeled=TEXTS, teacher=np.eye(2)[y])
    assert recorder.names("begin") == recorder.names("end") == ["TextClassifier fit"]
    assert (recorder.happened[0], recorder.happened[-1]) == ("setup", "teardown")
