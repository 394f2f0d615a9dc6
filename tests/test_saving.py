"""Models in files: safe to share, whole or not at all, and with the versions that made them."""

import copy
import json
import os
import pickle
import re
import stat
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from helpers import put, refused
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer
from test_interruption import CASES

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn._asreview import ASReviewClassifier
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer, WordVectors

TEXTS, LABELS = ["a good film", "a bad film", "good fun"] * 2, ["pos", "neg", "pos"] * 2
SEVERAL = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0]] * 2)
SUFFIXES = pytest.mark.parametrize("suffix", ["skops", "joblib"])
POSIX = pytest.mark.skipif(os.name != "posix", reason="devices and permissions of POSIX")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def interrupted(name):
    """Return the estimator of a case of interrupted fits, fitted."""
    estimator, method, _, data = CASES[name]
    model = clone(estimator)
    getattr(model, method)(*data)
    return model


def on_texts(y=LABELS, unlabeled=None, **parameters):
    model = TextClassifier(min_df=1, C=1.0, **parameters)
    return model.fit(TEXTS, y, unlabeled=unlabeled)


def counted(tokenizer=None):
    """Return a pipeline, with a tokenizer of the user's own if there is one."""
    pattern = {} if tokenizer is None else {"tokenizer": tokenizer, "token_pattern": None}
    vectorizer = CountVectorizer(**pattern)
    return make_pipeline(vectorizer, ClsAttentionClassifier(C=1.0)).fit(TEXTS, LABELS)


def batches_of_several_labels():
    X = CountVectorizer().fit_transform(TEXTS)
    return ClsAttentionClassifier(C=1.0).partial_fit(X, SEVERAL)


# Every kind of estimator of this package, and of what it has learned.
MODELS = {name: lambda name=name: interrupted(name) for name in CASES} | {
    "texts": on_texts,
    "three classes": lambda: on_texts(["a", "b", "c"] * 2),
    "several labels": lambda: on_texts(SEVERAL),
    "batches of several labels": batches_of_several_labels,
    "words without labels": lambda: on_texts(unlabeled=TEXTS),
    "word vectors": lambda: WordVectors(n_components=2, min_df=1).fit(TEXTS),
    "names": lambda: ClsAttentionClassifier(C=1.0).fit(
        pd.DataFrame(np.eye(2), columns=["good", "bad"]), LABELS[:2]
    ),
}


def assert_same(one, other):
    """Require two values to be alike, arrays in all bits."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert_array_equal(one, other)
    elif hasattr(one, "__dict__") and not isinstance(one, type):
        assert_same(vars(one), vars(other))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one.keys() - {"_stop_words_id"}:  # an address
            assert_same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)
    else:
        assert one == other


@pytest.mark.filterwarnings("error")
@SUFFIXES
@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_comes_back_whole(name, suffix, tmp_path):
    model, path = MODELS[name](), tmp_path / f"model.{suffix}"
    save_model(model, path)
    assert_same(load_model(path), model)


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    model = next(iter(MODELS.values()))()
    with pytest.raises(FileNotFoundError, match=r"There is no folder '.*none'"):
        save_model(model, tmp_path / "none" / "model.skops")


def test_a_table_of_text_and_numbers(tmp_path):
    """Its file was refused, because of the type of numbers of KBinsDiscretizer."""
    bins = KBinsDiscretizer(2, encode="onehot", strategy="uniform")
    columns = ColumnTransformer(
        [("words", ContextVectorizer(min_df=1), "message"), ("numbers", bins, ["days"])],
        transformer_weights={"numbers": 3.0},
    )
    model = make_pipeline(columns, ClsAttentionClassifier(C=1.0))
    table = pd.DataFrame({"message": TEXTS, "days": np.arange(6.0)})
    model.fit(table, LABELS)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert_array_equal(again.predict_proba(table), model.predict_proba(table))


@SUFFIXES
@pytest.mark.parametrize("name", ["batches", "two layers", "words without labels"])
def test_a_model_that_is_mapped_from_a_file(name, suffix, tmp_path):
    model = MODELS[name]()
    joblib.dump(model, tmp_path / "first")
    mapped = joblib.load(tmp_path / "first", mmap_mode="r")
    save_model(mapped, tmp_path / f"model.{suffix}")
    assert_same(load_model(tmp_path / f"model.{suffix}"), model)


ODD_TERMS = ["a b", "\n", "é", "\ud800", '"', "\\u0041", "0", "\ud83d\ude00", "\U0001f600", "\0"]


def test_any_vocabulary_is_saved_as_one_text(tmp_path):
    """With an object for each term, files of many terms took a minute to write and read."""
    terms = [*ODD_TERMS, *(f"word{number}" for number in range(3_000))]
    vectorizer = TokenVectorizer(vocabulary=None)
    vectorizer.vocabulary_ = {term: column for column, term in enumerate(terms)}
    path = tmp_path / "words.skops"
    save_model(vectorizer, path)
    for again in (load_model(path), copy.copy(vectorizer), pickle.loads(pickle.dumps(vectorizer))):
        assert again.vocabulary_ == vectorizer.vocabulary_
    with zipfile.ZipFile(path) as archive:
        assert archive.read("schema.json").count(b"__class__") < 100


def replace_in(path, old, new):
    """Replace bytes wherever they are in an archive."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(old, new))


# What is trusted


def own_tokens(text):
    return text.split()


@pytest.mark.parametrize("kind", ["search", "tokenizer"])
def test_saving_warns_of_types_that_loading_refuses(kind, tmp_path):
    path, model, trusted = tmp_path / "model.skops", counted(own_tokens), [own_tokens]
    if kind == "search":
        model = GridSearchCV(counted(), {"clsattentionclassifier__C": [1.0, 2.0]}, cv=2)
        model.fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match=r"load_model\(path, trusted=\[") as said:
        save_model(model, path)
    named = json.loads(re.search(r"trusted=(\[.*?\])", str(said[0].message))[1].replace("'", '"'))
    with pytest.raises(ValueError, match="types that are not trusted") as caught:
        load_model(path)
    assert all(name in str(caught.value) for name in named)
    trusted = trusted if kind == "tokenizer" else named
    again = load_model(path, trusted=trusted)
    assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    refused("types that are not trusted", load_model, path, trusted=trusted[1:])


@pytest.mark.parametrize("tokenizer", [lambda text: text.split(), str.split], ids=["own", "C"])
def test_a_model_that_could_never_be_loaded_is_not_saved(tokenizer, tmp_path):
    path = put(tmp_path / "model.skops", "the old file")
    refused(r"model.skops was not saved.*top level", save_model, counted(tokenizer), path)
    assert path.read_bytes() == b"the old file"


@SUFFIXES
def test_other_versions_are_told(suffix, tmp_path):
    path, model = tmp_path / f"model.{suffix}", interrupted("joint")
    here, other = f"scikit-learn {sklearn.__version__}".encode(), b"scikit-learn 9.0"
    if suffix == "skops":
        save_model(model, path)
        replace_in(path, here, other)
    else:
        path.write_bytes(pickle.dumps(model, 0).replace(here, other))
    said = r"ClsAttentionClassifier from version 0.* with scikit-learn 9\.0"
    with pytest.warns(InconsistentVersionWarning, match=said):
        load_model(path)


# Files that are damaged, or made to do harm


@SUFFIXES
@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"PK\x03\x04", b"x\x01", b"text, label\n"]
)
def test_what_is_not_a_model(content, suffix, tmp_path):
    path = put(tmp_path / f"model.{suffix}", content)
    refused(f"^{re.escape(str(path))} was not loaded: it is not a model", load_model, path)


def damages(content):
    """Yield copies of a file's content with bytes changed, left out or added."""
    rng, n = np.random.default_rng(0), len(content)
    for at in np.linspace(0, n - 1, 100).astype(int).tolist():
        yield content[:at] + bytes([content[at] ^ int(rng.integers(1, 256))]) + content[at + 1 :]
    for at in np.linspace(0, n - 1, 30).astype(int).tolist():
        yield from (content[:at], content[:at] + content[at + 7 :])
        yield content[:at] + bytes(9) + content[at:]


def test_a_damaged_file_is_one_error(tmp_path):
    model, path = counted(), tmp_path / "model.skops"
    save_model(model, path)
    n_refused = 0
    for content in damages(path.read_bytes()):
        path.write_bytes(content)
        try:
            again = load_model(path)
        except ValueError:
            n_refused += 1
        else:
            assert_same(again, model)
    assert n_refused > 100


def estimators(model):
    """Return the two estimators of a text classifier, or an estimator alone."""
    if isinstance(model, TextClassifier):
        return [model.vectorizer_, model.classifier_]
    return [model]


# Arrays that say how a model was found or how it is named, which no prediction uses.
NOT_CHECKED = {"loss_curve_", "validation_loss_curve_", "Cs_", "scores_", "vector_weights_"}
NOT_CHECKED |= {"feature_names_in_"}


def arrays(estimator):
    """Return the names of the arrays that an estimator predicts by, or adds batches to."""
    is_array = {name: isinstance(value, np.ndarray) for name, value in vars(estimator).items()}
    return [name for name in is_array if is_array[name] and name not in NOT_CHECKED]


def changed(array):
    """Yield what cannot stand in for an array of a fitted estimator."""
    yield "no array"
    yield array[None]
    if len(array):
        yield array[:-1]
    if len(array) and array.dtype.kind == "f":
        yield array.astype(str)
        other = array.copy()
        other.flat[-1] = np.nan
        yield other


VARIED = ["batches", "two layers, mlp, stopping early", "importance", "names"]
VARIED += ["several labels", "batches of several labels", "words without labels", "word vectors"]


@pytest.mark.parametrize("name", VARIED)
def test_arrays_that_do_not_fit_together_are_refused(name, tmp_path):
    model, path = MODELS[name](), tmp_path / "model.skops"
    for estimator in estimators(model):
        kind = type(estimator).__name__
        state = vars(estimator)
        for attribute in arrays(estimator):
            array = state[attribute]
            for other in changed(array):
                state[attribute] = other
                skops.io.dump(model, path)
                refused(f"{kind} is not valid", load_model, path)
            state[attribute] = array
    skops.io.dump(model, path)
    load_model(path)


def setting(part, **attributes):
    """Return a function that sets attributes of a part of a text classifier."""
    return lambda model: getattr(model, part).__dict__.update(attributes)


HOSTILE = {
    "no n-grams": (setting("vectorizer_", ngram_range="ab"), "ContextVectorizer is not valid"),
    "more n-grams": (setting("vectorizer_", ngram_range=(1, 10**9)), "start_scores_ must be"),
    "a word before twice": (
        setting(
            "vectorizer_", previous_words_=np.array(["a", "a"]), previous_word_scores_=np.zeros(2)
        ),
        "previous_words_ must be 2 different",
    ),
    "a class twice": (
        setting("classifier_", classes_=np.array(["pos", "pos"])),
        "classes_ must be 2 different",
    ),
    "more tokens": (setting("classifier_", n_features_in_=10**9), "attention_scores_ must be"),
    "a far column": (
        setting("classifier_", selected_tokens_=np.array([10**6])),
        "selection_counts_ must be",
    ),
    "a column before the first": (
        setting("classifier_", selected_tokens_=np.array([-1]), selection_counts_=np.array([1])),
        "selected_tokens_ must be",
    ),
    "no number": (setting("classifier_", cls_weight_=np.nan), "cls_weight_ must be"),
    "an endless score": (setting("classifier_", cls_score_=np.inf), "cls_score_ must be"),
    "no damping": (setting("classifier_", entry_scale_="1"), "entry_scale_ must be"),
}


def test_the_classifier_of_asreview_is_trusted(tmp_path):
    model = ASReviewClassifier().fit(np.eye(4), [0, 1, 0, 1])
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert np.array_equal(loaded.token_values_, model.token_values_)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_planted_in_a_model_is_refused(name, tmp_path):
    change, said = HOSTILE[name]
    model, path = on_texts(), tmp_path / "model.skops"
    change(model)
    skops.io.dump(model, path)
    refused(f"^{re.escape(str(path))} was not loaded.*{said}", load_model, path)


@pytest.mark.parametrize("other", ['"good"', "1", "[]"])
def test_a_vocabulary_has_different_strings(other, tmp_path):
    path = tmp_path / "model.skops"
    save_model(TokenVectorizer().fit(TEXTS), path)
    replace_in(path, b'"film"', other.encode())
    refused("was not loaded", load_model, path)


WITHIN = {
    "frozen": FrozenEstimator,
    "in columns": lambda model: ColumnTransformer([("words", model, "text")]),
    "in a list": lambda model: [model],
    "in an array": lambda model: np.array([[model, None]], dtype=object),
    "in a dictionary": lambda model: FunctionTransformer(kw_args={"model": model}),
}


@pytest.mark.parametrize("name", WITHIN)
def test_an_estimator_is_checked_wherever_it_is(name, tmp_path):
    model, path = on_texts(), tmp_path / "model.skops"
    save_model(WITHIN[name](model), path)
    load_model(path)
    model.classifier_.intercept_ = np.zeros(2)
    skops.io.dump(WITHIN[name](model), path)
    refused("ClsAttentionClassifier is not valid: intercept_ must be", load_model, path)


def test_a_file_that_unpacks_to_a_thousand_times_its_size(tmp_path):
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", bytes(1 << 26))
    refused("it unpacks to 67,108,864 bytes", load_model, path)


@POSIX
@SUFFIXES
def test_a_pipe_or_a_device_is_no_model(suffix, tmp_path):
    """Reading them never ended."""
    pipe, link = tmp_path / f"pipe.{suffix}", tmp_path / f"link.{suffix}"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    for path in (pipe, link, tmp_path):
        refused("is not a file", load_model, path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / f"gone.{suffix}")


# Writing


@SUFFIXES
def test_a_file_is_written_whole_or_not_at_all(suffix, tmp_path, monkeypatch):
    path = put(tmp_path / f"model.{suffix}", "the old file")

    def fail(number):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    refused("disk full", save_model, counted(), path, error=OSError)
    assert path.read_text() == "the old file"
    assert [*tmp_path.iterdir()] == [path]


@POSIX
def test_a_link_is_followed_and_permissions_stay(tmp_path):
    path, link = put(tmp_path / "model.skops", "old"), tmp_path / "link.skops"
    path.chmod(0o640)
    link.symlink_to(path)
    save_model(counted(), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    load_model(path)
    save_model(counted(), "/dev/null")  # which no file replaces
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
