"""docs/api.md is the contract: it names every public name and every parameter of a classifier."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import sklearn_clsattn
from sklearn_clsattn import paper

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "api.md").read_text("utf-8")
PACKAGE = "sklearn_clsattn"
MODULES = sklearn_clsattn._SUBMODULES
CLASSIFIERS = {"ClsAttentionClassifier": sklearn_clsattn.ClsAttentionClassifier} | {
    name: kind
    for name, kind in vars(paper).items()
    if name in paper.__all__ and name.endswith("Classifier")
}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_page(module):
    names = import_module(f"{PACKAGE}.{module}").__all__
    assert [name for name in names if not re.search(rf"`(paper\.)?{name}[`(]", PAGE)] == []


def test_every_name_of_the_page_is_public():
    rows = re.findall(r"^\| `(\w+)` \| (`.*) \|$", PAGE.split("## Other modules")[1], re.M)
    assert {module for module, _ in rows} == {PACKAGE, *MODULES}
    for module, cell in rows:
        home = import_module(PACKAGE if module == PACKAGE else f"{PACKAGE}.{module}")
        text = re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", cell)  # without parameters and methods
        names = re.findall(r"`(\w+)", text.split("`: ")[0] + "`")
        assert [name for name in names if name not in home.__all__] == []


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_page_has_a_classifiers_parameters(name):
    row = re.search(rf"^\| `(?:paper\.)?{name}` \| (.*?)(?:;.*)?\|$", PAGE, re.M)
    assert row
    assert re.findall(r"`(\w+)`", row[1]) == list(inspect.signature(CLASSIFIERS[name]).parameters)


def test_the_reference_has_every_public_name_and_no_other():
    """Each is below the module that it is imported from, where an estimator's drawing links to."""
    page = (DOCS / "reference.rst").read_text("utf-8")
    listed = {
        home: re.findall(r"^(?:   |\.\. data:: )(\w+)$", names, re.M)
        for home, names in re.findall(
            r"currentmodule:: (\S+)\n(.*?)(?=\.\. currentmodule|\Z)", page, re.S
        )
    }
    for home in (PACKAGE, *(f"{PACKAGE}.{module}" for module in MODULES)):
        module = import_module(home)
        public = [name for name in module.__all__ if name != "__version__"]
        assert sorted(listed.pop(home)) == sorted(public)
        for kind in map(module.__dict__.get, public):
            if hasattr(kind, "_get_doc_link"):
                address = f"{sklearn_clsattn._SITE}/docs/reference/{home}.{kind.__name__}.html"
                assert kind._get_doc_link(kind()) == address
    assert not listed
