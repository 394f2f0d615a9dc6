"""Public names are on the pages of the documentation, which say of them what is so.

What a tool checks is not here: docstrings by ruff and by numpydoc, while the site is built.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import generated_texts

import sklearn_clsattn
from sklearn_clsattn import TextClassifier, datasets, paper, text

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "api.md").read_text("utf-8")
PACKAGE = "sklearn_clsattn"
MODULES = [sklearn_clsattn]
MODULES += [import_module(f"{PACKAGE}.{name}") for name in sklearn_clsattn._SUBMODULES]
ESTIMATORS = {  # with parameters for a short fit
    sklearn_clsattn.ClsAttentionClassifier: {},
    sklearn_clsattn.TokenImportanceTransformer: {},
    paper.OneStepClassifier: {"max_iter": 10},
    paper.EmbeddingClassifier: {"max_iter": 2},
    paper.AttentionNetworkClassifier: {"embedding_dim": 8, "max_iter": 2},
}


def section(kind, title):
    """Return the text of a section of a docstring."""
    doc = inspect.getdoc(kind)
    return re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.M | re.S)[1]


@pytest.mark.parametrize("kind", [TextClassifier, *ESTIMATORS])
def test_defaults_in_the_docstring_are_those_of_the_signature(kind):
    text = section(kind, "Parameters")
    for name, parameter in inspect.signature(kind).parameters.items():
        stated = re.search(rf"^{name} :[^\n]*default=(.*)$", text, re.M)
        assert stated, name
        assert eval(stated[1]) == parameter.default, name


def fitted_attributes(model):
    """Return the names of the fitted attributes of a model."""
    kind = type(model)
    names = {*vars(model), *(key for key in dir(kind) if isinstance(getattr(kind, key), property))}
    return {name for name in names if name.endswith("_") and not name.startswith("_")}


def documented_attributes(kind):
    """Return the names of the fitted attributes in a docstring."""
    stated = re.findall(r"^([\w, ]+) :", section(kind, "Attributes"), re.M)
    return {key.strip() for line in stated for key in line.split(",")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fitted_attributes_are_documented(kind):
    X, y = datasets.make_token_classification(60, n_classes=3, random_state=0)
    X = pd.DataFrame(X.toarray()).add_prefix("token ")  # for their names
    expected, more = documented_attributes(kind), {}
    if kind is sklearn_clsattn.ClsAttentionClassifier:
        expected -= {"multilabel_"}
        more = {"token_vectors": np.eye(X.shape[1], 3)}
    assert fitted_attributes(kind(**ESTIMATORS[kind]).fit(X, y, **more)) == expected


def test_fitted_attributes_of_a_text_classifier_are_documented():
    texts, y = generated_texts(60, random_state=0)
    model = TextClassifier(C=1.0).fit(texts, y, unlabeled=texts, teacher=np.full((60, 2), 0.5))
    assert fitted_attributes(model) == documented_attributes(TextClassifier)


def test_fitted_attributes_of_keywords_are_documented():
    model = text.Keywords({0: ["goal", "match"], 1: ["vote", "law"]})
    model.fit(["goal team", "match team", "vote bill", "law bill"])
    assert fitted_attributes(model) == documented_attributes(text.Keywords)


def test_functions_and_estimators_have_an_example():
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            is_error = inspect.isclass(thing) and issubclass(thing, Exception)
            if callable(thing) and not is_error and not hasattr(thing, "__dataclass_fields__"):
                assert ">>>" in section(thing, "Examples"), name


# docs/api.md is the contract, and docs/reference.rst lists what the site describes.


def test_the_contract_has_every_public_name_and_no_other():
    rows = re.findall(r"^\| `?([\w ]+?)`? \| (`.*) \|$", PAGE, re.M)
    assert {module for module, _ in rows} == {"top level", *sklearn_clsattn._SUBMODULES}
    for module, cell in rows:
        home = import_module(PACKAGE if module == "top level" else f"{PACKAGE}.{module}")
        names = [name for name in home.__all__ if name != "__version__"]
        assert sorted(re.findall(r"`(\w+)`", cell)) == sorted(names)


def test_the_reference_has_every_public_name_and_no_other():
    """Each is below the module that it is imported from, where an estimator's drawing links to."""
    page = (DOCS / "reference.rst").read_text("utf-8")
    chapters = re.findall(r"currentmodule:: (\S+)\n(.*?)(?=\.\. currentmodule|\Z)", page, re.S)
    listed = {}
    for home, names in chapters:
        listed[home] = re.findall(r"^(?:   |\.\. data:: )(\w+)$", names, re.M)
    for module in MODULES:
        home = module.__name__
        public = [name for name in module.__all__ if name != "__version__"]
        assert sorted(listed.pop(home)) == sorted(public)
        for kind in (getattr(module, name) for name in public):
            if hasattr(kind, "_get_doc_link"):
                address = f"{sklearn_clsattn._SITE}/docs/reference/{home}.{kind.__name__}.html"
                assert kind._get_doc_link(kind.__new__(kind)) == address
    assert not listed
