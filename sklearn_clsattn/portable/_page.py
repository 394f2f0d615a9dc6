"""A page that classifies and explains texts in a browser, and the same as a JavaScript module."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from .._base import class_probabilities
from .._writing import label_text, visible, written_whole
from ..text._context_vectorizer import ContextVectorizer
from ._model_file import StoredModel, model_file

LARGEST_CHANGE = 0.001  # of a probability by numbers of 16 bits
_MAX_CLASSES_NAMED = 20

_WEB = files(__package__) / "web"
_SHARED = files("sklearn_clsattn") / "styles"
_STYLE = [_SHARED / "palette.css", _SHARED / "explanation.css", _WEB / "page.css"]
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
# Types are for the checkers of the modules; without them, sentences are left of the comments.
_TYPE = re.compile(r"/\*\* @(?:[^*]|\*(?!/))*\*/[ \n]?|\n *\* @(?:[^*]|\*(?!/))*(?=\n *\*/)")
_MODULE = "// {name}.js\nconst {name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)


def page(
    vectorizer: Any,
    classifier: Any,
    *,
    title: str,
    examples: Iterable[str],
    about: Mapping[str, str],
    texts: Iterable[str],
) -> str:
    """Return the page of a fitted ContextVectorizer and of the classifier of its bags."""
    stored, change = _stored(vectorizer, classifier, list(texts))
    content = model_file(vectorizer, classifier, stored, _stop_words(vectorizer))
    data = {
        "examples": list(examples),
        "about": {**about, **_facts(vectorizer, classifier, change)},
    }
    parts = {
        "TITLE": html.escape(visible(title)),
        "STYLE": "".join(path.read_text("utf-8") for path in _STYLE),
        "SCRIPT": bundle("page"),
        # No element can be closed in the data, whatever texts it has.
        "DATA": json.dumps(data, ensure_ascii=True).replace("<", "\\u003c"),
        "MODEL": base64.b64encode(content).decode(),
    }
    for name in ("STYLE", "SCRIPT"):
        digest = hashlib.sha256(parts[name].encode()).digest()
        parts[f"{name}_HASH"] = base64.b64encode(digest).decode()
    template = (_WEB / "page.html").read_text("utf-8")
    return re.sub(r"%([A-Z_]+)%", lambda match: parts[match[1]], template)


def write_javascript(
    vectorizer: Any, classifier: Any, folder: Path, *, texts: Iterable[str]
) -> None:
    """Write ``scorer.js`` with its types, and the model's file, ``model.clsattn``."""
    stored, _ = _stored(vectorizer, classifier, list(texts))
    content = model_file(vectorizer, classifier, stored, _stop_words(vectorizer))
    script = bundle("scorer") + "\nexport const { load, Scorer } = scorer;\n"
    folder = folder.expanduser()
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("scorer.js", script),
        ("scorer.d.ts", (_WEB / "types.d.ts").read_text("utf-8")),
    ):
        with written_whole(folder / name, text=True) as file:
            file.write(text)
    with written_whole(folder / "model.clsattn", text=False) as file:
        file.write(content)


def bundle(last: str) -> str:
    """Return a module, after those that it imports, as one script.

    In it, each module is a function that returns what it exports.
    """
    scripts: dict[str, str] = {}

    def add(name: str) -> None:
        source = (_WEB / f"{name}.js").read_text("utf-8")
        for _, imported in _IMPORT.findall(source):
            if imported not in scripts:
                add(imported)
        exported = ", ".join(_EXPORT.findall(source))
        body = _IMPORT.sub(r"const \1 = \2;\n", source)
        body = re.sub(r"^export ", "", _TYPE.sub("", body), flags=re.MULTILINE)
        scripts[name] = _MODULE.format(name=name, body=body, exported=exported)

    add(last)
    return "\n".join(scripts.values())


def _stored(
    vectorizer: ContextVectorizer, classifier: Any, texts: list[str]
) -> tuple[StoredModel, float | None]:
    """Return a model in 16 bits if that changes no probability of the texts much, else in 32.

    Also return the largest change by 16 bits; None in 32.
    """
    fitted = classifier._model()
    if texts:
        half = StoredModel.from_fitted(fitted, half=True)
        bags = vectorizer._bags_of(texts)
        before = class_probabilities(classifier, fitted.outputs(bags))
        after = class_probabilities(classifier, half.fitted.outputs(bags))
        change = float(np.abs(after - before).max())
        if change <= LARGEST_CHANGE:
            return half, change
    return StoredModel.from_fitted(fitted, half=False), None


def _stop_words(vectorizer: Any) -> list[str]:
    """Return the stop words as tokens; raise ValueError for patterns and other tokenizers."""
    if vectorizer.tokenizer is not None:
        raise ValueError("A page reads texts with the default tokens: fit without a tokenizer.")
    words = []
    for word in vectorizer._stop_words:
        if not isinstance(word, str):
            raise ValueError(
                f"A page has stop words, but no patterns of them, got {word.pattern!r}: name the "
                "words."
            )
        words.append(word)
    return words


def _facts(vectorizer: Any, classifier: Any, change: float | None) -> dict[str, str]:
    """Return the facts that the page names of every model."""
    labels = list(map(label_text, classifier.classes_.tolist()))
    named = ", ".join(labels[:_MAX_CLASSES_NAMED])
    more = len(labels) - _MAX_CLASSES_NAMED
    n_terms = len(vectorizer.vocabulary_)
    n_characters = len(vectorizer.character_vocabulary_)
    precision = "that of Python: probabilities are the same within 0.000001"
    if change is not None:
        points = math.ceil(10_000 * (change + 1e-6)) / 100  # 1e-6 between the languages
        precision = (
            "rounded: probabilities of the texts that were tried differ by at most "
            f"{points:.2f} percentage points from those of Python"
        )
    return {
        f"{len(labels)} {'labels' if classifier.multilabel_ else 'classes'}": named
        + (f" and {more} more" if more > 0 else ""),
        "It knows": f"{n_terms:,} words and word n-grams, and {n_characters:,} parts of words",
        "Precision": precision,
    }
