"""The benchmark of explanations: its explainers say what they should, and a tiny run goes through.

LIME and SHAP are other people's packages: their tests are left out where they are not installed.
"""

import sys

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from numpy.testing import assert_allclose

from benchmarks import bench_explanations
from benchmarks.explanations import documents, explainers, models, searches
from benchmarks.explanations.explainers import Explainer, Explanation
from benchmarks.explanations.measure import (
    MEASURES,
    Measured,
    as_matrix,
    interval,
    race,
)
from benchmarks.problems import Spec
from sklearn_clsattn.inspection import explain

GENERATED = {"n_irrelevant": 60, "n_relevant_per_class": 20, "document_length": 30}
TINY = Spec("tiny", "a tiny problem", generated=GENERATED)
THREE = Spec("three", "three classes", generated={**GENERATED, "n_classes": 3})
others = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", params=[TINY, THREE], ids=lambda spec: spec.name)
def model(request):
    return models.fit(documents.load(request.param, None, 12, n_rows=80))


@pytest.fixture(scope="module")
def two():
    return models.fit(documents.load(TINY, None, 12, n_rows=80))


@pytest.fixture
def lime():
    pytest.importorskip("lime")
    from benchmarks.explanations.lime_text import lime

    return lime


@pytest.fixture
def shap(monkeypatch):
    # Compiling its loops takes longer than running them on documents this small.
    numba = pytest.importorskip("numba")
    if "shap" not in sys.modules:
        monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    pytest.importorskip("shap")
    from benchmarks.explanations import shap_values

    return shap_values


def quiet(told):
    """Report nothing."""


def test_texts_and_counts_are_the_same_documents(two):
    corpus = two.corpus
    assert len(corpus.texts) == 12
    again = corpus.vectorizer.transform(corpus.texts)
    assert (again != corpus.problem.X_test).nnz == 0
    assert again.getnnz(axis=1).min() > 0
    assert corpus.problem.X_train.shape == (80, again.shape[1])


def reviews(folder):
    texts = ["it isn't good", "so good, so good", "not bad", "bad food", "so so", "???"] * 5
    for stem in ("imdb", "yelp_stars"):
        for part in ("train", "test"):
            frame = pd.DataFrame({"text": texts, "label": [1, 5, 4, 2, 3, 5] * 5})
            frame.to_csv(folder / f"{stem}_{part}.csv.gz", index=False)
    return texts


def test_reviews_are_read_as_words(tmp_path):
    reviews(tmp_path)
    corpus = documents.load(documents.REAL[1], tmp_path, 8)
    assert set(corpus.vectorizer.vocabulary_) == {
        *("it", "isn't", "good", "so", "not", "bad", "food")
    }
    assert set(corpus.problem.y_train.tolist()) == {0, 1}
    assert len(corpus.texts) == 8
    assert "???" not in corpus.texts
    assert "so so" not in corpus.texts


def test_sets_in_one_file_are_split_by_their_column(tmp_path):
    texts = reviews(tmp_path)
    assert documents.raced(tmp_path) == documents.REAL
    assert documents.raced(None) == documents.GENERATED
    (tmp_path / "explore").mkdir()
    frame = pd.DataFrame({"text": texts, "label": ["a", "b", "c"] * 10, "part": "train"})
    frame.loc[::2, "part"] = "test"
    frame.to_csv(tmp_path / "explore" / "20news.csv.gz", index=False)
    assert documents.raced(tmp_path) == (*documents.REAL, documents.NEWS)
    corpus = documents.load(documents.NEWS, tmp_path, 5)
    assert corpus.problem.X_train.shape[0] == 15
    assert set(corpus.texts) <= set(frame["text"][frame["part"] == "test"])
    assert set(corpus.problem.y_train) == {"a", "b", "c"}


def test_log_odds_are_those_of_the_probability(model):
    X = model.corpus.problem.X_test
    P = model.classifier.predict_proba(X)
    for code in range(len(model.classifier.classes_)):
        log_odds = model.log_odds(X, code)
        assert_allclose(1 / (1 + np.exp(-log_odds)), P[:, code], rtol=1e-9, atol=1e-300)
    assert [model.code(x) for x in X] == P.argmax(axis=1).tolist()


def test_contributions_are_those_that_explain_shows(model):
    explainer = explainers.contributions(model)
    for text in model.corpus.texts:
        found = explainer.explain(text)
        shown = explain(model.pipeline, [text]).to_frame()
        shown = shown[shown["kind"] == "token"].set_index("token")["contribution"]
        names = model.corpus.vectorizer.get_feature_names_out()[found.columns]
        sign = 1.0
        if len(model.classifier.classes_) == 2 and not model.pipeline.predict([text])[0]:
            sign = -1.0  # towards the class predicted
        assert_allclose(found.scores, sign * shown[names], rtol=1e-10, atol=1e-10)


def test_no_order_that_looks_one_step_ahead_is_better_for_one_token(model):
    exact, chance, shown = race(
        model,
        [build(model) for build in (explainers.greedy, explainers.chance, explainers.attention)],
        12,
        quiet,
    )
    X, P = model.corpus.problem.X_test, model.classifier.predict_proba(model.corpus.problem.X_test)
    for at, text in enumerate(model.corpus.texts):
        first = exact.explainer.explain(text)
        best = first.columns[first.scores.argmax()]
        code = P[at].argmax()
        left = []
        for column in first.columns:
            x = X[[at]].toarray()
            x[0, column] = 0
            left.append(model.log_odds(x, code)[0])
        x = X[[at]].toarray()
        x[0, best] = 0
        assert_allclose(model.log_odds(x, code)[0], min(left), rtol=1e-9, atol=1e-9)
    for measure in MEASURES:
        assert exact.gains_over(chance, measure).mean() > 0
        assert exact.gains_over(shown, measure).mean() > -1e-9
    assert exact.seconds.shape == (12,)
    assert (exact.seconds > 0).all()


def test_random_scores_are_for_the_tokens_of_the_document(two):
    explainer = explainers.chance(two)
    for text, row in zip(two.corpus.texts, two.corpus.problem.X_test, strict=True):
        assert set(explainer.explain(text).columns) == set(row.nonzero()[-1])


def test_anchors_come_first_and_the_others_by_their_precision_alone():
    def ask(kept):
        return (kept[:, 2] & (kept[:, 0] | kept[:, 4])).astype(float)

    scores = searches.anchor_scores(ask, 6, np.random.default_rng(0))
    assert scores.argsort()[::-1][0] == 2
    assert {2} < set(np.flatnonzero(scores > 1)) <= {0, 2, 4}
    assert searches.anchor(ask, 6, np.random.default_rng(0)).tolist() == sorted(
        np.flatnonzero(scores > 1).tolist()
    )
    never = searches.anchor_scores(lambda kept: np.zeros(len(kept)), 4, np.random.default_rng(0))
    assert (never <= 0).all()


def test_documents_say_whether_the_prediction_stays(model):
    text = model.corpus.texts[0]
    document = searches.Document(model.pipeline, text)
    rng = np.random.default_rng(0)
    kept = rng.random((20, document.n)) < 0.5
    predicted = model.classifier.predict(document.with_only(kept))
    expected = predicted == model.pipeline.predict([text])[0]
    assert document.agrees(kept).tolist() == expected.tolist()
    found = explainers.anchors(model).explain(text)
    assert set(found.columns) == set(document.x.indices)


@others
def test_lime_scores_the_words_of_the_document(model, lime):
    explainer = lime(model, samples=300)
    text = model.corpus.texts[0].upper() + " unknown words"
    found = explainer.explain(text)
    assert set(found.columns) == set(model.corpus.problem.X_test[[0]].indices)
    # It finds much the same as the model's own terms do.
    ours, theirs = race(model, [explainers.contributions(model), explainer], 3, quiet)
    assert ours.gains_over(theirs, MEASURES[0]).mean() < 0.1


@others
def test_shap_of_our_model_adds_up(model, shap):
    text = model.corpus.texts[0]
    x = model.corpus.problem.X_test[[0]]
    whole = model.log_odds(x, model.code(x))[0]
    empty = model.log_odds(0 * x, model.code(x))[0]
    for explainer in (shap.of_text(model, 100), shap.of_tokens(model, 300)):
        found = explainer.explain(text)
        assert set(found.columns) == set(x.indices)
        assert_allclose(found.scores.sum(), whole - empty, rtol=1e-6, atol=1e-6)
    unknown = shap.of_text(model, 100).explain(text + ", Unknown words!")
    assert set(unknown.columns) <= set(x.indices)


def test_scores_become_rows():
    found = [
        Explanation(np.array([2, 0]), np.array([1.5, -1])),
        Explanation(np.array([], dtype=np.int64), np.array([])),
    ]
    rows = as_matrix(found, [one.scores for one in found], (2, 3))
    np.testing.assert_array_equal(rows.toarray(), [[-1, 0, 1.5], [0, 0, 0]])


def test_intervals_hold_the_mean_in_95_of_100_cases():
    draws = np.random.default_rng(0).normal(3.0, 2.0, (2000, 60))
    means, halves = np.array([interval(one) for one in draws]).T
    assert 0.93 < (np.abs(means - 3.0) <= halves).mean() < 0.97
    assert interval(np.array([1.0])) == (1.0, np.inf)


def measured(name, mean, seconds):
    drops = mean + np.array([-0.1, 0.1, -0.1, 0.1])
    values = {measure: drops if at % 2 == 0 else -drops for at, measure in enumerate(MEASURES)}
    return Measured(Explainer(name, name.upper(), quiet), values, np.full(4, seconds))


def test_page_gains_and_times():
    def corpus_of(ours, speed):
        return [
            measured("greedy", ours + 0.1, 0.01),
            measured("contributions", ours, 0.001),
            measured("whole", ours, 0.002),
            measured("lime", 0.4, speed),
            *(measured(name, 0.3, 0.2) for name in ("shap", "shap_text", "anchors", "attention")),
        ]

    results = {"one": corpus_of(0.6, 3.0), "two": corpus_of(0.4, 0.9)}
    table = bench_explanations.table(results)
    assert "| one | LIME | 4 | 0.400 ± 0.113 | -0.400 ± 0.113 | 0.400 ± 0.113 |" in table
    assert "WHOLE" not in table
    gains = bench_explanations.gains(results)
    assert "| one | CONTRIBUTIONS | LIME | **+0.2000 ± 0.0000** | **+0.2000 ± 0.0000** |" in gains
    assert "| two | CONTRIBUTIONS | LIME | +0.0000 ± 0.0000 | +0.0000 ± 0.0000 |" in gains
    assert "| two | GREEDY | SHAP | **+0.2000 ± 0.0000** |" in gains
    times = bench_explanations.times(results)
    assert "| one | CONTRIBUTIONS | 1 | 3,000 (3,000) | 200 (200) |" in times
    assert "| one | GREEDY | 10 | 300 (300) | 20 (20) |" in times
    assert "Measured: 900 times at least (missed)." in times
    met = bench_explanations.times({"one": corpus_of(0.6, 3.0)})
    assert "Measured: 3,000 times at least (met)." in met


@others
def test_a_tiny_run(tmp_path, monkeypatch, capsys, lime, shap):
    monkeypatch.setattr(documents, "GENERATED", (TINY,))
    output = tmp_path / "results" / "explanations.md"
    arguments = ["--reviews", str(tmp_path), "--fast", "--samples", "100", "--output", str(output)]
    with threadpoolctl.threadpool_limits():  # the benchmark sets its own: put them back
        assert bench_explanations.main(arguments) == 0
    text = output.read_text(encoding="utf-8")
    for part in (
        "A fast run",
        "| a tiny problem | ours: contributions | 4 |",
        "| a tiny problem | LIME | 4 |",
        "| a tiny problem | the search of Anchors | 4 |",
        "times as fast as LIME",
    ):
        assert part in text
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("package", ["lime", "shap"])
def test_missing_packages_are_named(tmp_path, monkeypatch, capsys, package):
    monkeypatch.setitem(sys.modules, package, None)
    output = tmp_path / "explanations.md"
    assert bench_explanations.main(["--fast", "--output", str(output)]) == 2
    message = capsys.readouterr().err
    assert package in message
    assert "pip install lime shap" in message
    assert not output.exists()
