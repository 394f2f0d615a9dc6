"""docs/api.md is the contract: it names every public name and every parameter of a classifier."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import sklearn_clsattn
from sklearn_clsattn import paper

PAGE = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
PACKAGE = "sklearn_clsattn"
MODULES = sklearn_clsattn._SUBMODULES


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_page(module):
    names = import_module(f"sklearn_clsattn.{module}").__all__
    if module == "theory":  # "the three importances", which importance has
        names = [name for name in names if name not in sklearn_clsattn.importance.__all__]
    prefix = "paper." if module == "paper" else ""
    assert [name for name in names if f"`{prefix}{name}`" not in PAGE] == []


def test_the_reference_has_every_public_name():
    """And no other: each stands below the module that it is imported from.

    There is the page that an estimator's drawing links to.
    """
    page = (Path(__file__).parents[1] / "docs" / "reference.rst").read_text()
    listed = {
        home: re.findall(r"^(?:   |\.\. data:: )(\w+)$", names, re.M)
        for home, names in re.findall(
            r"currentmodule:: (\S+)\n(.*?)(?=\.\. currentmodule|\Z)", page, re.S
        )
    }
    importances = sklearn_clsattn.importance.__all__
    for home in (PACKAGE, *(f"{PACKAGE}.{module}" for module in MODULES)):
        public = [name for name in import_module(home).__all__ if name != "__version__"]
        if home.endswith(".theory"):  # "the three importances", which importance has
            public = [name for name in public if name not in importances]
        assert sorted(listed.pop(home)) == sorted(public)
        for kind in map(import_module(home).__dict__.get, public):
            if hasattr(kind, "_get_doc_link"):
                page = f"{sklearn_clsattn._SITE}/docs/reference/{home}.{kind.__name__}.html"
                assert kind._get_doc_link(kind()) == page
    assert not listed


def test_every_name_of_the_page_is_public():
    rows = re.findall(r"^\| `(\w+)` \| (`.*) \|$", PAGE.split("## Beside them")[1], re.M)
    assert len(rows) == 13
    for module, cell in rows:
        home = import_module(f"sklearn_clsattn.{module}".removesuffix(".sklearn_clsattn"))
        kinds = re.sub(r"\([^)]*\)", "", cell).split("`: `")[0]  # without parameters and methods
        names = re.findall(r"`(\w+)", kinds + "`")
        assert [name for name in names if name not in home.__all__] == []


@pytest.mark.parametrize(
    "name", ["ClsAttentionClassifier", "ClsAttentionClassifierCV", *paper.__all__]
)
def test_the_page_has_a_classifiers_parameters(name):
    kind = getattr(paper, name, None) or getattr(sklearn_clsattn, name)
    row = re.search(rf"^\| `(?:paper\.)?{name}` \| (.*?)(?:;.*)?\|$", PAGE, re.M)
    assert row
    assert re.findall(r"`(\w+)`", row.group(1)) == list(inspect.signature(kind).parameters)
