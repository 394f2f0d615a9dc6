"""A model as plain values, which `reader.js` reads: how texts are cut, and two numbers a token."""

import re
import sys
import unicodedata
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._base import BaseAttentionClassifier
from ._core.fitted import FittedAttention
from .text._context_vectorizer import CHARACTER_PREFIX, ContextVectorizer
from .text._places import BREAK, NEW_LINE
from .text._tokens import WORDS_AND_PUNCTUATION

_INSTEAD = "Save the model with save_model, or classify with the Python package."

# Python's classes of characters, as JavaScript's `u` flag has them.
_CLASSES = {
    "w": r"\p{L}\p{N}_",
    "s": r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    "d": r"\p{Nd}",
}
_WORD, _OTHER = f"[{_CLASSES['w']}]", f"[^{_CLASSES['w']}]"
_EDGES = {
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}
_PIECES = re.compile(r"\\(?s:.)|\(\?(?:<?[=!]|:)|\{(?:\d+(?:,\d*)?|,\d*)\}\+?|[*+?]\+|(?s:.)")


def model_values(model: Any, max_tokens: int | None) -> dict[str, Any]:
    """Return a fitted pipeline from texts as values for JSON, with its `max_tokens` strongest."""
    vectorizer, classifier = _steps(model)
    check_is_fitted(vectorizer, "vocabulary_")
    check_is_fitted(classifier)
    fitted = classifier._model()
    if not isinstance(fitted, FittedAttention):
        raise ValueError(
            "a model in JSON has one layer of attention and no MLP, got "
            f"{type(classifier).__name__}. {_INSTEAD}"
        )
    if isinstance(vectorizer, ContextVectorizer):
        text, tokens = _context(vectorizer)
    else:
        text, tokens = _counts(vectorizer)
    if len(tokens) != len(fitted.scores):
        raise ValueError(
            f"the vectorizer has {len(tokens)} tokens and the classifier {len(fitted.scores)}: "
            "they were not fitted together"
        )
    kept = _strongest(fitted, max_tokens)
    labels = classifier.classes_.tolist()
    text["n_words"] = int((kept < text["n_words"]).sum())
    return {
        "format": "sklearn-clsattn",
        "version": 1,
        "classes": labels if all(map(_is_plain, labels)) else list(map(str, labels)),
        "n_tokens": len(tokens),
        "text": text,
        "entry_scale": fitted.entry_scale,
        "cls_weight": float(fitted.cls_weight),
        "cls_score": float(fitted.cls_score) if fitted.cls_weight else 0.0,
        "intercept": fitted.intercept.tolist(),
        "tokens": [tokens[at] for at in kept.tolist()],
        "scores": fitted.scores[kept].tolist(),
        "values": fitted.values[kept].T.tolist(),
    }


def _steps(model: Any) -> tuple[Any, BaseAttentionClassifier]:
    """Return vectorizer and classifier of a Pipeline, or of a search over one."""
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, Pipeline):
        raise TypeError(
            f"expected a fitted Pipeline of a vectorizer and a classifier of this package, got "
            f"{type(model).__name__}"
        )
    steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    if (
        len(steps) != 2
        or not isinstance(steps[0], CountVectorizer | ContextVectorizer)
        or not isinstance(steps[1], BaseAttentionClassifier)
    ):
        raise ValueError(
            "a model in JSON is a CountVectorizer, TokenVectorizer or ContextVectorizer and a "
            "classifier of this package, with nothing between them, got "
            f"{', '.join(type(step).__name__ for step in steps)}. {_INSTEAD}"
        )
    return steps[0], steps[1]


def _counts(vectorizer: CountVectorizer) -> tuple[dict[str, Any], list[str]]:
    """Return how a CountVectorizer reads texts, and its tokens."""
    own = {
        "preprocessor": vectorizer.preprocessor is not None,
        "tokenizer": vectorizer.tokenizer is not None,
        f"analyzer={vectorizer.analyzer!r}": vectorizer.analyzer not in ("word", "char_wb"),
        "strip_accents": callable(vectorizer.strip_accents),
        "TF-IDF": isinstance(vectorizer, TfidfVectorizer),
        f"input={vectorizer.input!r}": vectorizer.input != "content",
    }
    for name, found in own.items():
        if found:
            raise ValueError(f"JSON cannot carry over a vectorizer's {name}. {_INSTEAD}")
    drop = None
    if vectorizer.strip_accents == "ascii":
        drop = r"[^\x00-\x7f]"
    elif vectorizer.strip_accents == "unicode":
        drop = _combining()
    words = vectorizer.analyzer == "word"
    vocabulary = vectorizer.vocabulary_
    text = _reading(
        vectorizer,
        len(vocabulary),
        drop=drop,
        analyzer=vectorizer.analyzer,
        pattern=javascript_pattern(vectorizer.token_pattern) if words else "",
        stop_words=sorted(vectorizer.get_stop_words() or ()) if words else [],
        binary=bool(vectorizer.binary),
    )
    return text, sorted(vocabulary, key=vocabulary.__getitem__)


def _context(vectorizer: ContextVectorizer) -> tuple[dict[str, Any], list[str]]:
    """Return how a ContextVectorizer reads texts, and its tokens, words first."""
    words, characters = vectorizer.vocabulary_, vectorizer.character_vocabulary_
    previous = vectorizer.previous_words_.tolist(), vectorizer.previous_word_scores_.tolist()
    # Tokens of this pattern have all signs in them: no break but a new line is between two.
    between = NEW_LINE if vectorizer.token_pattern == WORDS_AND_PUNCTUATION else BREAK
    context = {
        "start": vectorizer.start_scores_.tolist(),
        "end": vectorizer.end_scores_.tolist(),
        "previous": [list(pair) for pair in zip(*previous, strict=True)],
        "between": between.pattern,
        "characters": list(vectorizer.characters) if vectorizer.characters else None,
        "character_weight": float(vectorizer.character_weight),
    }
    pattern = javascript_pattern(vectorizer.token_pattern)
    text = _reading(
        vectorizer, len(words), pattern=pattern, prefix=CHARACTER_PREFIX, context=context
    )
    return text, [one for of in (words, characters) for one in sorted(of, key=of.__getitem__)]


def _reading(vectorizer: Any, n_words: int, **own: Any) -> dict[str, Any]:
    """Return how a vectorizer reads texts, with what is its kind's own."""
    return {
        "lowercase": bool(vectorizer.lowercase),
        "drop": None,
        "analyzer": "word",
        "pattern": "",
        "not_space": f"[^{_CLASSES['s']}]+",
        "stop_words": [],
        "ngram_range": list(vectorizer.ngram_range),
        "binary": False,
        "prefix": "",
        "n_words": n_words,
        "context": None,
        **own,
    }


def javascript_pattern(pattern: Any) -> str:
    """Return a token pattern as JavaScript reads it with the flags "gu", or raise ValueError."""

    def refused(what: str) -> ValueError:
        return ValueError(f"JSON cannot carry over {what} of token_pattern={pattern!r}. {_INSTEAD}")

    if not isinstance(pattern, str):
        raise refused("the type")
    compiled = re.compile(pattern)
    if compiled.groups > 1 or compiled.flags != re.UNICODE or compiled.search(""):
        raise refused("groups, flags or empty matches")
    parts: list[str] = []
    inside = False
    for match in _PIECES.finditer(pattern.removeprefix("(?u)")):
        piece, last = match.group(), parts[-1] if parts else ""
        name = piece[1:]
        if piece[0] == "\\":
            if name in _CLASSES:
                piece = _CLASSES[name] if inside else f"[{_CLASSES[name]}]"
            elif name.lower() in _CLASSES and not inside:
                piece = f"[^{_CLASSES[name.lower()]}]"
            elif name in _EDGES and not inside:
                piece = _EDGES[name]
            elif name.isalnum() and name not in "nrtfv":
                raise refused(piece)
            elif name in "nrtfv^$\\.*+?()[]{}|/" or (name == "-" and inside):
                pass
            else:
                piece = name
        elif inside:
            if piece == "]" and last not in ("[", "[^"):
                inside = False
            elif piece in ("]", "["):
                piece = "\\" + piece
            elif piece == "^" and last == "[":
                parts.pop()
                piece = "[^"
        elif piece == "[":
            inside = True
        elif piece == ".":
            piece = r"[^\n]"
        elif piece in ("]", "{", "}"):
            piece = "\\" + piece
        elif piece == "$" or (piece == "?" and last == "(") or piece[1:].endswith("+"):
            raise refused(piece)
        elif piece.startswith("{,"):  # not a number of times in JavaScript
            piece = "{0" + piece[1:]
        parts.append(piece)
    return "".join(parts)


def _strongest(fitted: FittedAttention, max_tokens: int | None) -> NDArray[np.intp]:
    """Return the columns of the tokens to keep, in order."""
    n = len(fitted.scores)
    if max_tokens is None or max_tokens >= n:
        return np.arange(n)
    with np.errstate(divide="ignore"):
        strength = fitted.scores + np.log(np.abs(fitted.values).max(axis=1))
    return np.sort(np.argsort(-strength, kind="stable")[:max_tokens])


def _combining() -> str:
    """Return JavaScript's class of the characters that ``strip_accents="unicode"`` drops."""
    dropped = [code for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]
    edges = np.flatnonzero(np.diff(dropped, prepend=-2, append=sys.maxunicode + 3) > 1)
    runs = [(dropped[a], dropped[b - 1]) for a, b in pairwise(edges.tolist())]
    return "[" + "".join(rf"\u{{{first:x}}}-\u{{{last:x}}}" for first, last in runs) + "]"


def _is_plain(label: Any) -> bool:
    """Return whether JavaScript reads a label as what it is: it rounds larger integers."""
    if isinstance(label, int):
        return abs(label) < 2**53
    return isinstance(label, str) or (isinstance(label, float) and label == label)
