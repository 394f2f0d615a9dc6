"""The import layers: imports run one way, and a fit loads no more than it needs."""

import ast
import graphlib
import importlib.util
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
        *("importance", "datasets", "_validation", "_blocks", "_documents", "_callbacks"),
        *("_machine", "_saved", "_transaction", "_visible", "_writing", "checks"),
    },
    {"_core"},
    {"theory"},
    {
        *("_base", "_classifier", "_classifier_cv", "_transformer", "text"),
        *("_fit_parts", "_chunked_counts", "_gloo", "distributed"),
    },
    {"_json_model", "_onnx", "saving"},
    {"paper", "dask"},
    {"metrics"},
    {"inspection", "comparison"},
    {"cli", "__main__"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def module_name(path):
    parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(name, path):
    """Yield the package's modules that a file imports anywhere but for type checking alone."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
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


def test_there_is_no_import_cycle():
    """An `__init__` counts as what it imports, so a file may not import from its own package."""
    graphlib.TopologicalSorter(GRAPH).prepare()


@pytest.mark.parametrize("name", sorted(set(GRAPH) - {PACKAGE}))
def test_imports_run_downwards(name):
    floor = FLOOR_OF[name.split(".")[1]]
    above = [target for target in GRAPH[name] if FLOOR_OF[target.split(".")[1]] > floor]
    assert not above


FIT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        blocked = ("theory", "paper", "inspection", "comparison", "metrics", "cli")
        if name.startswith(tuple("sklearn_clsattn." + part for part in blocked)):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Blocked())
from sklearn_clsattn import ClsAttentionClassifier
X, y = [[2, 0, 1], [0, 1, 1], [1, 0, 0], [0, 2, 0]], [0, 1, 0, 1]
model = ClsAttentionClassifier().fit(X, y)

ClsAttentionClassifier().partial_fit(X, y)
model.predict_proba(X), model.attention(X), model.contributions(X), model.select_tokens(X)
model.token_embeddings_
"""

PREDICT = """
import pickle, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        model = pickle.load(file)
    model.predict_proba([[1, 0, 1]]), model.contributions([[1, 0, 1]])
assert "torch" not in sys.modules
"""


# What is loaded when: an order of magnitude of time each, without a clock.
LIGHT = """
import sys
before = set(sys.modules)
import sklearn_clsattn
added = {name for name in set(sys.modules) - before if not name.startswith("sklearn_clsattn")}
assert not {name.split(".")[0] for name in added} - {*sys.stdlib_module_names}, added
assert not [name for name in sys.modules if name.startswith("sklearn_clsattn.")]
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import make_text_classifier
assert not {"torch", "matplotlib", "jinja2", "sklearn_clsattn.inspection"} & {*sys.modules}
assert not {"sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection"} & {*sys.modules}
"""


def test_importing_the_package_imports_nothing_else():
    run(LIGHT)


def run(code, *arguments):
    subprocess.run([sys.executable, "-W", "error", "-c", code, *arguments], check=True)


def test_a_default_fit_imports_nothing_above_the_core():
    run(FIT)


def test_a_model_predicts_without_pytorch(tmp_path):
    import pickle

    X, y = [[2, 0, 1], [0, 1, 1], [1, 0, 0], [0, 2, 0]], [0, 1, 0, 1]
    for method in ("fit", "partial_fit"):
        model = getattr(sklearn_clsattn.ClsAttentionClassifier(), method)(X, y)
        (tmp_path / method).write_bytes(pickle.dumps(model))
    run(PREDICT, str(tmp_path / "fit"), str(tmp_path / "partial_fit"))
