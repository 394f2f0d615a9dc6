"""Imports run one way, private attributes stay private, and a fit loads what it needs."""

import ast
import graphlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_clsattn

ROOT = Path(sklearn_clsattn.__file__).parent
PACKAGE = "sklearn_clsattn"

# From the ground up; a module imports from its own floor and those below.
FLOORS = [
    {
        "importance",
        "_docstrings",
        "_documents",
        "_bags",
        "_targets",
        "_callbacks",
        "_validation",
        "_pickling",
        "_sklearn",
        "_types",
    },
    {"_writing", "_core"},
    {"_training", "_base", "_chunked_counts", "_classifier", "_transformer", "text"},
    {"paper"},
    {"inspection", "comparison"},
    {"saving", "_loaded", "_reproducible", "_unpacked", "dask", "datasets", "cli", "__main__"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def module_name(path):
    parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def imported(name, path):
    """Yield the package's modules that a file imports anywhere: for types, in functions too."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            targets = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            while target and target not in MODULES:
                target = target.rpartition(".")[0]
            if target and target != PACKAGE:
                yield target


GRAPH = {name: set(imported(name, path)) - {name} for name, path in MODULES.items()}
# The package itself imports what is asked of it when it is asked.
GRAPH.pop(PACKAGE)


def test_there_is_no_import_cycle():
    """An `__init__` counts as what it imports, so a file may not import from its own package."""
    graphlib.TopologicalSorter(GRAPH).prepare()


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_imports_run_downwards(name):
    floor = FLOOR_OF[name.split(".")[1]]
    assert [target for target in GRAPH[name] if FLOOR_OF[target.split(".")[1]] > floor] == []


# What other libraries have no public name for.
OTHER_LIBRARIES = {"_shape", "_mmap", "_replace", "_parameter_constraints", "_get_param_names"}
OTHER_LIBRARIES |= {"_transformer_to_input_indices", "_init_callback_context"}


def private_attributes(tree):
    """Yield what a module reads of other objects' private attributes, `name._attribute`.

    What its classes have themselves or from their bases is theirs.
    """
    nodes = list(ast.walk(tree))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    theirs = {"self", "cls", *(ast.unparse(base) for node in classes for base in node.bases)}
    known = OTHER_LIBRARIES | {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            known.add(node.target.id)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in theirs:
            known.add(node.attr)
    for node in nodes:
        private = isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)
        if private and node.attr not in known:
            yield ast.unparse(node)


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_no_module_reads_private_attributes_of_another_ones_objects(name):
    assert set(private_attributes(TREES[name])) == set()


REPOSITORY = ROOT.parent
PRIVATE_DOOR = ROOT / "_sklearn.py"
EVERY_FILE = [
    path
    for folder in ("sklearn_clsattn", "benchmarks", "docs", "tests")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
]


def private_imports(tree):
    """Yield the names that a module imports from scikit-learn and that are private there."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            first, *others = name.split(".")
            if first == "sklearn" and any(re.match("_(?!_)", part) for part in others):
                yield name


def test_private_imports_are_recognised():
    source = """
import sklearn, sklearn.utils._mask as mask
from sklearn import __version__, _config
from sklearn.utils._param_validation import Interval
def late():
    from sklearn.utils.validation import _num_samples, check_array
from ._sklearn import _check_sample_weight
from sklearn_clsattn._base import checked_documents
"""
    found = list(private_imports(ast.parse(source)))
    assert found == [
        "sklearn.utils._mask",
        "sklearn._config",
        "sklearn.utils._param_validation.Interval",
        "sklearn.utils.validation._num_samples",
    ]


def test_one_module_imports_private_names_of_scikit_learn():
    """All of them are used, and each has a comment beside it or above."""
    importing = {path for path in EVERY_FILE if set(private_imports(ast.parse(path.read_text())))}
    assert importing == {PRIVATE_DOOR}
    names = {name.rpartition(".")[2] for name in private_imports(TREES[f"{PACKAGE}._sklearn"])}
    others = [path.read_text() for path in MODULES.values() if path != PRIVATE_DOOR]
    lines = PRIVATE_DOOR.read_text().splitlines()
    for name in names:
        assert any(re.search(rf"import .*\b{name}\b", source) for source in others)
        at = [number for number, line in enumerate(lines) if re.search(rf"\b{name}\b", line)]
        assert any("  # " in lines[i] or "# " in lines[i - 1] for i in at)


FIT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        blocked = ("paper", "inspection", "comparison", "cli", "dask")
        if name.startswith(tuple("sklearn_clsattn." + part for part in blocked)):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Blocked())
from sklearn_clsattn import ClsAttentionClassifier
X, y = [[2, 0, 1], [0, 1, 1], [1, 0, 0], [0, 2, 0]], [0, 1, 0, 1]
model = ClsAttentionClassifier().fit(X, y)

ClsAttentionClassifier().partial_fit(X, y, classes=set(y))
model.predict_proba(X), model.attention(X), model.contributions(X), model.select_tokens(X)
model.token_embeddings_
"""

# What is loaded when: an order of magnitude of time each, without a clock.
LIGHT = """
import sys
before = set(sys.modules)
import sklearn_clsattn
added = {name for name in set(sys.modules) - before if not name.startswith("sklearn_clsattn")}
assert not {name.split(".")[0] for name in added} - {*sys.stdlib_module_names}, added
assert not [name for name in sys.modules if name.startswith("sklearn_clsattn.")]
from sklearn_clsattn.cli import main
try:
    main(["compare", "--help"])
except SystemExit:
    pass
assert not {"torch", "pandas", "sklearn", "rich"} & {*sys.modules}
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import make_text_classifier
assert not {"torch", "matplotlib", "jinja2", "sklearn_clsattn.inspection"} & {*sys.modules}
assert not {"sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection"} & {*sys.modules}
"""


def test_the_package_and_arguments_are_read_without_other_libraries():
    run(LIGHT)


def run(code, *arguments):
    subprocess.run([sys.executable, "-W", "error", "-c", code, *arguments], check=True)


def test_a_default_fit_imports_nothing_above_the_core():
    run(FIT)


def test_the_map_for_contributors_names_files_that_exist():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text("utf-8")
    chapter = text[text.index("## Where things are") : text.index("A module imports only")]
    files = set(re.findall(r"`([\w/]+\.py)`", chapter))
    assert len(files) > 20
    assert [name for name in sorted(files) if not (ROOT / name).is_file()] == []
