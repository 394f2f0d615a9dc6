"""Saved models whose content was changed, as somebody could who wants to do harm.

`python tests/mutations.py` changes each kind of model 1,400 times, and prints how many of the
changed files were refused, how many gave the same predictions as before, and how many are another
valid model. It fails if one waits for ever, crashes the process, or fails after it was loaded.
"""

import argparse
import contextlib
import faulthandler
import io
import json
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler

from sklearn_clsattn import (
    ClsAttentionClassifier,
    TextClassifier,
    TokenImportanceTransformer,
    paper,
)
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import TokenVectorizer, WordVectors

TEXTS = ["a good film", "a bad film", "good fun, really", "bad, dull fun", "dull film"] * 4
LABELS = ["pos", "neg", "pos", "neg", "neg"] * 4
TOPICS = ["a", "b", "c", "b", "b"] * 4
SEVERAL = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]] * 4)
NEW = ["a good, unseen film", "", "dull bad", "really good fun" * 3]
TABLE = pd.DataFrame({"text": TEXTS, "length": [float(len(text)) for text in TEXTS]})

SECONDS = 60.0  # that loading and using a changed file may take
_SHORT = {"max_iter": 2, "early_stopping": False, "random_state": 0, "embedding_dim": 4}


def _fitted(*steps):
    return make_pipeline(*steps).fit(TEXTS, LABELS)


def _in_batches():
    model = TextClassifier(min_df=1, C=1.0)
    model.partial_fit(TEXTS[:10], LABELS[:10], classes=sorted(set(LABELS)))
    return model.partial_fit(TEXTS[10:], LABELS[10:])


def _columns():
    parts = [("words", TokenVectorizer(), "text"), ("numbers", MaxAbsScaler(), ["length"])]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(TABLE, LABELS)


MODELS = {
    "texts": lambda: TextClassifier(min_df=1).fit(TEXTS, LABELS),
    "three classes": lambda: TextClassifier(min_df=1, C=1.0).fit(TEXTS, TOPICS),
    "several labels": lambda: TextClassifier(min_df=1, C=1.0).fit(TEXTS, SEVERAL),
    "word vectors": lambda: TextClassifier(min_df=1, token_vectors_scale=1.0, characters=None).fit(
        TEXTS, LABELS, unlabeled=TEXTS
    ),
    "batches": _in_batches,
    "counts": lambda: _fitted(TokenVectorizer(), ClsAttentionClassifier(C=1.0)),
    "one step": lambda: _fitted(TokenVectorizer(), paper.OneStepClassifier(max_iter=5)),
    "embeddings": lambda: _fitted(TokenVectorizer(), paper.EmbeddingClassifier(**_SHORT)),
    "network": lambda: _fitted(
        TokenVectorizer(), paper.AttentionNetworkClassifier(**_SHORT, n_layers=2, mlp=True)
    ),
    "union": lambda: _fitted(
        make_union(TfidfVectorizer(), CountVectorizer(analyzer="char_wb")),
        ClsAttentionClassifier(C=1.0),
    ),
    "columns": _columns,
    "hashed": lambda: _fitted(
        HashingVectorizer(n_features=16, alternate_sign=False, norm=None),
        ClsAttentionClassifier(C=1.0),
    ),
    "scaled": lambda: _fitted(
        CountVectorizer(), TfidfTransformer(), TokenImportanceTransformer(), MultinomialNB()
    ),
    "vectors": lambda: WordVectors(n_components=3, min_df=1).fit(TEXTS),
}

_PLAIN = [
    *("null", "true", "false", "0", "1", "2", "-1", "-2", "3", "1000000000", "-1000000000"),
    *("0.5", "-0.5", "1e300", "1e999", "NaN", "-Infinity", "[]", "[0]", "{}", '{"a": 1}'),
    *('""', '"a"', '"text"', '"balanced"', '"drop"', '"passthrough"', '"filename"', '"char"'),
    *('"neg"', '"pos"', r'"(?:\\w+\\w+)+!"', r'"(\\w*)*$"', '"["', '"(a)"', '"auto"', "1" * 5000),
]
_TYPES = ["<f4", "<f2", "<i8", "<i4", "<u1", "?", "<c16", "<U3", ">f8", "<M8[s]"]
_NUMBERS = [0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e9, -1e9, 1e308, 1e-320, 2.5]


def read(content):
    """Return the members of an archive by name, and its schema."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return members, json.loads(members.pop("schema.json"))


def written(members, schema):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
        archive.writestr("schema.json", json.dumps(schema))
    return made.getvalue()


def _nodes(schema):
    """Yield the list or dictionary, and the key in it, of every object of a schema."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        for key, one in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(one, dict | list):
                waiting.append(one)
            if isinstance(one, dict) and "__loader__" in one:
                yield part, key


def _change_schema(schema, rng):
    """Change one object of a schema, in place."""
    every = list(_nodes(schema))
    part, key = every[rng.integers(len(every))]
    other_part, other_key = every[rng.integers(len(every))]
    node, other = part[key], json.loads(json.dumps(other_part[other_key]))
    plain = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    plain |= {"content": str(rng.choice(_PLAIN)), "is_json": True}
    change = rng.integers(8)
    if change <= 2 or (change == 3 and node["__loader__"] == "JsonNode"):
        part[key] = plain
    elif change == 3 and node["__loader__"] == "DictNode" and node["content"]:
        name = list(node["content"])[rng.integers(len(node["content"]))]
        at = list(node["content"]).index(name)
        del node["content"][name]
        if rng.random() < 0.8:
            del node["key_types"]["content"][at]
    elif change == 4 and isinstance(node.get("content"), list) and node["content"]:
        node["content"].pop(rng.integers(len(node["content"])))
    elif change == 5:
        part[key] = other
    elif change == 6:
        node["__class__"], node["__module__"] = other["__class__"], other["__module__"]
    elif change == 7 and "file" in node and "file" in other:
        node["file"] = other["file"]
    else:
        node["__id__"] = int(rng.integers(1, 30))


def _change_array(members, rng):
    """Change one array, in place; return whether there is one."""
    names = [name for name in members if name.endswith(".npy")]
    if not names:
        return False
    name = names[rng.integers(len(names))]
    array, change = np.load(io.BytesIO(members[name])), rng.integers(9)
    if change == 0:
        array = array[: rng.integers(len(array) + 1)] if array.ndim else array.reshape(1)
    elif change == 1:
        array = np.concatenate([array, array[:1]]) if array.ndim else array.reshape(1, 1)
    elif change == 2:
        array = array.reshape(-1, 1) if rng.random() < 0.5 else array.ravel()
    elif change == 3:
        array = array.T if array.ndim > 1 else array[::-1] if array.ndim else array
    elif change == 4:
        with contextlib.suppress(ValueError, TypeError):  # texts are no numbers
            array = array.astype(str(rng.choice(_TYPES)))
    elif change == 5:
        array = np.zeros(rng.integers(0, 4, int(rng.integers(0, 3))), array.dtype)
    elif array.size and array.dtype.kind in "fiub":
        array = array.copy()
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = np.array(rng.choice(_NUMBERS)).astype(
                array.dtype
            )
    saved = io.BytesIO()
    np.save(saved, np.ascontiguousarray(array) if array.ndim else array)
    members[name] = saved.getvalue()
    return True


def without_each_attribute(content):
    """Yield the copies of a .skops file in which an object lacks one of its attributes."""
    members, schema = read(content)
    text = json.dumps(schema)

    def objects(one):
        places = [part[key] for part, key in _nodes(one)] + [one]
        return [node["content"] for node in places if node["__loader__"] == "ObjectNode"]

    for number, attributes in enumerate(objects(schema)):
        for at, name in enumerate(attributes["content"]):
            changed = json.loads(text)
            of_object = objects(changed)[number]
            del of_object["content"][name], of_object["key_types"]["content"][at]
            yield name, written(members, changed)


def mutated(content, seed):
    """Return a copy of a .skops file with one or two changes of its content."""
    rng = np.random.default_rng(seed)
    members, schema = read(content)
    for _ in range(1 + (rng.random() < 0.2)):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if rng.random() < 0.3 and _change_array(members, rng):
                continue
            _change_schema(schema, rng)
    return written(members, schema)


def _questions(model):
    """Return functions of a model that use all that is fitted, by name."""
    if isinstance(model, WordVectors):
        return {
            "of": lambda m: m.of(["film", "?"]),
            "near": lambda m: m.most_similar(m.words_[0], 2),
        }
    is_table = isinstance(model.steps[0][1], ColumnTransformer)
    X = TABLE[:4] if is_table else NEW
    long = TABLE if is_table else TEXTS * 90  # counted by other code
    ask = {
        name: lambda m, name=name: getattr(m, name)(X)
        for name in ("predict", "predict_proba", "decision_function")
    }
    ask |= {"long": lambda m: m.predict(long), "names": lambda m: m[:-1].get_feature_names_out()}
    ask |= {"page": lambda m: explain(m, X).to_html(), "text": lambda m: explain(m, X).to_text()}
    ask |= {"frame": lambda m: explain(m, X).to_frame()}
    ask["change"] = lambda m: explain(m, X[:1]).counterfactual("tokens").to_text()
    for name in ("token_embeddings_", "cls_embedding_", "output_vector_", "coef_"):
        ask[name] = lambda m, name=name: getattr(m[-1], name)
    for name in ("attention", "select_tokens", "cls_attention", "contributions"):
        ask[name] = lambda m, name=name: getattr(m[-1], name)(m[:-1].transform(X))
    ask["occurrences"] = lambda m: m[0].occurrences("a good, unseen film").weights
    if hasattr(getattr(model[-1], "_stream", None), "memory"):
        ask["batch"] = lambda m: _continued(m).predict(X)
    return ask


def _continued(model):
    """Return a model after one more batch, if it remembers those before and can learn from it."""
    if not hasattr(model, "partial_fit"):
        return model
    try:
        return model.partial_fit(TEXTS[:10], LABELS[:10], sorted(set(LABELS)))
    except ValueError as error:
        if "leaves the range of floating-point numbers" not in str(error):
            raise
        return model  # its C is valid, and extreme


def _kinds(model):
    """Return the type of a model, and those of the steps of a pipeline."""
    steps = model.steps if isinstance(model, Pipeline) else []
    return type(model), [type(step) for _, step in steps]


def _predictions(model):
    if isinstance(model, WordVectors):
        return model.words_.tolist(), model.vectors_
    X = TABLE[:4] if isinstance(model.steps[0][1], ColumnTransformer) else NEW
    return model.predict(X).tolist(), model.predict_proba(X)


def verdict(path, questions, expected):
    """Return what comes of loading and using a file."""
    try:
        model = load_model(path)
    except ValueError as error:
        said = str(error).startswith(f"{path} ")
        return "refused" if said else f"refused without the file's name: {error}"
    if _kinds(model) != expected[0]:
        return "another model"  # such as one of its parts, or a pipeline of some of its steps
    for name, ask in questions.items():
        try:
            ask(model)
        except NotFittedError:
            return "another model"
        except Exception as error:
            return f"{name} fails: {type(error).__name__}: {error}"
    labels, numbers = _predictions(model)
    if not np.isfinite(numbers).all():
        return "predictions are not finite"
    same = labels == expected[1][0] and np.array_equal(numbers, expected[1][1])
    return "the same" if same else "another model"


def reference(path):
    """Return a file's content, what its model can be asked, and its types and predictions."""
    questions, model = {}, load_model(path)
    for name, ask in _questions(model).items():
        with contextlib.suppress(AttributeError, ValueError, TypeError):
            ask(load_model(path))
            questions[name] = ask
    return path.read_bytes(), questions, (_kinds(model), _predictions(model))


def outcomes(name, seeds):
    """Return what comes of each change of a kind of model."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.skops"
        save_model(MODELS[name](), path)
        content, questions, expected = reference(path)
        for seed in seeds:
            path.write_bytes(mutated(content, seed))
            # A file that makes loading wait, or crash, ends the process.
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            found.append(verdict(path, questions, expected))
            faulthandler.cancel_dump_traceback_later()
    return found


FINE = "refused", "the same", "another model"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="*", help="kinds of models (default: all)")
    parser.add_argument("--number", type=int, default=1400, help="changes of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.number)
    n_wrong = 0
    for name in arguments.models or MODELS:
        found = outcomes(name, seeds)
        print(name, {answer: found.count(answer) for answer in FINE}, flush=True)
        for seed, answer in zip(seeds, found, strict=True):
            if answer not in FINE:
                n_wrong += 1
                print(f"  seed {seed}: {answer:.300}", flush=True)
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
