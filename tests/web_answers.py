"""The JavaScript of pages, asked through Node: a list of questions, and the answers in order."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import sklearn_clsattn
from sklearn_clsattn.portable._page import write_javascript

WEB = Path(sklearn_clsattn.__file__).parent / "portable" / "web"
HERE = Path(__file__).parent / "web"
NODE = shutil.which("node")

TOOLS = HERE / "node_modules" / ".bin"


def needs(is_installed, name):
    """Return the mark of tests that skip without a program, unless REQUIRE_PAGES is set."""
    may_skip = not os.environ.get("REQUIRE_PAGES")
    return pytest.mark.skipif(may_skip and not is_installed, reason=f"{name} is not installed")


needs_node = needs(NODE is not None, "Node")


def save(model, folder, name, texts=()):
    """Save a model's file as `name` in a folder."""
    write_javascript(model.vectorizer_, model.classifier_, folder / name, texts=texts)
    (folder / name / "model.clsattn").rename(folder / f"{name}.clsattn")


def ask(folder, questions):
    """Return the answers to questions about the models in a folder."""
    asked = folder / "questions.json"
    answered = folder / "answers.json"
    # Escaped, as a string of JavaScript has lone surrogates as well.
    asked.write_text(json.dumps({"questions": questions, "web": str(WEB)}))
    command = [NODE, HERE / "answers.mjs", folder, asked, answered]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(answered.read_text())


def as_in_javascript(text):
    """Return a text in which two surrogates that make a character are this character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
