"""TokenImportanceTransformer: scikit-learn's checks, its place in pipelines, its numbers."""

import pickle
from collections import Counter
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_clsattn._transformer import TokenImportanceTransformer
from sklearn_clsattn.importance import overall_importance

STATISTICS = ["signed_frequency", "posterior_difference", "log_odds"]
GOOD = "a good film with a good heart/good fun and a plot/a good film/warm and fine and good"
BAD = "a bad film with a dull plot/dull and bad and long/a long dull bad mess/no plot no heart"
TEXTS = [*GOOD.split("/"), *BAD.split("/")]
LABELS = np.array(["pos"] * 4 + ["neg"] * 4)


@pytest.fixture(params=[2, 3], ids=["2 classes", "3 classes"])
def data(request):
    rng = np.random.default_rng(request.param)
    X = sparse.csr_matrix(rng.poisson(0.4, (40, 12)).astype(float))
    return X, np.arange(40) % request.param


def as_dense(X):
    return X.toarray() if sparse.issparse(X) else X


# A list of what scikit-learn 1.6 gives as a generator, which pytest 9 warns of.
CHECKS = parametrize_with_checks(
    [
        TokenImportanceTransformer(),
        TokenImportanceTransformer(centred=True, k=0.6),
        TokenImportanceTransformer("posterior_difference", scale=False),
        TokenImportanceTransformer("log_odds", k=1),
        TokenImportanceTransformer("log_odds", threshold=0.0, scale=False),
    ]
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# What it computes


def test_importance_by_hand():
    X = np.array([[1, 1, 0], [0, 2, 0], [3, 1, 0]])
    y = ["yes", "yes", "no"]
    fitted = TokenImportanceTransformer().fit(X, y)
    assert_array_equal(fitted.classes_, ["no", "yes"])
    assert_allclose(fitted.token_importance_, [(0.5 - 0.75) / 3, (0.5 + 1 - 0.25) / 3, 0])
    fitted = TokenImportanceTransformer("posterior_difference").fit(X, y)
    assert_allclose(fitted.token_importance_, [-0.5, 0.5, 0])
    fitted = TokenImportanceTransformer("log_odds", smoothing=2).fit(X, y)
    expected = np.log([3 / 10, 5 / 10, 2 / 10]) - np.log([5 / 10, 3 / 10, 2 / 10])
    assert_allclose(fitted.token_importance_, expected, atol=1e-15)


def test_nbsvm_is_the_hand_written_one():
    model = make_pipeline(
        CountVectorizer(ngram_range=(1, 2), binary=True),
        TokenImportanceTransformer("log_odds"),
        LogisticRegression(),
    ).fit(TEXTS, LABELS)

    grams = []
    for text in TEXTS:
        words = [word for word in text.split() if len(word) > 1]
        grams.append({*words, *(" ".join(pair) for pair in pairwise(words))})
    vocabulary = sorted(set().union(*grams))
    B = np.array([[float(gram in document) for gram in vocabulary] for document in grams])
    p = 1 + B[LABELS == "pos"].sum(axis=0)
    q = 1 + B[LABELS == "neg"].sum(axis=0)
    r = np.log((p / p.sum()) / (q / q.sum()))
    by_hand = LogisticRegression().fit(B * r, LABELS)

    assert_allclose(model[:-1].transform(TEXTS).toarray(), B * np.abs(r), rtol=1e-12)
    assert_allclose(model.predict_proba(TEXTS), by_hand.predict_proba(B * r), rtol=1e-4)
    assert_array_equal(model.predict(["good heart", "a dull mess"]), ["pos", "neg"])


@pytest.mark.parametrize("importance", STATISTICS)
def test_columns_are_multiplied(data, importance):
    X, y = data
    fitted = TokenImportanceTransformer(importance).fit(X, y)
    if y.max() == 1:
        assert fitted.token_importance_.shape == (12,)
        assert_array_equal(fitted.scale_, np.abs(fitted.token_importance_))
    else:
        assert fitted.token_importance_.shape == (3, 12)
        assert_array_equal(fitted.scale_, overall_importance(fitted.token_importance_))
    result = fitted.transform(X)
    assert result.format == "csr"
    assert_allclose(result.toarray(), X.toarray() * fitted.scale_)


def test_k_and_threshold(data):
    X, y = data
    overall = overall_importance(TokenImportanceTransformer().fit(X, y).token_importance_)
    best = np.argsort(-overall, kind="stable")
    middle = np.sort(overall)[-5]
    for parameters, expected in [
        ({"k": 3}, best[:3]),
        ({"k": 0.25}, best[:3]),
        ({"k": 1.0}, best),
        ({"k": 0.001}, best[:1]),
        ({"threshold": middle}, best[:4]),
        ({"threshold": middle, "k": 3}, best[:3]),
        ({"threshold": middle, "k": 9}, best[:4]),
    ]:
        fitted = TokenImportanceTransformer(**parameters).fit(X, y)
        assert_array_equal(fitted.get_support(indices=True), np.sort(expected))
        kept = fitted.get_support()
        assert_allclose(fitted.transform(X).toarray(), (X.toarray() * fitted.scale_)[:, kept])
        selection = fitted.set_params(scale=False).fit(X, y)
        assert selection.scale_ is None
        assert_array_equal(selection.transform(X).toarray(), X.toarray()[:, kept])
        assert_array_equal(selection.transform(X.toarray()), X.toarray()[:, kept])


def test_ties_go_to_the_first_columns_in_any_order_of_documents():
    rng = np.random.default_rng(0)
    half = rng.poisson(1.0, (30, 4)) / 3
    X = np.hstack([half, half, half])  # every token three times
    y = np.arange(30) % 2
    for _ in range(5):
        order = rng.permutation(30)
        support = TokenImportanceTransformer(k=4).fit(X[order], y[order]).get_support(indices=True)
        repeats = Counter(support % 4)
        assert sorted(repeats.values()) == [1, 3]
        assert all(column < 4 for column in support if repeats[column % 4] == 1)


@pytest.mark.parametrize("importance", STATISTICS)
def test_weights_are_repetition(data, importance):
    X, y = data
    weights = np.arange(40) // 3 % 3
    kept = np.repeat(np.arange(40), weights)
    weighted = TokenImportanceTransformer(importance, centred=True)
    weighted.fit(X, y, sample_weight=weights)
    repeated = TokenImportanceTransformer(importance, centred=True).fit(X[kept], y[kept])
    assert_allclose(weighted.token_importance_, repeated.token_importance_, atol=1e-14)
    assert_array_equal(weighted.class_weight_, repeated.class_weight_)


@pytest.mark.parametrize("importance", STATISTICS)
def test_partial_fit_is_fit_on_all_batches(data, importance):
    X, y = data
    X = X[np.argsort(y, kind="stable")]
    y = np.sort(y)  # so that the first batch has a single class
    weights = np.random.default_rng(0).random(40)
    whole = TokenImportanceTransformer(importance, k=5).fit(X, y, weights)
    parts = TokenImportanceTransformer(importance, k=5)
    classes = np.unique(y)[::-1]
    for batch in (slice(0, 7), slice(7, 25), slice(25, 40)):
        parts = pickle.loads(pickle.dumps(parts))
        parts.partial_fit(X[batch], y[batch], classes=classes, sample_weight=weights[batch])
    assert_allclose(parts.token_importance_, whole.token_importance_, atol=1e-14)
    assert_array_equal(parts.get_support(), whole.get_support())
    assert_array_equal(parts.classes_, whole.classes_)
    # fit starts again, whatever came before
    assert_allclose(parts.fit(X, y, weights).token_importance_, whole.token_importance_)


# What it takes and gives


@pytest.mark.parametrize("container", ["matrix", "array"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_sparse_format_agrees_with_dense(data, layout, container):
    X, y = data
    dense = X.toarray()
    X = getattr(sparse, f"{layout}_{container}")(X)
    for parameters in ({}, {"k": 5}, {"k": 5, "scale": False}, {"scale": False}):
        fitted = TokenImportanceTransformer("log_odds", **parameters)
        result = fitted.fit(X, y).transform(X)
        assert type(result) is getattr(sparse, f"csr_{container}")
        expected = clone(fitted).fit(dense, y).transform(dense)
        assert_allclose(result.toarray(), expected, rtol=1e-12)
        restored = fitted.inverse_transform(result)
        assert type(restored) is type(result)
        assert_allclose(restored.toarray(), fitted.inverse_transform(expected), rtol=1e-12)
    assert_array_equal(X.toarray(), dense)


@pytest.mark.parametrize("parameters", [{}, {"k": 4}, {"scale": False}, {"k": 4, "scale": False}])
def test_64_bit_indices_and_unsorted_ones(data, parameters):
    X, y = data
    expected = TokenImportanceTransformer(**parameters).fit_transform(X, y).toarray()
    for entries in (slice(*ends) for ends in pairwise(X.indptr)):
        X.indices[entries], X.data[entries] = X.indices[entries][::-1], X.data[entries][::-1]
    X.has_sorted_indices = False
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    before = X.indices.copy()
    result = TokenImportanceTransformer(**parameters).fit_transform(X, y)
    assert_allclose(result.toarray(), expected)
    if parameters != {"scale": False}:  # which gives back X itself
        result.sort_indices()  # in place: nothing of it may be shared with X
        assert_array_equal(X.indices, before)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_dtypes(data, dtype, scale, make):
    X, y = data
    X = make(X.toarray().astype(dtype))
    transformer = TokenImportanceTransformer("log_odds", k=7, scale=scale)
    result = transformer.fit_transform(X, y)
    assert transformer.token_importance_.dtype == np.float64
    assert result.dtype == (dtype if dtype == np.float32 or not scale else np.float64)
    reference = transformer.fit_transform(X.astype(float), y)
    assert_allclose(as_dense(result), as_dense(reference), rtol=1e-6)


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_read_only_memory_maps(data, tmp_path, form):
    X, y = data
    expected = TokenImportanceTransformer(k=5).fit_transform(X, y).toarray()
    X = X.toarray() if form == "dense" else X.asformat(form)
    joblib.dump((X, y), tmp_path / "data.joblib")
    X, y = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
    fitted = TokenImportanceTransformer(k=5).fit(X, y)
    result = fitted.transform(X)
    assert_allclose(as_dense(result), expected)
    assert fitted.inverse_transform(result).shape == X.shape


def test_inverse_transform_undoes_what_can_be_undone():
    X = np.array([[1.0, 2.0, 1.0, 0.0], [1.0, 0.0, 0.0, 3.0]])
    fitted = TokenImportanceTransformer("posterior_difference").fit(X, [0, 1])
    assert_array_equal(fitted.token_importance_, [0, -1, -1, 1])
    for make in (np.asarray, sparse.csr_array):
        restored = fitted.inverse_transform(fitted.transform(make(X)))
        assert_array_equal(as_dense(restored), X * [0, 1, 1, 1])
    fitted = TokenImportanceTransformer(k=2).fit(X, [0, 1])
    assert_allclose(fitted.inverse_transform(fitted.transform(X)), X * fitted.get_support())


# Its place among the others


def test_names_through_a_pipeline():
    model = make_pipeline(CountVectorizer(), TokenImportanceTransformer("log_odds", k=3))
    model.fit(TEXTS, LABELS)
    assert_array_equal(model.get_feature_names_out(), ["bad", "dull", "good"])


def test_data_frames_and_set_output():
    counts = CountVectorizer()
    X = counts.fit_transform(TEXTS).toarray()
    X = pd.DataFrame(X, index=list("abcdefgh"), columns=counts.get_feature_names_out())
    for scale in (True, False):
        transformer = TokenImportanceTransformer(k=3, scale=scale).set_output(transform="pandas")
        frame = transformer.fit_transform(X, pd.Series(LABELS, index=X.index))
        assert isinstance(frame, pd.DataFrame)
        assert_array_equal(frame.columns, transformer.get_feature_names_out())
        assert_array_equal(frame.index, X.index)
        assert set(frame.columns) < set(X.columns)
        assert_array_equal(transformer.feature_names_in_, X.columns)
        assert_allclose(frame, transformer.set_output(transform="default").transform(X))
    with pytest.raises(ValueError, match="feature names"):
        transformer.transform(X.rename(columns={"good": "better"}))


def test_column_transformer_and_feature_union():
    frame = pd.DataFrame({"text": TEXTS, "stars": np.arange(8.0)})
    weighted = make_pipeline(CountVectorizer(), TokenImportanceTransformer("log_odds", k=4))
    columns = ColumnTransformer([("words", weighted, "text")], remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, LABELS)
    assert model.score(frame, LABELS) == 1
    assert len(columns.fit(frame, LABELS).get_feature_names_out()) == 5

    weights = TokenImportanceTransformer("log_odds")
    union = FeatureUnion([("few", TokenImportanceTransformer(k=2)), ("all", weights)])
    both = make_pipeline(CountVectorizer(), union)
    names = both.fit(TEXTS, LABELS).get_feature_names_out()
    assert_array_equal(names[:2], ["few__bad", "few__good"])
    assert both.transform(TEXTS).shape == (8, len(names))


def test_grid_search_and_sample_weight_through_a_pipeline():
    model = make_pipeline(CountVectorizer(), TokenImportanceTransformer(), LogisticRegression())
    grid = {"importance": STATISTICS, "k": [3, 0.5, None]}
    grid = {f"tokenimportancetransformer__{name}": values for name, values in grid.items()}
    search = GridSearchCV(model, grid, cv=2).fit(TEXTS, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model.fit(TEXTS, LABELS, tokenimportancetransformer__sample_weight=[1, 0, 1, 1] * 2)
    assert_array_equal(model[1].class_weight_, [3, 3])


# What it refuses


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_negative_missing_and_infinite_values(make):
    X = np.array([[1.0, 2.0], [3.0, 0.0]])
    fitted = TokenImportanceTransformer().fit(make(X), [0, 1])
    negative = r"non-negative token counts, got a minimum of -2\.5"
    for value, message in ((-2.5, negative), (np.nan, "NaN"), (np.inf, "infinity")):
        wrong = X.copy()
        wrong[1, 0] = value
        for method in (fitted.fit, fitted.partial_fit):
            with pytest.raises(ValueError, match=message):
                method(make(wrong), [0, 1])
        with pytest.raises(ValueError, match=message):
            fitted.transform(make(wrong))


def test_classes_that_do_not_fit():
    X = np.eye(3)
    new = TokenImportanceTransformer
    for method in (new().fit, new().partial_fit):
        with pytest.raises(ValueError, match=r"at least 2 classes; got 1 class: \['a'\]"):
            method(X, ["a"] * 3)
    with pytest.raises(ValueError, match=r"not among the classes .*: \['c'\]"):
        new().partial_fit(X, ["a", "b", "c"], classes=["a", "b"])
    first = new().partial_fit(X, ["a", "b", "a"])
    with pytest.raises(ValueError, match=r"not among the classes .*: \['c'\]"):
        first.partial_fit(X, ["a", "b", "c"])
    with pytest.raises(ValueError, match="at first they were"):
        first.partial_fit(X, ["a", "b", "a"], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="Unknown label type"):
        new().fit(X, [0.5, 1.5, 2.5])
    with pytest.raises(ValueError, match="requires y"):
        new().fit(X, None)


def test_a_refused_batch_changes_nothing(data):
    X, y = data
    fitted = TokenImportanceTransformer().fit(X, y)
    totals = fitted.token_totals_.copy()
    with pytest.raises(ValueError, match="features"):
        fitted.partial_fit(X[:, :5], y)
    with pytest.raises(ValueError, match="other sums"):
        fitted.set_params(importance="log_odds").partial_fit(X, y)
    assert_array_equal(fitted.token_totals_, totals)
    # Two statistics of the same sums may be exchanged.
    fitted.fit(X, y).set_params(importance="posterior_difference").partial_fit(X, y)
    other = TokenImportanceTransformer("posterior_difference").fit(X, y)
    assert_allclose(fitted.token_importance_, other.token_importance_)


def test_sample_weights_that_do_not_fit(data):
    X, y = data
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        TokenImportanceTransformer().fit(X, y, np.zeros(40))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        TokenImportanceTransformer().fit(X, y, -np.ones(40))


def test_wrong_parameters():
    wrong = {"k": [0, 1.5, 0.0, "all"], "threshold": [-1], "smoothing": [0]}
    wrong |= {"importance": ["chi2"], "scale": ["yes"], "centred": [0.5]}
    for name, value in [(name, value) for name, values in wrong.items() for value in values]:
        with pytest.raises(ValueError, match=f"The '{name}' parameter"):
            TokenImportanceTransformer(**{name: value}).fit(np.eye(2), [0, 1])


def test_wrong_widths(data):
    X, y = data
    fitted = TokenImportanceTransformer(k=5)
    with pytest.raises(NotFittedError):
        fitted.transform(X)
    fitted.fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but TokenImportanceTransformer is"):
        fitted.transform(X[:, :3])
    with pytest.raises(ValueError, match="X has 12 columns, but 5 tokens were selected"):
        fitted.inverse_transform(X)


def test_more_or_fewer_tokens_than_there_are(data):
    X, y = data
    with pytest.warns(UserWarning, match="k=13 is above n_tokens=12: all are kept"):
        fitted = TokenImportanceTransformer(k=13).fit(X, y)
    assert fitted.get_support().all()
    fitted = TokenImportanceTransformer(threshold=5, k=3).fit(X, y)
    for make in (sparse.csr_matrix, lambda X: X.toarray()):
        with pytest.warns(UserWarning, match="No tokens were selected.*threshold=5"):
            empty = fitted.transform(make(X))
        assert empty.shape == (40, 0)
        assert fitted.inverse_transform(empty).sum() == 0


@pytest.mark.parametrize("sparse_input", [True, False])
def test_transform_never_returns_the_callers_own_memory(sparse_input):
    X = sparse.csr_matrix(np.arange(12.0).reshape(4, 3)) if sparse_input else np.ones((4, 3))
    transformer = TokenImportanceTransformer(scale=False).fit(X, [0, 1, 0, 1])
    result = transformer.transform(X)
    mine, theirs = (result.data, X.data) if sparse_input else (result, X)
    assert not np.shares_memory(mine, theirs)
