"""Imports run one way, and a fit loads what it needs.

Private names and attributes of others are what ruff forbids (SLF001, PLC2701).
"""

import ast
import graphlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import sklearn_clsattn
from sklearn_clsattn.text import TokenVectorizer

ROOT = Path(sklearn_clsattn.__file__).parent
PACKAGE = "sklearn_clsattn"

# From the ground up; a module imports from its own floor and those below.
FLOORS = [
    {"_types", "_sklearn", "_matrices", "_bags", "_targets", "_writing", "_threads"},
    {"_estimators", "_validation", "training"},
    {
        *("_base", "_classifier", "_transformer", "text", "_text_classifier", "portable"),
        "_asreview",
    },
    {"paper"},
    {"inspection", "comparison"},
    {"saving", "dask", "datasets", "cli", "__main__"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def module_name(path):
    parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(name, path):
    """Yield the package's modules that a file imports anywhere: for types, in functions too."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
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


def test_imports_run_downwards():
    for name, targets in GRAPH.items():
        floor = FLOOR_OF[name.split(".")[1]]
        above = [target for target in targets if FLOOR_OF[target.split(".")[1]] > floor]
        assert above == [], name


# What is loaded when: an order of magnitude of time each, without a clock. One process after the
# other would load the same three times.
SCRIPT = """
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

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
assert not {"torch", "matplotlib", "jinja2", "sklearn_clsattn.inspection"} & {*sys.modules}
assert not {"sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection"} & {*sys.modules}

from sklearn_clsattn.text import TokenVectorizer
texts = [" ".join(f"w{i % n}" for i in range(n, n + 400)) for n in range(2, 902)]
counts = TokenVectorizer(ngram_range=(1, 2)).fit_transform(texts)
assert "torch" not in sys.modules
print(counts.sum(), counts.shape[1])

for part in ("paper", "inspection", "comparison", "cli", "dask"):
    vars(sklearn_clsattn).pop(part, None)
    sys.modules[f"sklearn_clsattn.{part}"] = None  # importing it fails
X, y = [[2, 0, 1], [0, 1, 1], [1, 0, 0], [0, 2, 0]], [0, 1, 0, 1]
model = ClsAttentionClassifier().fit(X, y)
ClsAttentionClassifier().partial_fit(X, y, classes=set(y))
model.predict_proba(X), model.attention(X), model.contributions(X), model.select_tokens(X)
model.token_embeddings_
"""


def test_each_use_loads_what_it_needs():
    """The package, arguments of the command line, counts (in threads), and a default fit."""
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    environment = {**os.environ, "OMP_NUM_THREADS": "3"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr
    texts = [" ".join(f"w{i % n}" for i in range(n, n + 400)) for n in range(2, 902)]
    counts = TokenVectorizer(ngram_range=(1, 2)).fit_transform(texts)
    assert printed.stdout.endswith(f"\n{counts.sum()} {counts.shape[1]}\n")


def test_the_map_for_contributors_names_files_that_exist():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text("utf-8")
    chapter = text[text.index("## Where things are") : text.index("A module imports only")]
    files = set(re.findall(r"`([\w/]+\.py)`", chapter))
    assert len(files) > 20
    assert [name for name in sorted(files) if not (ROOT / name).is_file()] == []
