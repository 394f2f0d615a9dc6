"""Models from files that anybody may have made: valid, or refused when they are loaded."""

import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from copy import deepcopy

import mutations
import numpy as np
import pytest
import skops.io
from helpers import refused
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_clsattn import TextClassifier, _unpacked
from sklearn_clsattn.saving import load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TEXTS, LABELS = mutations.TEXTS, mutations.LABELS


@pytest.mark.parametrize("kind", mutations.MODELS)
def test_changed_models_are_refused_or_valid(kind):
    """`python tests/mutations.py` tries many more."""
    found = mutations.outcomes(kind, range(4))
    assert set(found) <= set(mutations.FINE)
    assert "refused" in found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["several labels", "columns", "scaled", "vectors"])
def test_a_model_without_an_attribute_is_refused_or_valid(kind, tmp_path):
    path, changed = tmp_path / "model.skops", tmp_path / "changed.skops"
    save_model(mutations.MODELS[kind](), path)
    content, questions, expected = mutations.reference(path)
    found = set()
    for name, without in mutations.without_each_attribute(content):
        changed.write_bytes(without)
        answer = mutations.verdict(changed, questions, expected)
        assert answer in mutations.FINE, name
        found.add(answer)
    assert "refused" in found


def setting(step, **attributes):
    """Return a function that sets attributes of a step of a pipeline."""
    return lambda model: model[step].__dict__.update(attributes)


def numbering(step, name, number):
    """Return a function that gives the first token of a vocabulary another number."""

    def change(model):
        vocabulary = getattr(model[step], name)
        vocabulary[next(iter(vocabulary))] = number

    return change


def shorten_embeddings(model):
    stored = model[1]._embeddings
    factors = {**vars(stored), "factors": stored.factors[:-1]}
    model[1]._embeddings = type(stored)(**factors)


EVIL = r"(?:\w+\w+)+!"
PLANTED = {
    "a pattern": (setting(0, token_pattern=EVIL), "not known to be safe.*w\\+"),
    "no pattern": (setting(0, token_pattern="(a"), "token_pattern is not a regular expression"),
    "a negative column": (numbering(0, "vocabulary_", -1), "must number its .* tokens from 0"),
    "a far column": (numbering(0, "vocabulary_", 10**9), "must number its .* tokens from 0"),
    "a column twice": (numbering(0, "character_vocabulary_", 1), "character_vocabulary_ must"),
    "endless n-grams": (setting(0, ngram_range=(1, 10**9)), "ngram_range must be"),
    "endless characters": (setting(0, characters=(2, 10**9)), "characters must be"),
    "a function": (setting(0, tokenizer=np.add), "not known to be safe.*add"),
    "a type": (setting(0, tokenizer=list), "not known to be safe.*builtins.list"),
    "few gates": (
        setting(0, start_scores_=np.zeros((1, 10))),
        r"start_scores_ must be .*\(2, 10\)",
    ),
    "a word twice": (
        setting(0, previous_words_=np.array(["a", "a"], dtype=object)),
        "previous_words_ must be different strings",
    ),
    "a method": (setting(1, predict="pos"), "predict must not replace a method"),
    "few classes": (setting(1, classes_=np.array(["pos"])), "classes_ must be at least 2"),
    "a class twice": (setting(1, classes_=np.array(["pos", "pos"])), "classes_ must be different"),
    "few scores": (setting(1, attention_scores_=np.zeros(3)), "attention_scores_ must be numbers"),
    "no number": (setting(1, intercept_=np.array([np.nan])), "intercept_ must be finite"),
    "a parameter": (setting(1, max_iter=-1), "'max_iter' parameter of ClsAttentionClassifier"),
    "a selection": (setting(1, selected_tokens_=np.array([10**6])), "selected_tokens_ must be"),
    "few embeddings": (shorten_embeddings, "factors must be numbers of shape"),
}


@pytest.fixture(scope="module")
def text_model():
    return TextClassifier(min_df=1, C=1.0, token_vectors_scale=1.0).fit(
        TEXTS, LABELS, unlabeled=TEXTS
    )


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_a_model_is_refused(name, text_model, tmp_path):
    change, said = PLANTED[name]
    model, path = deepcopy(text_model), tmp_path / "model.skops"
    change(model)  # which its own code would not allow
    skops.io.dump(model, path)
    refused(f"(?s)^{path} .*{said}", load_model, path)


def as_term(value):
    """Return a term of a vocabulary as it stands in a schema: JSON in JSON in JSON."""
    return json.dumps(json.dumps(json.dumps(value))[1:-1])[1:-1]


@pytest.mark.parametrize("other", ["film", 3, None, ["film"], {"film": 1}])
def test_terms_of_a_vocabulary_are_different_texts(other, text_model, tmp_path):
    path = tmp_path / "model.skops"
    save_model(text_model, path)
    members, schema = mutations.read(path.read_bytes())
    text = json.dumps(schema)
    assert as_term("bad") in text
    changed = json.loads(text.replace(as_term("bad"), as_term(other)))
    path.write_bytes(mutations.written(members, changed))
    refused(r"terms (in|of) a vocabulary", load_model, path)


def zeros(n_bytes):
    """Return a stream of zeros, compressed, without ever having them all."""
    part, packer = bytes(1 << 24), zlib.compressobj(9, wbits=-15)
    block = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (n_bytes // len(part)) + packer.flush()


def packed(members):
    """Return an archive of members: bytes, or a compressed stream and the size it declares."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, member in members.items():
            if isinstance(member, bytes):
                archive.writestr(name, member)
                continue
            stream, declared = member
            archive.writestr(name, stream)
            info = archive.getinfo(name)
            info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, declared
    return made.getvalue()


def array_of_nothing():
    """Return a file of an array of which only the header is there."""
    file = io.BytesIO()
    header = {"descr": "<U0", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def array_of_a_megabyte():
    file = io.BytesIO()
    np.save(file, np.zeros(1 << 17))
    return file.getvalue()


ARRAY = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
ARRAY |= {"type": "numpy", "file": "planted.npy"}


def list_node(content, number):
    kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    return {**kind, "content": content, "__id__": number}


def lists_of_twice_the_same_list():
    node = list_node([], 10**6)
    for depth in range(1, 60):
        node = list_node([node, list_node([], node["__id__"])], 10**6 + depth)
    return node


LARGE = 1 << 31
# What is planted: a node of the schema, the member that it names, and what is said.
BOMBS = {
    "large": lambda: (ARRAY, (zeros(LARGE), LARGE), "unpacked size"),
    "large, declared little": lambda: (ARRAY, (zeros(LARGE), 1000), "is not a model"),
    "small, declared much": lambda: (ARRAY, (zeros(1 << 24), LARGE), "size that it cannot have"),
    "large within": lambda: (
        {**ARRAY, "file": "planted.npz"},
        packed({"data.npy": (zeros(LARGE), LARGE)}),
        "unpacked size",
    ),
    "nothing": lambda: (ARRAY, array_of_nothing(), "fewer items than its shape"),
    "an array often": lambda: (
        list_node([ARRAY] * 600, 10**6),
        array_of_a_megabyte(),
        "unpacked size",
    ),
    "lists": lambda: (lists_of_twice_the_same_list(), b"", "the same objects again and again"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_takes_little_memory_and_time(bomb, tmp_path):
    path = tmp_path / "model.skops"
    save_model(make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, LABELS), path)
    load_model(path)  # with its imports
    members, schema = mutations.read(path.read_bytes())
    node, member, said = BOMBS[bomb]()
    attributes = schema["content"]
    attributes["content"]["planted"] = node
    attributes["key_types"]["content"].append(attributes["key_types"]["content"][0])
    members |= {node.get("file", "planted.npy"): member, "schema.json": json.dumps(schema).encode()}
    path.write_bytes(packed(members))
    assert path.stat().st_size < 1 << 22
    tracemalloc.start()
    try:
        refused(f"(?s)^{path} .*{said}", load_model, path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


def test_a_file_may_be_trusted_to_be_large(tmp_path, monkeypatch):
    path, model = tmp_path / "model.skops", mutations.MODELS["counts"]()
    monkeypatch.setattr(_unpacked, "_USUAL_SIZE", 1000)
    monkeypatch.setattr(_unpacked, "_LARGEST_RATIO", 2)
    with pytest.warns(UserWarning, match=r"unpacks to many times its size.*trusted=\['unpacked"):
        save_model(model, path)
    refused(r"was not loaded.*trusted=\['unpacked size'\]", load_model, path)
    again = load_model(path, trusted=["unpacked size"])
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


QUICK = [
    r"(?u)\b\w\w+\b",
    r"\w+(?:['’]\w+)*|[^\w\s]",
    r"\S+",
    r"\w+",
    r"(?u)\b\w+\b",
    r"\b[a-zA-Z]{2,}\b",
    r"[a-z']+",
    r"#?\w+".replace("?", ""),
    r"[A-Z]+|\d+|[^\w\s]",
    "[^,]+",
    r"\$\d+",
]
SLOW = [
    EVIL,
    r"(\w*)*$",
    r"(a|a)+b",
    r"\w*\w*\w*\w*!",
    r"(?=(\w+))\1+!",
    r"\w{1,99}\w{1,99}!",
    r"(?:a|ab)*c",
    r"\w+" * 80,
    r"[a-z]+[0-9]*x?",
    r"\w+(?:-\w+)*",
]


@pytest.mark.parametrize("pattern", QUICK)
def test_a_pattern_that_is_quick_is_loaded(pattern, tmp_path):
    save_model(CountVectorizer(token_pattern=pattern), tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").token_pattern == pattern


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_may_be_slow_is_named_and_can_be_trusted(pattern, tmp_path):
    path = tmp_path / "model.skops"
    with pytest.warns(UserWarning, match=r"load_model\(path, trusted=\["):
        save_model(CountVectorizer(token_pattern=pattern), path)
    refused("not known to be safe", load_model, path)
    assert load_model(path, trusted=[pattern]).token_pattern == pattern


SAVED = {
    "texts": mutations.MODELS["texts"],
    "word vectors": mutations.MODELS["word vectors"],
    "batches": mutations.MODELS["batches"],
    "columns": mutations.MODELS["columns"],
    "stop words": lambda: make_pipeline(
        TfidfVectorizer(stop_words=["a", "the"]), LogisticRegression()
    ).fit(TEXTS, LABELS),
    "a set": lambda: FunctionTransformer(kw_args={"words": {"one", "two", "three", "four"}}),
    "names": lambda: make_pipeline(
        CountVectorizer(vocabulary=["file", "_stop_words_id", "__id__"])
    ),
}
SAVE = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from test_loaded import SAVED
from sklearn_clsattn.saving import save_model
for name, made in SAVED.items():
    save_model(made(), f"{sys.argv[2]}/{name}.skops")
"""


def test_the_same_model_has_the_same_bytes(tmp_path):
    folder, other = str(mutations.__file__).rpartition("mutations.py")[0], tmp_path / "other"
    other.mkdir()
    subprocess.run([sys.executable, "-c", SAVE, folder, str(other)], check=True)
    for name, made in SAVED.items():
        model, path = made(), tmp_path / "model.skops"
        save_model(model, path)
        content = path.read_bytes()
        assert (other / f"{name}.skops").read_bytes() == content, "in another process"
        save_model(model, path)
        assert path.read_bytes() == content, "saved again"
        again = load_model(path)
        if hasattr(again, "predict"):
            again.predict(mutations.TABLE if name == "columns" else TEXTS)
        save_model(again, path)
        assert path.read_bytes() == content, "loaded, used and saved again"
