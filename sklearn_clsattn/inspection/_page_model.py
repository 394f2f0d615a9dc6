"""What an interactive page needs: the documents' texts, and a model as values for `reader.js`."""

import re
from numbers import Integral
from typing import Any

import numpy as np
from markupsafe import Markup
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from .._base import BaseAttentionClassifier, fitted_attention
from .._core.fitted import FittedAttention
from ..text._context_vectorizer import CHARACTER_PREFIX, ContextVectorizer
from ..text._token_positions import BREAK, NEW_LINE
from ..text._tokens import WORDS_AND_PUNCTUATION
from .formatting import label_text
from .pages import json_data
from .terms import DecisionTerms

_LARGEST = 500_000  # characters of the documents' texts; documents beyond cannot be edited

# Python's classes of characters, as JavaScript's `u` flag has them.
_CLASSES = {
    "w": r"\p{L}\p{N}_",
    "s": r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    "d": r"\p{Nd}",
}
_WORD = f"[{_CLASSES['w']}]"
_EDGE = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"  # \b
# The parts of patterns that both languages read alike once classes are written out.
_PART = r"\[\^?(?:[^][\\]|\\[wsd])+\]|\\[bwsdWSD]|\(\?:|[+*?](?![+*?])|[()|]|[\w'’#@ -]"


def page_data(explanation: DecisionTerms, model: Any, top: int, max_tokens: int | None) -> Markup:
    """Return the model, if any, and as many texts of documents with one as there is space for."""
    texts: list[str | None] = []
    left = _LARGEST
    for of_document in explanation.texts:
        left -= sum(len(text.text) for text in of_document)
        texts.append(of_document[0].text if len(of_document) == 1 and left >= 0 else None)
    values = None if model is None else model_values(model, max_tokens)
    if values is not None:
        values["classes"] = [label_text(label) for label in values["classes"]]
    return json_data({"top": top, "texts": texts, "model": values})


def model_values(model: Any, max_tokens: int | None) -> dict[str, Any]:
    """Return a fitted pipeline from texts as values for JSON, with its `max_tokens` strongest."""
    if max_tokens is not None:
        check_scalar(max_tokens, "max_tokens", Integral, min_val=1)
    vectorizer, classifier = _steps(model)
    check_is_fitted(vectorizer, "vocabulary_")
    fitted = fitted_attention(classifier)
    if type(fitted) is not FittedAttention:
        raise _refused(f"the attention of {type(classifier).__name__}")
    reading = _reading(vectorizer)
    # Words first, then character n-grams, each without the prefix of their names.
    vocabularies = [vectorizer.vocabulary_, getattr(vectorizer, "character_vocabulary_", {})]
    tokens = [token for known in vocabularies for token in sorted(known, key=known.__getitem__)]
    listed = np.arange(len(tokens))
    if max_tokens is not None and max_tokens < len(tokens):
        with np.errstate(divide="ignore"):
            strength = fitted.scores + np.log(np.abs(fitted.values).max(axis=1))
        listed = np.sort(np.argsort(-strength, kind="stable")[:max_tokens])
    return {
        "classes": classifier.classes_.tolist(),
        "n_tokens": len(tokens),
        "n_words": int((listed < len(vectorizer.vocabulary_)).sum()),
        "text": reading,
        "entry_scale": fitted.entry_scale,
        "cls_weight": float(fitted.cls_weight),
        "cls_score": float(fitted.cls_score) if fitted.cls_weight else 0.0,
        "intercept": fitted.intercept.tolist(),
        "tokens": [tokens[at] for at in listed.tolist()],
        "scores": fitted.scores[listed].tolist(),
        "values": fitted.values[listed].T.tolist(),
    }


def _steps(model: Any) -> list[Any]:
    """Return vectorizer and classifier of a Pipeline, or of a search over one."""
    model = getattr(model, "best_estimator_", model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    kinds = (CountVectorizer | ContextVectorizer, BaseAttentionClassifier)
    if len(steps) != 2 or not all(map(isinstance, steps, kinds)):
        raise _refused(
            f"anything but a Pipeline of a CountVectorizer, TokenVectorizer or ContextVectorizer "
            f"and a classifier of this package, such as {type(steps[0]).__name__}"
        )
    return steps


def _reading(vectorizer: CountVectorizer | ContextVectorizer) -> dict[str, Any]:
    """Return how a vectorizer reads texts, or raise ValueError where JavaScript cannot."""
    by_word, stop_words, binary, context = True, (), False, None
    if isinstance(vectorizer, ContextVectorizer):
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
            "prefix": CHARACTER_PREFIX,
        }
    else:
        by_word, binary = vectorizer.analyzer == "word", bool(vectorizer.binary)
        for name, is_given in {
            "preprocessor": vectorizer.preprocessor is not None,
            "tokenizer": vectorizer.tokenizer is not None,
            f"analyzer={vectorizer.analyzer!r}": not by_word and vectorizer.analyzer != "char_wb",
            "strip_accents": vectorizer.strip_accents is not None,
            "TF-IDF": isinstance(vectorizer, TfidfVectorizer),
            f"input={vectorizer.input!r}": vectorizer.input != "content",
        }.items():
            if is_given:
                raise _refused(f"a vectorizer's {name}")
        stop_words = vectorizer.get_stop_words() or ()
    return {
        "lowercase": bool(vectorizer.lowercase),
        "ngram_range": list(vectorizer.ngram_range),
        "not_space": f"[^{_CLASSES['s']}]+",
        "by_word": by_word,
        "pattern": javascript_pattern(vectorizer.token_pattern) if by_word else "",
        "stop_words": sorted(stop_words) if by_word else [],
        "binary": binary,
        "context": context,
    }


def javascript_pattern(pattern: Any) -> str:
    """Return a token pattern as JavaScript reads it with the flags "gu", or raise ValueError."""
    compiled = re.compile(pattern)
    plain = str(pattern).removeprefix("(?u)")
    if compiled.flags != re.UNICODE or compiled.groups > 1 or compiled.search(""):
        raise _refused(f"the flags, groups or empty matches of token_pattern={pattern!r}")
    if not re.fullmatch(f"(?:{_PART})+", plain):
        raise _refused(f"what is in token_pattern={pattern!r}")

    def carried(part: re.Match[str]) -> str:
        if part[0] == r"\b":
            return _EDGE
        if part[0].startswith("["):
            return re.sub(r"\\(\w)", lambda escape: _CLASSES[escape[1]], part[0])
        not_in = "^" if part[0][1].isupper() else ""
        return f"[{not_in}{_CLASSES[part[0][1].lower()]}]"

    return re.sub(r"\[[^]]*\]|\\\w", carried, plain)


def _refused(what: str) -> ValueError:
    return ValueError(f"a page cannot carry over {what}: pass interactive=True without a model")
