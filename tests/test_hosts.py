"""The sections of docs/hosts.md run with the packages that they are about, where installed.

Those of the environment variable REQUIRED_HOSTS must be installed.
"""

import ast
import doctest
import json
import os
import re
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "hosts.md"
OURS = {"joblib", "numpy", "pandas", "scipy", "sklearn", "sklearn_clsattn", "skops"}
REQUIRED = os.environ.get("REQUIRED_HOSTS", "").split()


def examples():
    """Return the examples of each section, by its title."""
    sections = re.split(r"^## (.+)\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    titles, texts = sections[1::2], sections[2::2]
    parser = doctest.DocTestParser()
    found = {}
    for title, text in zip(titles, texts, strict=True):
        section = parser.get_doctest(text, {"__name__": "__main__"}, title, PAGE.name, 0)
        if section.examples:
            found[title] = section
    return found


def imported(section):
    """Return the names of the packages that examples import."""
    names = set()
    for node in ast.walk(ast.parse("".join(example.source for example in section.examples))):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            names.add(node.module.partition(".")[0])
    return names


EXAMPLES = examples()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of packages that are not ours
@pytest.mark.parametrize("title", EXAMPLES)
def test_section(title):
    for package in sorted(imported(EXAMPLES[title])):
        find = import_module if package in REQUIRED else pytest.importorskip
        find(package)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(EXAMPLES[title]).failed == 0


def test_asreview_finds_a_classifier_that_it_can_save():
    (found,) = entry_points(group="asreview.models.classifiers", name="clsattn")
    (names,) = entry_points(group="asreview.models", name="_metadata", module=found.module)
    classifier = clone(found.load()())
    assert names.load()["classifiers"][classifier.name]["label"] == classifier.label
    assert json.loads(json.dumps(classifier.get_params())) == classifier.get_params()
    X, y = make_token_classification(100, random_state=0)
    plain = ClsAttentionClassifier(token_scaling=None).fit(X, y)
    assert_array_equal(classifier.fit(X, y).predict_proba(X), plain.predict_proba(X))


def test_every_host_is_visited_every_night():
    workflow = (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8")
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"packages: ([\w ]+)", workflow))))
    hosts = set().union(*map(imported, EXAMPLES.values())) - OURS - sys.stdlib_module_names
    assert {"mapie", "hiclass"} <= hosts
    assert hosts - listed <= {"pyarrow", "starlette", "matplotlib"}  # which come with others
