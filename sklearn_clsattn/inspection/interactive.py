"""What the script of an interactive page needs: documents and a model as plain values."""

import json
from bisect import bisect
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from .._json_model import model_values
from ..saving import JSON_READER
from .formatting import label_text, token_text, visible
from .pages import TEMPLATES, Script, json_data
from .pieces import Piece, cut
from .spelled_words import spelled_words
from .terms import DecisionTerms
from .view import MAX_CLASSES, SMALLEST_SHOWN

_LARGEST = 500_000  # characters of the documents' data; documents beyond stay as they are


def page_script() -> Script:
    """Return the script of interactive pages."""
    return Script.of(JSON_READER, TEMPLATES / "interactive.js")


def page_data(
    explanation: DecisionTerms, target: Any, top: int, model: Any, max_tokens: int | None
) -> Markup:
    """Return the documents, as far as there is space, and the model, if it is not None."""
    documents: list[dict[str, Any]] = []
    size = 0
    for one in explanation:
        document = _document(one)
        size += len(json.dumps(document))
        if size > _LARGEST:
            break
        documents.append(document)
    values = None if model is None else model_values(model, max_tokens)
    if values is not None:
        values["classes"] = [label_text(label) for label in values["classes"]]
    classes = [label_text(label) for label in explanation.classes.tolist()]
    return json_data(
        {
            "classes": classes,
            "target": None if target is None else label_text(target),
            "top": top,
            "documents": documents,
            "model": values,
        }
    )


def _document(one: DecisionTerms) -> dict[str, Any]:
    """Return one document: numbers for its most probable classes, and the true one, in order."""
    labels = one.targets.tolist()
    predicted, true = one.predicted.tolist()[0], None if one.true is None else one.true.tolist()[0]
    probability = one.probability[0]
    order = np.argsort(-probability, kind="stable")[:MAX_CLASSES].tolist()
    likely = [
        at for place, at in enumerate(order) if place < 2 or probability[at] >= SMALLEST_SHOWN
    ]
    likely += [labels.index(label) for label in (predicted, true) if label in labels]
    chosen = list(dict.fromkeys(likely)) if len(labels) > MAX_CLASSES else sorted(set(likely))
    contributions = one.contributions[:, chosen]
    terms = _Terms(one, contributions)
    shown = labels.index(predicted) if predicted in labels else 0
    texts = []
    for number, text in enumerate(one.texts[0]):
        pieces = [Piece(text.text, (), 0.0, 0.0, ())]
        if text.words is not None:
            pieces = cut(text, one.contributions[:, shown], one.attention, contributions)
        texts.append([text.name, terms.of_pieces(number, pieces)])
    return {
        "number": int(one.index[0]),
        "classes": [label_text(labels[at]) for at in chosen],
        "probabilities": one.probability[0, chosen].tolist(),
        "decisions": one.decision[0, chosen].tolist(),
        "intercepts": one.intercept[chosen].tolist(),
        "more": len(labels) - len(chosen),
        "predicted": label_text(predicted),
        "probability": float(one.predicted_probability[0]),
        "true": None if true is None else label_text(true),
        "right": bool(true == predicted),
        "cls": float(one.cls_attention[0]),
        "others": [int(one.others_count[0]), *one.others_contributions[0, chosen].tolist()],
        "terms": [
            [name, *_rounded(row)] for name, row in zip(terms.names, terms.numbers, strict=True)
        ],
        "texts": texts,
    }


class _Terms:
    """The tokens of a document, character n-grams that have places put together by word."""

    def __init__(self, one: DecisionTerms, contributions: NDArray[np.float64]) -> None:
        of_tokens = np.column_stack([one.counts, one.attention, contributions])
        spelled = spelled_words(one.texts[0], of_tokens)
        self.names = [word.name for word in spelled.sums]
        numbers = list(spelled.sums.values())
        self._of_token = np.full(len(one.tokens), -1)
        # Of each text, where its stretches between white space end but the last, and their terms.
        of_word = {word: at for at, word in enumerate(spelled.sums)}
        self._stretches = [
            (ends, {at: of_word[word] for at, word in words.items()})
            for ends, words in spelled.places
        ]
        for token, name in enumerate(one.tokens):
            if token not in spelled.tokens:
                self._of_token[token] = len(numbers)
                self.names.append(token_text(str(name)))
                numbers.append(of_tokens[token])
        # Count, attention and contributions, (n_terms, 2 + n_classes).
        self.numbers = np.reshape(numbers, (-1, of_tokens.shape[1]))

    def of_pieces(self, number: int, pieces: list[Piece]) -> list[list[Any]]:
        """Return the pieces of a text: text, terms, lines, attention and contributions."""
        ends, terms = self._stretches[number]
        made, at = [], 0
        for piece in pieces:
            own = {int(self._of_token[token]) for token in piece.tokens if token >= 0}
            if -1 in own:
                own.discard(-1)
                here = bisect(ends, at)
                if here in terms:
                    own.add(terms[here])
            lines = [[lane, int(self._of_token[token])] for lane, token in piece.lines]
            amounts = _rounded([piece.attention, *piece.also]) if piece.tokens else []
            made.append([visible(piece.text, keep_lines=True), sorted(own), lines, *amounts])
            at += len(piece.text)
        return made


def _rounded(numbers: Any) -> list[float]:
    return [float(f"{number:.4g}") for number in numbers]
