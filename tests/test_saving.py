"""Models in files: safe to share, whole or not at all, and with the versions that made them."""

import copy
import json
import pickle
import re
import warnings
import zipfile

import numpy as np
import pytest
import sklearn
import skops.io
from helpers import refused
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from test_interruption import CASES

import sklearn_clsattn
from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import load_requests, make_token_classification
from sklearn_clsattn.importance import overall_importance
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import TRUSTED_TYPES, load_model, save_model
from sklearn_clsattn.text import TokenVectorizer

TEXTS, LABELS = ["a good film", "a bad film", "good fun"] * 2, ["pos", "neg", "pos"] * 2

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(name):
    """Return the estimator of a case of interrupted fits, fitted."""
    estimator, method, _, data = CASES[name]
    model = clone(estimator)
    getattr(model, method)(*data)
    return model


def own_tokens(text):
    return text.split()


def counted(tokenizer=None):
    """Return a pipeline, with a tokenizer of the user's own if there is one."""
    pattern = {} if tokenizer is None else {"tokenizer": tokenizer, "token_pattern": None}
    vectorizer = CountVectorizer(**pattern)
    return make_pipeline(vectorizer, ClsAttentionClassifier(C=1.0)).fit(TEXTS, LABELS)


def test_a_character_and_its_two_surrogates_stay_two_terms():
    texts = ["ok \ud83d\ude00", "ok \U0001f600"]
    vectorizer = TokenVectorizer(token_pattern=r"\S+").fit(texts)
    for other in (copy.copy(vectorizer), pickle.loads(pickle.dumps(vectorizer))):
        assert (other.transform(texts) != vectorizer.transform(texts)).nnz == 0


def test_a_model_with_the_number_of_a_device_is_saved(tmp_path):
    model = ClsAttentionClassifier(C=1.0, device="cpu:0").fit([[1, 0], [0, 1]] * 3, [0, 1] * 3)
    save_model(model, tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").device == "cpu:0"


def test_a_vocabulary_is_saved_as_one_text(tmp_path):
    """A file has no object for each term: those of many terms took seconds to write and read."""
    odd = ["a b", "\n", "é", "\ud800", '"', "\\u0041", "0"]
    texts = [*odd, *(f"word{number}" for number in range(3_000))]
    vectorizer = TokenVectorizer(analyzer=lambda text: [text]).fit(texts)
    saved = TokenVectorizer()
    saved.vocabulary_ = vectorizer.vocabulary_
    save_model(saved, tmp_path / "words.skops")
    assert load_model(tmp_path / "words.skops").vocabulary_ == vectorizer.vocabulary_
    with zipfile.ZipFile(tmp_path / "words.skops") as archive:
        assert archive.read("schema.json").count(b"__class__") < 100


def assert_same(one, other):
    """Require two values to be alike, arrays in all bits."""
    if isinstance(one, np.ndarray):
        assert_array_equal(one, other)
    elif hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        assert_same(vars(one), vars(other))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    else:
        assert one == other or one is other


@pytest.mark.parametrize("name", CASES)
def test_every_estimator_comes_back_whole_and_names_public_types_alone(name, tmp_path):
    model = fitted(name)
    for path in (tmp_path / "model.skops", tmp_path / "model.joblib"):
        save_model(model, path)
        again = load_model(path)
        assert vars(again).keys() == vars(model).keys()
        for attribute, value in vars(model).items():
            if attribute == "_stop_words_id":  # an address
                continue
            assert_same(value, getattr(again, attribute))
    types = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert set(types) <= set(TRUSTED_TYPES)
    named = set(re.findall(rb"sklearn_clsattn[\w.]*", pickle.dumps(model)))
    assert not [name for name in named if b"._" in name]


def test_the_trusted_types_are_the_public_estimators():
    found = {
        f"{module.__name__}.{name}"
        for module in (sklearn_clsattn, sklearn_clsattn.paper, sklearn_clsattn.text)
        for name in module.__all__
        if hasattr(getattr(module, name), "get_params")
    }
    assert found | {"sklearn_clsattn.TextClassifier"} == set(TRUSTED_TYPES)


@pytest.mark.parametrize("kind", ["search", "tokenizer"])
def test_saving_warns_of_types_that_loading_refuses(kind, tmp_path):
    path, model, trusted = tmp_path / "model.skops", counted(own_tokens), [own_tokens]
    if kind == "search":
        model = GridSearchCV(counted(), {"clsattentionclassifier__C": [1.0, 2.0]}, cv=2)
        model.fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match=r"load_model\(path, trusted=\[") as said:
        save_model(model, path)
    named = json.loads(re.search(r"trusted=(\[.*?\])", str(said[0].message))[1].replace("'", '"'))
    with pytest.raises(ValueError, match="was not loaded") as caught:
        load_model(path)
    assert all(name in str(caught.value) for name in named)
    trusted = trusted if kind == "tokenizer" else named
    again = load_model(path, trusted=trusted)
    assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    refused("was not loaded", load_model, path, trusted=trusted[1:])


@pytest.mark.parametrize("tokenizer", [lambda text: text.split(), str.split], ids=["own", "C"])
def test_a_model_that_could_never_be_loaded_is_not_saved(tokenizer, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(b"the old file")
    refused(r"model.skops was not saved.*top level", save_model, counted(tokenizer), path)
    assert path.read_bytes() == b"the old file"
    with pytest.raises(FileNotFoundError, match=r"gone.model\.joblib'$"):
        save_model(counted(), tmp_path / "gone" / "model.joblib")


def damages(content):
    """Yield copies of a file's content with bytes changed, left out or added."""
    rng, n = np.random.default_rng(0), len(content)
    for at in np.linspace(0, n - 1, 100).astype(int).tolist():
        yield content[:at] + bytes([content[at] ^ int(rng.integers(1, 256))]) + content[at + 1 :]
    for at in np.linspace(0, n - 1, 30).astype(int).tolist():
        yield from (content[:at], content[:at] + content[at + 7 :])
        yield content[:at] + bytes(9) + content[at:]
    yield from (b"[" * 100_000, b"PK\x03\x04", b"\x80\x05.", b"x\x01", b"text, label\n")


@pytest.mark.parametrize("suffix", [".skops", ".joblib"])
def test_a_damaged_file_is_one_error(suffix, tmp_path):
    model, path = counted(), tmp_path / f"model{suffix}"
    expected = model.predict_proba(TEXTS)
    save_model(model, path)
    said = []
    for content in damages(path.read_bytes()):
        path.write_bytes(content)
        try:
            again = load_model(path)
        except ValueError as error:
            said.append(str(error))
        else:
            assert_array_equal(again.predict_proba(TEXTS), expected)
    assert len(said) > 100
    for one in said:
        assert one.startswith(f"{path} cannot be loaded: it is not a model")


def test_versions_are_saved_and_compared(tmp_path, monkeypatch):
    model = fitted("joint")
    for path in (tmp_path / "model.joblib", tmp_path / "model.skops"):
        save_model(model, path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            load_model(path)
        with monkeypatch.context() as patch:
            patch.setattr(sklearn, "__version__", "9.0")
            with pytest.warns(UserWarning, match=r"saved with sklearn-clsattn 0.*learn 9\.0"):
                load_model(path)


@pytest.fixture(scope="module")
def requests_model():
    texts, y = load_requests(return_X_y=True)
    return TextClassifier().fit(texts[:1000], y[:1000], unlabeled=texts[1000:]), texts, y


@pytest.mark.parametrize("suffix", ["skops", "joblib"])
def test_smaller_files(tmp_path, suffix, requests_model):
    model, texts, y = requests_model
    before, size = model.predict_proba(texts[1000:1100]), len(model[1].attention_scores_)
    save_model(model, tmp_path / f"full.{suffix}")
    every, some = (tmp_path / f"{name}.{suffix}" for name in ("every", "some"))
    save_model(model, every, max_tokens=size, dtype=np.float16)
    np.testing.assert_allclose(load_model(every).predict_proba(texts[1000:1100]), before, atol=5e-3)
    save_model(model, some, max_tokens=1000, dtype=np.float16)
    assert some.stat().st_size < 0.2 * (tmp_path / f"full.{suffix}").stat().st_size
    smaller = load_model(some)
    assert smaller.score(texts[1000:], y[1000:]) > model.score(texts[1000:], y[1000:]) - 0.03
    names, kept = model[0].get_feature_names_out(), smaller[0].get_feature_names_out()
    best = np.argsort(-overall_importance(model[1].token_importance_), kind="stable")[:1000]
    assert set(kept) == set(names[best])
    at = {name: place for place, name in enumerate(names)}
    chosen = [at[name] for name in kept]
    expected = model[1].attention_scores_[chosen].astype(np.float16)
    np.testing.assert_array_equal(smaller[1].attention_scores_, expected)
    selected = names[model[1].selected_tokens_]
    assert set(kept[smaller[1].selected_tokens_]) == set(selected) & set(kept)
    assert "adds" in explain(smaller, texts[:1]).to_text()
    # The model itself is as it was.
    np.testing.assert_array_equal(model.predict_proba(texts[1000:1100]), before)


KEPT = {
    "counts": lambda: make_pipeline(CountVectorizer(), ClsAttentionClassifier(C=1.0)),
    "without gates": lambda: TextClassifier(C=1.0, min_df=1, context=False),
    "with gates": lambda: TextClassifier(C=1.0, min_df=1),
}


@pytest.mark.parametrize("max_tokens", [5, 50, 500])
@pytest.mark.parametrize("kind", KEPT)
def test_dropped_tokens_change_the_weights_of_the_others_by_one_factor(kind, max_tokens, tmp_path):
    texts, y = make_token_classification(200, as_text=True, random_state=0)
    model = KEPT[kind]().fit(texts, y)
    save_model(model, tmp_path / "some.skops", max_tokens=max_tokens)
    smaller = load_model(tmp_path / "some.skops")
    kept = np.isin(model[0].get_feature_names_out(), smaller[0].get_feature_names_out())
    before = model[0].transform(texts).toarray()[:, kept].astype(float)
    after = smaller[0].transform(texts).toarray().astype(float)
    assert_array_equal(after > 0, before > 0)
    totals = before.sum(axis=1)
    factors = np.where(totals > 0, after.sum(axis=1) / np.maximum(totals, 1e-9), 1.0)
    np.testing.assert_allclose(after, before * factors[:, None], rtol=1e-5)
    if kind != "with gates":
        np.testing.assert_allclose(factors, 1.0, rtol=1e-6)


def test_what_cannot_be_smaller(tmp_path):
    X, y = make_token_classification(50, random_state=0)
    model = ClsAttentionClassifier().fit(X, y)
    save_model(model, tmp_path / "half.skops", dtype=np.float32)
    assert load_model(tmp_path / "half.skops").token_values_.dtype == np.float32
    weighted = make_pipeline(TfidfVectorizer(), ClsAttentionClassifier()).fit(TEXTS, LABELS)
    path = tmp_path / "other.skops"
    for one in (model, weighted):
        refused("needs a pipeline of a CountVectorizer", save_model, one, path, max_tokens=3)
    counted = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(TEXTS, LABELS)
    save_model(counted, tmp_path / "few.joblib", max_tokens=2)
    assert load_model(tmp_path / "few.joblib").predict_proba(TEXTS).shape == (6, 2)
    linear = LogisticRegression()
    refused("a pipeline that ends in one", save_model, linear, path, max_tokens=3, error=TypeError)
    refused("max_tokens == 0", save_model, model, path, max_tokens=0)
