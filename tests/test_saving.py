"""Models in files: safe to share, for ever, and with the versions that made them."""

import json
import pickle
import re
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from test_interruption import CASES

import sklearn_clsattn
from sklearn_clsattn import ClsAttentionClassifier, _saved
from sklearn_clsattn.cli import main
from sklearn_clsattn.saving import TRUSTED_TYPES, load_model, save_model

FOLDER = Path(__file__).parent / "models"
OLD = {
    (path.stem, name): case
    for path in FOLDER.glob("*.json")
    for name, case in json.loads(path.read_text()).items()
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def assert_same(one, other):
    """Require two values to be alike, arrays in all bits."""
    if isinstance(one, np.ndarray):
        assert_array_equal(one, other)
    elif hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        for name in one.__dataclass_fields__:
            assert_same(getattr(one, name), getattr(other, name))
    else:
        assert one == other or one is other


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("suffix", [".skops", ".joblib"])
def test_every_estimator_comes_back_whole(name, suffix, tmp_path):
    estimator, method, _, data = CASES[name]
    model = sklearn.base.clone(estimator)
    getattr(model, method)(*data)
    save_model(model, tmp_path / f"model{suffix}")
    again = load_model(tmp_path / f"model{suffix}")
    assert vars(again).keys() == vars(model).keys()
    for attribute, value in vars(model).items():
        assert_same(value, getattr(again, attribute))


@pytest.mark.parametrize("name", CASES)
def test_files_name_public_types_alone(name):
    estimator, method, _, data = CASES[name]
    model = sklearn.base.clone(estimator)
    getattr(model, method)(*data)
    assert set(skops.io.get_untrusted_types(data=skops.io.dumps(model))) <= set(TRUSTED_TYPES)
    for kind in TRUSTED_TYPES:  # the names do not depend on where classes are
        assert not re.search(r"\._", kind)
    named = set(re.findall(rb"sklearn_clsattn[\w.]*", pickle.dumps(model)))
    assert not [name for name in named if b"._" in name]


def test_the_list_is_that_of_the_public_estimators():
    found = {
        f"{module.__name__}.{name}"
        for module in (sklearn_clsattn, sklearn_clsattn.paper, sklearn_clsattn.text)
        for name in module.__all__
        if hasattr(getattr(module, name), "get_params")
    }
    assert found == set(TRUSTED_TYPES)
    assert list(TRUSTED_TYPES) == sorted(TRUSTED_TYPES, key=lambda name: (name.count("."), name))


@pytest.mark.filterwarnings("ignore:This .* was saved with:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize(("version", "name"), OLD)
def test_old_files_say_what_they_said(version, name):
    case = OLD[version, name]
    model = load_model(FOLDER / f"{version} {name}.skops")
    answer = model.predict_proba if hasattr(model, "predict_proba") else model.transform
    assert_allclose(answer(case["asked"]), case["said"], rtol=1e-12)


def test_other_types_are_refused(tmp_path):
    path = tmp_path / "model.skops"
    texts = ["a good film", "a bad film"] * 3
    model = make_pipeline(FunctionTransformer(print), CountVectorizer(), ClsAttentionClassifier())
    model[1:].fit(texts, [1, 0] * 3)
    path.write_bytes(skops.io.dumps({"model": model, "more": Path}))
    with pytest.raises(ValueError, match=r"neither this package's.*has not been loaded"):
        load_model(path)


TEXTS, LABELS = ["a good film", "a bad film", "good fun"] * 2, ["pos", "neg", "pos"] * 2


def own_tokens(text):
    return text.split()


def counted(tokenizer):
    """Return a pipeline with a tokenizer of the user's own."""
    vectorizer = CountVectorizer(tokenizer=tokenizer, token_pattern=None)
    return make_pipeline(vectorizer, ClsAttentionClassifier(C=1.0)).fit(TEXTS, LABELS)


@pytest.mark.parametrize("kind", ["search", "tokenizer"])
def test_what_is_refused_is_said_when_it_is_saved(kind, tmp_path):
    path, model = tmp_path / "model.skops", counted(own_tokens)
    trusted = [own_tokens]
    if kind == "search":
        model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
        model = GridSearchCV(model, {"clsattentionclassifier__C": [1.0, 2.0]}, cv=2)
        model.fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match=r"load_model refuses .* trusted=\[") as said:
        save_model(model, path)
    named = re.search(r"trusted=(\[.*?\])", str(said[0].message))[1]
    with pytest.raises(ValueError, match="has not been loaded") as refused:
        load_model(path)
    for name in json.loads(named.replace("'", '"')):
        assert name in str(refused.value)
    trusted = trusted if kind == "tokenizer" else json.loads(named.replace("'", '"'))
    again = load_model(path, trusted=trusted)
    assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    with pytest.raises(ValueError, match="has not been loaded"):
        load_model(path, trusted=trusted[1:])


@pytest.mark.parametrize("tokenizer", [lambda text: text.split(), str.split], ids=["own", "C"])
def test_what_could_never_be_loaded_is_not_saved(tokenizer, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(b"the old file")
    with pytest.raises(ValueError, match=r"model.skops has not been saved.*top level"):
        save_model(counted(tokenizer), path)
    assert path.read_bytes() == b"the old file"


def test_types_are_trusted_in_skops_files_alone(tmp_path):
    path = tmp_path / "model.joblib"
    save_model(counted(own_tokens), path)
    with pytest.raises(ValueError, match=r"model.joblib is a pickle.*trusted"):
        load_model(path, trusted=[own_tokens])


@pytest.mark.parametrize("suffix", [".skops", ".joblib"])
def test_models_are_compressed(suffix, tmp_path):
    vectorizer = HashingVectorizer(n_features=2**16, alternate_sign=False, norm=None)
    model = make_pipeline(vectorizer, ClsAttentionClassifier(C=1.0))
    save_model(model.fit(TEXTS, LABELS), tmp_path / f"model{suffix}")
    assert (tmp_path / f"model{suffix}").stat().st_size < 100_000  # of 4.7 MB


def damages(content):
    """Yield copies of a file's content with bytes changed, left out or added."""
    rng, n = np.random.default_rng(0), len(content)
    for at in np.linspace(0, n - 1, 150).astype(int).tolist():
        flipped = bytearray(content)
        flipped[at] ^= int(rng.integers(1, 256))
        yield bytes(flipped)
    for length in [0, 1, 2, *np.linspace(3, n - 1, 40).astype(int).tolist()]:
        yield content[:length]
    for at in rng.integers(0, n, 20).tolist():
        yield content[:at] + content[at + 7 :]
        yield content[:at] + bytes(9) + content[at:]
    yield from (b"[" * 100_000, b"PK\x03\x04", b"\x80\x05.", b"x\x01", b"text, label\n")


@pytest.mark.parametrize("suffix", [".skops", ".joblib"])
def test_a_damaged_file_is_one_error(suffix, tmp_path):
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier(C=1.0)).fit(TEXTS, LABELS)
    expected = model.predict_proba(TEXTS)
    path = tmp_path / f"model{suffix}"
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
    assert len(said) > 150
    for one in said:
        assert one.startswith(f"{path} is not a model that can be loaded")


def test_versions_are_kept_and_compared(tmp_path, monkeypatch):
    estimator, method, _, data = CASES["joint"]
    model = getattr(sklearn.base.clone(estimator), method)(*data)
    for name in ("model.joblib", "model.skops"):
        save_model(model, tmp_path / name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            load_model(tmp_path / name)
        with monkeypatch.context() as patch:
            patch.setattr(_saved, "__version__", "9.0")
            with pytest.warns(UserWarning, match=r"saved with sklearn-clsattn 0.*with .* 9\.0"):
                load_model(tmp_path / name)
    state = model.__getstate__()
    del state[_saved._VERSIONS]
    with pytest.warns(UserWarning, match="earlier versions"):
        ClsAttentionClassifier().__setstate__(state)
    assert _saved._VERSIONS not in vars(joblib.load(tmp_path / "model.joblib"))


def test_the_command_line_saves_and_loads_skops(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model.skops"
    data.write_text("text,label\n" + "a good film,pos\na bad film,neg\n" * 5)
    assert main(["fit", str(data), "-o", str(model), "--quiet"]) == 0
    assert model.read_bytes().startswith(b"PK")
    for argv in (["predict", str(model), str(data)], ["explain", str(model), "--say", "good"]):
        capsys.readouterr()
        assert main(argv) == 0
        assert "pos" in capsys.readouterr().out
    model.write_bytes(skops.io.dumps({"other": Path}))
    assert main(["predict", str(model), str(data)]) == 2
    assert "has not been loaded" in capsys.readouterr().err
