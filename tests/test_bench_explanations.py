"""The benchmark of explanations: its explainers say what they should, and a tiny run goes through.

LIME and SHAP are other people's packages: their tests are left out where they are not installed.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from numpy.testing import assert_allclose

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "run.py").is_file():
    pytest.skip("the benchmarks are not part of an installed package", allow_module_level=True)
pytest.importorskip("psutil")
sys.path.insert(0, str(ROOT))

from benchmarks import bench_explanations  # noqa: E402
from benchmarks.explanations import documents, explainers, models  # noqa: E402
from benchmarks.explanations.explainers import Explainer, Explanation  # noqa: E402
from benchmarks.explanations.measure import (  # noqa: E402
    Measured,
    as_matrix,
    exactness_error,
    measure,
)
from benchmarks.problems import Spec  # noqa: E402

TINY = Spec(
    "tiny",
    "a tiny problem",
    generated={"n_irrelevant": 60, "n_relevant_per_class": 20, "document_length": 30},
)
others = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def corpus():
    return documents.load(TINY, None, 12, n_rows=80)


@pytest.fixture(scope="module")
def fitted(corpus):
    return {name: models.fit(name, corpus, tune=False) for name in models.NAMES}


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


def test_texts_and_counts_are_the_same_documents(corpus):
    assert len(corpus.texts) == 12
    again = corpus.vectorizer.transform(corpus.texts)
    assert (again != corpus.problem.X_test).nnz == 0
    assert again.getnnz(axis=1).min() > 0
    assert corpus.problem.X_train.shape == (80, again.shape[1])


def test_reviews_are_read_as_words(tmp_path):
    import pandas as pd

    texts = ["it isn't good", "so good, so good", "not bad", "bad food", "so so", "???"] * 5
    stars = [1, 5, 4, 2, 3, 5] * 5
    for part in ("train", "test"):
        frame = pd.DataFrame({"text": texts, "label": stars})
        frame.to_csv(tmp_path / f"yelp_stars_{part}.csv.gz", index=False)
    corpus = documents.load(documents.REAL[1], tmp_path, 8)
    assert set(corpus.vectorizer.vocabulary_) == {
        *("it", "isn't", "good", "so", "not", "bad", "food")
    }
    assert set(corpus.problem.y_train.tolist()) == {0, 1}
    assert len(corpus.texts) == 8
    assert "???" not in corpus.texts
    assert "so so" not in corpus.texts


def own(fitted):
    return [
        explainers.contributions(fitted["ours"]),
        explainers.coefficients(fitted["logistic_counts"]),
        explainers.coefficients(fitted["logistic_tfidf"]),
    ]


def test_terms_add_up_to_the_output_for_the_predicted_class(corpus, fitted):
    for explainer in own(fitted):
        decision = explainer.model.pipeline.decision_function(corpus.texts)
        assert len(set(decision > 0)) == 2
        for text, value in zip(corpus.texts, decision, strict=True):
            assert_allclose(explainer.explain(text).total, abs(value), rtol=0, atol=1e-12)
        assert measure(explainer, 12).error < 1e-12


def test_own_explanations_beat_random_ones(fitted):
    for explainer in own(fitted):
        true, floor = measure(explainer, 12), measure(explainers.chance(explainer.model), 12)
        assert true.comprehensiveness.mean() > floor.comprehensiveness.mean() + 0.05
        assert true.sufficiency.mean() < floor.sufficiency.mean()
        assert floor.error is None
    attention = measure(explainers.attention(fitted["ours"]), 5)
    assert attention.n_documents == 5
    assert attention.error is None


def test_leave_one_out_is_what_really_leaving_out_does(corpus, fitted):
    model = fitted["ours"]
    explain = explainers.leave_one_out(model).explain
    for text, x in zip(corpus.texts[:4], corpus.problem.X_test.toarray()[:4], strict=True):
        found, whole = explain(text), model.estimator.decision_function([x])[0]
        for column, score in zip(found.columns, found.scores, strict=True):
            left = x.copy()
            left[column] = 0
            effect = np.sign(whole) * (whole - model.estimator.decision_function([left])[0])
            assert_allclose(score, effect, rtol=0, atol=1e-12)


def test_borrowed_coefficients_speak_for_our_models_class(corpus, fitted):
    ours, logistic = fitted["ours"], fitted["logistic_counts"]
    explainer, X = explainers.borrowed(ours, logistic), corpus.problem.X_test
    signs = np.where(ours.estimator.decision_function(X) > 0, 1, -1)
    found = as_matrix([explainer.explain(text) for text in corpus.texts], X.shape)
    expected = X.toarray() * logistic.classifier.coef_[0] * signs[:, None]
    assert_allclose(found.toarray(), expected, rtol=0, atol=1e-14)


def test_random_scores_are_for_the_tokens_of_the_document(corpus, fitted):
    explain = explainers.chance(fitted["ours"]).explain
    for text, row in zip(corpus.texts, corpus.problem.X_test, strict=True):
        assert set(explain(text).columns) == set(row.nonzero()[-1])


@others
def test_lime_scores_the_words_of_the_document(corpus, fitted, lime):
    explainer = lime(fitted["ours"], samples=300)
    text = corpus.texts[0].upper() + " unknown words"
    found = explainer.explain(text)
    assert set(found.columns) == set(corpus.problem.X_test[[0]].indices)
    probability = fitted["ours"].pipeline.predict_proba([text]).max()
    assert_allclose(found.total, probability, atol=0.1)
    measured = measure(explainer, 3)
    assert 1e-6 < measured.error < 0.2
    # It finds much the same as the model's own terms do.
    ours = explainers.contributions(fitted["ours"])
    assert measured.comprehensiveness.mean() > measure(ours, 3).comprehensiveness.mean() - 0.1


@others
def test_shap_of_a_linear_model_is_its_terms_less_their_means(corpus, fitted, shap):
    model = fitted["logistic_counts"]
    explainer = shap.linear(model)
    assert measure(explainer, 12).error < 1e-10
    found = explainer.explain(corpus.texts[0])
    assert set(found.columns) == set(corpus.problem.X_test[[0]].indices)
    x, coef = corpus.problem.X_test[[0]], model.classifier.coef_[0]
    sign = np.sign(model.estimator.decision_function(x)[0])
    background = x.data - sign * found.scores / coef[x.indices]
    assert (background >= -1e-9).all()
    assert (background <= corpus.problem.X_train.toarray().max(axis=0)[x.indices] + 1e-9).all()


@others
def test_shap_of_our_model_adds_up(corpus, fitted, shap):
    explainer = shap.by_evaluations(fitted["ours"], evaluations=100)
    assert explainer.slow
    found = explainer.explain(corpus.texts[0] + ", Unknown words!")
    assert set(found.columns) <= set(corpus.problem.X_test[[0]].indices)
    decision = fitted["ours"].estimator.decision_function(corpus.problem.X_test[[0]])[0]
    assert_allclose(found.total, abs(decision), rtol=0, atol=1e-9)


def test_scores_become_rows():
    found = [
        Explanation(np.array([2, 0]), np.array([1.5, -1])),
        Explanation(np.array([], dtype=np.int64), np.array([])),
    ]
    np.testing.assert_array_equal(as_matrix(found, (2, 3)).toarray(), [[-1, 0, 1.5], [0, 0, 0]])


def test_errors_are_in_the_units_of_the_output(fitted, corpus):
    model, X = fitted["ours"], corpus.problem.X_test[:1]
    for output, value in (
        ("log-odds", abs(model.estimator.decision_function(X)[0])),
        ("probability", model.estimator.predict_proba(X).max()),
    ):
        explainer = Explainer("x", "x", model, lambda text: None, output)
        found = [Explanation(X.indices, X.data, value + 0.25)]
        assert_allclose(exactness_error(explainer, found, X), 0.25)


def measured(fitted, model, name, mean, *, seconds=0.001, error=None, n=4, together=()):
    explainer = Explainer(name, name.upper(), fitted[model], lambda text: None)
    drops = mean + np.array([-0.1, 0.1] * (n // 2))
    return Measured(
        explainer, drops, drops - 1, drops, drops, seconds, error, 0.9, 0.8, dict(together)
    )


def test_page_and_targets(fitted):
    together = {"contributions": 0.0002, "explain": 0.0005}

    def corpus_of(ours, speed):
        return [
            measured(fitted, "ours", "contributions", ours, error=3e-15, together=together),
            measured(fitted, "ours", "lime", 0.4, seconds=speed, error=0.02, n=2),
            measured(fitted, "ours", "borrowed", 0.45),
            measured(fitted, "ours", "chance", 0.0),
            measured(fitted, "logistic_counts", "coefficients", 0.5, error=0.0),
            measured(fitted, "logistic_tfidf", "coefficients", 0.3, error=0.0),
        ]

    results = {"one": corpus_of(0.6, 3.0), "two": corpus_of(0.45, 0.9)}
    found = {(v.what, v.target): v for v in bench_explanations.verdicts(results)}
    words = {key: verdict.words for key, verdict in found.items()}
    faster = "{}, a document faster than by LIME".format
    at_k = "comprehensiveness at k = 10, {}".format
    assert words == {
        ("exactness error of contributions", "below 1e-10"): "MET",
        (faster("`explain` of all documents in one call"), "at least 1,000 times"): "MET",
        (faster("contributions, one document at a time"), "at least 1,000 times"): (
            "MISSED by 100 times"
        ),
        (at_k("one"), "no worse than LR's own coefficients on counts"): "MET",
        (at_k("one"), "no worse than LR's own coefficients on TF-IDF"): "MET",
        (at_k("one"), "no worse than LR's coefficients, both explaining our model"): "MET",
        (at_k("two"), "no worse than LR's own coefficients on counts"): "MISSED by 0.050",
        (at_k("two"), "no worse than LR's own coefficients on TF-IDF"): "MET",
        (at_k("two"), "no worse than LR's coefficients, both explaining our model"): "MET",
    }
    table = bench_explanations.table(results)
    assert "| one | ClsAttentionClassifier | LIME | 2 | 0.400 ± 0.100 |" in table
    assert "| 3e+03 | 2.0e-02 |" in table
    floor = "| CHANCE | 4 | 0.000 ± 0.058 | -1.000 ± 0.058 | 0.000 ± 0.058 | 0.000 ± 0.058 | – |"
    assert floor in table
    told = bench_explanations.confidences(results)
    assert "- two: ClsAttentionClassifier: 0.900, 0.800." in told
    calls = bench_explanations.in_one_call(results)
    assert "- one, 4 documents: `contributions` 0.2 ms each, `explain` 0.5 ms each." in calls
    first = bench_explanations.first_documents(results)
    assert (
        "- two, 2 documents: CONTRIBUTIONS 0.450, LIME 0.400, BORROWED 0.450, CHANCE 0.000."
        in first
    )


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
        "| a tiny problem | ClsAttentionClassifier | contributions | 20 |",
        "| LIME | 2 |",
        "SHAP, linear",
        "| coefficient x TF-IDF | 20 |",
        "| exactness error of contributions | below 1e-10 |",
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
