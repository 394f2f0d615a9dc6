"""Public names have docstrings as numpydoc asks for, and are on the pages of the documentation."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sklearn_clsattn
from sklearn_clsattn import datasets, inspection, paper, text
from sklearn_clsattn._base import BaseAttentionClassifier

MODULES = (
    sklearn_clsattn,
    *(import_module(f"sklearn_clsattn.{name}") for name in sklearn_clsattn._SUBMODULES),
)
FITTED = {  # with parameters for a short fit
    sklearn_clsattn.ClsAttentionClassifier: {},
    sklearn_clsattn.TokenImportanceTransformer: {},
    paper.OneStepClassifier: {"max_iter": 10},
    paper.EmbeddingClassifier: {"max_iter": 2},
    paper.AttentionNetworkClassifier: {"embedding_dim": 8, "max_iter": 2},
}
PUBLIC = list(
    dict.fromkeys(  # some are public in two places
        getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if callable(getattr(module, name))  # no numbers
    )
)
METHODS = [
    getattr(kind, name)
    for kind in (
        BaseAttentionClassifier,
        *(
            getattr(home, name)
            for home in (sklearn_clsattn, inspection, text)
            for name in home.__all__
        ),
    )
    if inspect.isclass(kind)
    for name, method in vars(kind).items()
    if inspect.isroutine(method) and not name.startswith("_")
]


def name_of(thing):
    return getattr(thing, "__qualname__", str(thing))


def section(doc, title):
    """Return the text of a numpydoc section, or ''."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc, re.M | re.S)
    return match.group(1) if match else ""


def documented(doc):
    """Return the parameters and attributes that a docstring names."""
    text = section(doc, "Parameters") + section(doc, "Attributes")
    names = re.findall(r"^(\*{0,2}[A-Za-z_][\w, *]*)(?: :|$)", text, re.M)
    return {name.strip().lstrip("*") for line in names for name in line.split(",")}


def parameters(thing):
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("thing", PUBLIC + METHODS, ids=name_of)
def test_every_parameter_is_documented(thing):
    doc = inspect.getdoc(thing)
    assert doc
    assert doc.split("\n")[0].endswith("."), "the summary is a sentence of one line"
    missing = [name for name in parameters(thing) if name not in documented(doc)]
    assert not missing


@pytest.mark.parametrize("estimator", FITTED)
def test_defaults_in_the_docstring_are_those_of_the_signature(estimator):
    text = section(inspect.getdoc(estimator), "Parameters")
    for name, parameter in inspect.signature(estimator).parameters.items():
        stated = re.search(rf"^{name} :[^\n]*default=(.*)$", text, re.M)
        assert stated, name
        assert eval(stated.group(1)) == parameter.default, name


def is_plain_data_or_exception(thing):
    is_exception = inspect.isclass(thing) and issubclass(thing, Exception)
    return is_exception or hasattr(thing, "__dataclass_fields__")


@pytest.mark.parametrize(
    "thing", [thing for thing in PUBLIC if not is_plain_data_or_exception(thing)], ids=name_of
)
def test_functions_and_estimators_have_an_example(thing):
    assert ">>>" in section(inspect.getdoc(thing), "Examples")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", FITTED)
def test_fitted_attributes_are_documented(kind):
    X, y = datasets.make_token_classification(60, n_classes=3, random_state=0)
    X = pd.DataFrame(X.toarray()).add_prefix("token ")  # for their names
    fitted = {key for key in dir(kind) if isinstance(getattr(kind, key), property)}
    more = {}
    if "token_vectors" in inspect.signature(kind.fit).parameters:  # of several labels as well
        fitted.add("multilabel_")
        more = {"token_vectors": np.eye(X.shape[1], 3)}
    model = kind(**FITTED[kind]).fit(X, y, **more)
    fitted |= set(vars(model))
    fitted = {key for key in fitted if key.endswith("_") and not key.startswith("_")}
    fitted -= {"coef_", "feature_importances_"}  # which say where to look instead
    stated = re.findall(r"^([\w, ]+) :", section(inspect.getdoc(kind), "Attributes"), re.M)
    assert fitted == {key.strip() for line in stated for key in line.split(",")}


# docs/api.md is the contract: it has every public name and every parameter of a classifier

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "api.md").read_text("utf-8")
PACKAGE = "sklearn_clsattn"


@pytest.mark.parametrize("module", sklearn_clsattn._SUBMODULES)
def test_every_public_name_is_on_the_page(module):
    names = import_module(f"{PACKAGE}.{module}").__all__
    assert [name for name in names if not re.search(rf"`(paper\.)?{name}[`(]", PAGE)] == []


def test_every_name_of_the_page_is_public():
    rows = re.findall(r"^\| `(\w+)` \| (`.*) \|$", PAGE.split("## Other modules")[1], re.M)
    assert {module for module, _ in rows} == {PACKAGE, *sklearn_clsattn._SUBMODULES}
    for module, cell in rows:
        home = import_module(PACKAGE if module == PACKAGE else f"{PACKAGE}.{module}")
        text = re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", cell)  # without parameters and methods
        names = re.findall(r"`(\w+)", text.split("`: ")[0] + "`")
        assert [name for name in names if name not in home.__all__] == []


@pytest.mark.parametrize("kind", [kind for kind in FITTED if hasattr(kind, "predict")])
def test_the_page_has_a_classifiers_parameters(kind):
    row = re.search(rf"^\| `(?:paper\.)?{kind.__name__}` \| (.*?)(?:;.*)?\|$", PAGE, re.M)
    assert row
    assert re.findall(r"`(\w+)`", row[1]) == parameters(kind)


def test_the_reference_has_every_public_name_and_no_other():
    """Each is below the module that it is imported from, where an estimator's drawing links to."""
    page = (DOCS / "reference.rst").read_text("utf-8")
    listed = {
        home: re.findall(r"^(?:   |\.\. data:: )(\w+)$", names, re.M)
        for home, names in re.findall(
            r"currentmodule:: (\S+)\n(.*?)(?=\.\. currentmodule|\Z)", page, re.S
        )
    }
    for module in MODULES:
        home = module.__name__
        public = [name for name in module.__all__ if name != "__version__"]
        assert sorted(listed.pop(home)) == sorted(public)
        for kind in map(module.__dict__.get, public):
            if hasattr(kind, "_get_doc_link"):
                address = f"{sklearn_clsattn._SITE}/docs/reference/{home}.{kind.__name__}.html"
                assert kind._get_doc_link(kind()) == address
    assert not listed
