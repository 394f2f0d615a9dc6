"""Release files agree: versions, addresses, requirements, what the workflows and make run."""

import re
import tomllib
from pathlib import Path

import pytest

import sklearn_clsattn

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = (ROOT / "conda/recipe/recipe.yaml").read_text("utf-8")


def test_every_file_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert PROJECT["version"] == sklearn_clsattn.__version__
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f'  version: "{PROJECT["version"]}"\n' in RECIPE
    assert f"\n## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_address_of_the_site():
    assert PROJECT["urls"]["Documentation"] == sklearn_clsattn._SITE


def test_the_recipe_requires_what_the_project_requires():
    run = RECIPE.split("  run:\n")[1].split("\n\n")[0]
    required = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    names = {name.replace("torch>", "pytorch>") for name in PROJECT["dependencies"]}
    assert required == {*names, "python>=${{python_min}}"}
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in RECIPE


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda p: p.stem)
def test_actions_are_pinned(path):
    actions = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert [of for of in actions if not re.fullmatch(r"\S+@[0-9a-f]{40}  # v[\d.]+", of)] == []


def test_the_files_that_the_makefile_names_are_there():
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    lists = re.findall(r"addprefix tests/test_,\$\(addsuffix \.py,([^)]*)\)", makefile)
    assert len(lists) == 3
    names = {name for names in lists for name in names.split()}
    assert [name for name in names if not (ROOT / f"tests/test_{name}.py").is_file()] == []
