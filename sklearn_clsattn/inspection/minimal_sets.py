"""The fewest words or counts that change predictions or keep them, as data, text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.utils import check_scalar

from .._types import Array, Numbers
from .count_search import (
    BagDecisions,
    CountSearchResult,
    fewest_to_change,
    fewest_to_guarantee,
    fewest_to_reach,
)
from .edited_text import EditableDocument, Span, leads
from .formatting import MINUS, label_text, percent, shortened, signed, token_text, visible
from .pages import framed, render
from .progress import tracked
from .terms import DecisionTerms
from .word_search import Choice, WordSearchResult, fewest_words

_SHOWN_IN_NOTEBOOK = 10  # documents at most
_MAX_NAMED = 3  # words in a sentence
_TITLES = {
    ("words", False): "The fewest words whose removal changes the prediction",
    ("words", True): "The fewest words that alone keep the prediction",
    ("tokens", False): "The fewest counts that change the prediction when they are 0",
    ("tokens", True): "The fewest counts that keep the prediction if the others are reduced",
}


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSet:
    """The fewest words or tokens found that change a document's prediction, or keep it.

    Attributes
    ----------
    document : int
        The position of the document among those that were explained.
    unit : {"words", "tokens"}
        Words of the text, or tokens of the bag.
    is_kept : bool
        Whether they keep the prediction, rather than change it by their removal.
    found : bool
        Whether a set was found.
    tokens : tuple of str
        The words, as they stand in the text, or the tokens; the most effective first.
    entries : ndarray of shape (n_chosen,)
        The tokens' numbers among those of the document, or the words' among its distinct words.
    at_least : int or None
        No smaller set will do: proved, for words by trying them all. None if no set will do.
    before, after : label
        The predicted class of the document, and of the changed document.
    probability : float
        The predicted probability of `after` for the changed document; NaN for guarantees.
    margins : ndarray of shape (n_chosen + 1,)
        The lead of `before` over the best other class, in log-odds, with none of the tokens
        chosen, the first of them, the first two, and so on. For guarantees, the lowest possible.
    probabilities : ndarray of shape (n_chosen + 1,)
        The same for the probability of `before`; NaN for guarantees.
    edited_text : str, dict or None
        For words, the text without the words, or reduced to them: what was predicted. If the
        document has texts in several columns, a dictionary of them.
    edited_document : object or None
        The edited document as input of the model: one text in a list, or in a series or array if
        the texts came in one, or a table of one row.
    """

    document: int
    unit: str
    is_kept: bool
    found: bool
    tokens: tuple[str, ...]
    entries: Numbers
    at_least: int | None
    before: Any
    after: Any
    probability: float
    margins: Array
    probabilities: Array
    edited_text: Any = None
    edited_document: Any = None
    # The texts of the document: their names, themselves, and the spans of the chosen.
    marked_texts: tuple[tuple[Any, str, list[Span]], ...] = field(default=())

    def __repr__(self) -> str:
        return f"<MinimalSet of document {self.document}: {self.tokens}>"

    @property
    def size(self) -> int | None:
        """The number of tokens or words; None if no set was found."""
        return len(self.tokens) if self.found else None

    @property
    def is_minimal(self) -> bool:
        """Whether it is proved that no smaller set will do, or none at all."""
        return self.at_least == self.size

    @property
    def margin(self) -> float:
        """The lead in log-odds that results: of the new class, or of the one that is kept."""
        return float(self.margins[-1] if self.is_kept else -self.margins[-1])


def minimal_sets(
    explanation: DecisionTerms,
    unit: Literal["tokens", "words"],
    to: Any,
    time_limit: float,
    is_kept: bool,
) -> MinimalSets:
    """Return the minimal sets of all documents; the parameters are those of `Explanation`."""
    labels = explanation.classes.tolist()
    if unit not in ("tokens", "words"):
        raise ValueError(f"unit must be 'tokens' or 'words', got {unit!r}")
    if to is not None and (np.ndim(to) != 0 or to not in labels):
        raise ValueError(f"to must be None or one of the classes {labels}, got {to!r}")
    check_scalar(time_limit, "time_limit", Real, min_val=0, include_boundaries="neither")
    target = None if to is None else labels.index(to)
    if unit == "words":
        _check_texts(explanation)
    else:
        _check_counts(explanation, "a sufficient set" if is_kept else "a counterfactual")
    sets = []
    for one in tracked(explanation, len(explanation), "searching"):
        if unit == "words":
            sets.append(_words(one, target, time_limit, is_kept))
        else:
            sets.append(_counts(one, target, time_limit, is_kept))
    return MinimalSets(explanation, unit, is_kept, tuple(sets))


def can_edit(one: DecisionTerms) -> bool:
    """Return whether words can be deleted from the texts of a document."""
    return one.text_model is not None and one.documents[0] is not None


def can_set_counts(explanation: DecisionTerms) -> bool:
    """Return whether the decisions of all classes are known as sums over one layer's tokens."""
    n_classes = len(explanation.classes)
    is_compared = n_classes == 2 or len(explanation.targets) == n_classes
    return explanation.model is not None and is_compared


def _check_texts(explanation: DecisionTerms) -> None:
    """Raise ValueError unless all documents have texts that can be edited."""
    for one in explanation:
        if not can_edit(one):
            raise ValueError(
                f"words can be removed from texts only, and document {int(one.index[0])} was not "
                "explained as a text: pass texts, or rows of a pandas data frame with columns of "
                "texts, and the whole Pipeline to explain, with places=True. A text that a step "
                "makes of several columns cannot be edited. For counts, pass unit='tokens'"
            )


def _check_counts(explanation: DecisionTerms, question: str) -> None:
    """Raise ValueError unless the decisions of all classes are sums over one layer's tokens."""
    if explanation.model is None:
        raise ValueError(
            f"{question} of tokens needs a model with one layer of attention; this model has two. "
            "For texts, pass unit='words'"
        )
    if not can_set_counts(explanation):
        raise ValueError(
            f"{question} of tokens compares classes, but only {explanation.targets.tolist()[0]!r} "
            "was explained: call explain without target"
        )


def _words(one: DecisionTerms, to: int | None, time_limit: float, is_kept: bool) -> MinimalSet:
    """Return the fewest words of a document; `to` is the number of the class to reach."""
    document = one.documents[0]
    model = one.text_model
    assert document is not None
    assert model is not None
    labels = one.classes.tolist()
    present = labels.index(one.predicted.tolist()[0])
    # 1) The words, and the number of which all smaller sets were tried.
    result = WordSearchResult((), -1)
    if to is None or to != present:
        result = _search_words(one, document, present, to, time_limit, is_kept)
    words = result.words or ()
    at_least: int | None = result.n_tried + 1
    if result.words is not None:
        at_least = min(result.n_tried + 1, len(words))
    elif result.n_tried == len(document.words):
        at_least = None  # all sets were tried
    # 2) The predictions with none of the words chosen, the first, the first two, ...
    edit = document.only if is_kept else document.without
    steps = [edit(words[:n]) for n in range(len(words) + 1)]
    if result.words is None:
        steps = [document.texts]
    decisions = model.decisions(document.as_input(steps))
    probabilities = model.probabilities(decisions)
    after = int(decisions[-1].argmax())  # of classes that tie, the first is predicted
    # 3) The words' names and places.
    columns = document.columns or (None,)
    names = []
    spans: list[list[Span]] = [[] for _ in document.texts]
    for number in words:
        word = document.words[number]
        names.append(f"{columns[word.text]}: {word.name}" if len(columns) > 1 else word.name)
        spans[word.text] += word.spans
    return MinimalSet(
        document=int(one.index[0]),
        unit="words",
        is_kept=is_kept,
        found=result.words is not None,
        tokens=tuple(names),
        entries=np.array(words, dtype=np.intp),
        at_least=at_least,
        before=labels[present],
        after=labels[after],
        probability=float(probabilities[-1, after]),
        margins=leads(decisions, present),
        probabilities=probabilities[:, present],
        edited_text=_by_column(columns, steps[-1]),
        edited_document=document.as_input(steps[-1:]),
        marked_texts=tuple(zip(columns, document.texts, spans, strict=True)),
    )


def _search_words(
    one: DecisionTerms,
    document: EditableDocument,
    present: int,
    to: int | None,
    time_limit: float,
    is_kept: bool,
) -> WordSearchResult:
    """Return the fewest words that keep the present class, or change it, to class `to` if any."""
    model = one.text_model
    assert model is not None
    edit = document.only if is_kept else document.without

    def margins(choices: Sequence[Choice]) -> Array:
        """Return the leads of the class to reach in the texts edited by choices."""
        edited = [edit(choice) for choice in choices]
        decisions = model.decisions(document.as_input(edited))
        if is_kept:
            return leads(decisions, present)
        if to is None:
            return -leads(decisions, present)
        return leads(decisions, to)

    n_words = len(document.words)
    length = min(n_words, 4) if is_kept else document.n_occurrences
    suspicion = _suspicion(one, document, present)
    return fewest_words(margins, n_words, length, suspicion, time_limit)


def _by_column(columns: tuple[Any, ...], texts: tuple[str, ...]) -> Any:
    """Return the only text, or a dictionary of several."""
    return texts[0] if len(texts) == 1 else dict(zip(columns, texts, strict=True))


def _suspicion(one: DecisionTerms, document: EditableDocument, present: int) -> Array:
    """Return the contribution of each word to the lead of the present class, (n_words,)."""
    # 1) What each token adds to the lead.
    contributions = one.contributions
    if len(one.targets) == 1:
        is_present = one.targets.tolist()[0] == one.classes.tolist()[present]
        lead = contributions[:, 0] if is_present else -contributions[:, 0]
    else:
        others = one.decision[0].copy()
        others[present] = -np.inf
        lead = contributions[:, present] - contributions[:, others.argmax()]
    # 2) The sums over the tokens that begin in each word.
    suspicion = np.zeros(len(document.words))
    for shown in one.texts[0]:
        if shown.editable_index is None or shown.words is None:
            continue
        assert shown.occurrences is not None
        assert shown.shares is not None
        first, _, token = shown.occurrences.T
        added = np.zeros(len(shown.text) + 1)  # by the tokens that begin at each character
        np.add.at(added, shown.words[first, 0] + 1, shown.shares * lead[token])
        sums = np.cumsum(added)
        for number, word in enumerate(document.words):
            if word.text == shown.editable_index:
                suspicion[number] += sum(sums[stop] - sums[start] for start, stop in word.spans)
    return suspicion


def _counts(one: DecisionTerms, to: int | None, time_limit: float, is_kept: bool) -> MinimalSet:
    """Return the fewest counts of a document; `to` is the number of the class to reach."""
    bag = BagDecisions(one)
    # 1) The counts. Of classes that tie, the first is predicted.
    present = int(bag.for_all_classes(one.decision)[0].argmax())
    if is_kept:
        result = fewest_to_guarantee(bag.margin(present), time_limit)
    elif to is None:
        result = fewest_to_change(bag.margin(present))
    elif to == present:
        result = CountSearchResult(np.arange(0), 0)
    else:
        result = fewest_to_reach(bag.margin(to), time_limit)
    tokens = np.arange(0) if result.tokens is None else result.tokens
    # 2) The margins with none of them, the first, the first two, ...
    after = present
    probability = np.nan
    if is_kept:
        margins = bag.margin(present).lowest(tokens)
        probabilities = np.full(len(margins), np.nan)
    else:
        decisions = bag.without(tokens)
        if len(tokens):
            after = int(decisions[-1].argmax())
        margins = leads(decisions, present)
        class_probabilities = softmax(decisions, axis=1)
        probabilities = class_probabilities[:, present]
        probability = float(class_probabilities[-1, after])
    # 3) Their places.
    marked_texts = []
    for text in one.texts[0]:
        spans = list(chain(*text.token_spans(tokens)))
        marked_texts.append((text.name, text.text, spans))
    labels = one.classes.tolist()
    return MinimalSet(
        document=int(one.index[0]),
        unit="tokens",
        is_kept=is_kept,
        found=result.tokens is not None,
        tokens=tuple(map(str, one.tokens[tokens])),
        entries=tokens,
        at_least=result.at_least,
        before=labels[present],
        after=labels[after],
        probability=probability,
        margins=margins,
        probabilities=probabilities,
        marked_texts=tuple(marked_texts),
    )


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSets(Sequence[MinimalSet]):
    """The fewest words or tokens of several documents that change or keep their predictions.

    A sequence of :class:`MinimalSet`; its slices are :class:`MinimalSets`.
    """

    explanation: DecisionTerms
    unit: str
    is_kept: bool
    sets: tuple[MinimalSet, ...]

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return MinimalSets(self.explanation[key], self.unit, self.is_kept, self.sets[key])
        return self.sets[key]

    def __repr__(self) -> str:
        return f"<MinimalSets of {len(self):,} document{'' if len(self) == 1 else 's'}>"

    __str__ = shortened

    @property
    def sizes(self) -> Array:
        """The sizes of the sets, (n_documents,); NaN if none was found."""
        return np.array([one.size for one in self], dtype=np.float64)

    def statement(self, number: int) -> str:
        """Return the result for the document at position `number` as one or two sentences."""
        one = self.sets[number]
        if self.unit == "words":
            return _statement_of_words(one)
        n_tokens = len(self.explanation[number].tokens)
        return _statement_of_counts(one, n_tokens, self._is_binary)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per document; NaN means that there is no set."""
        names = ["document", "before", "after", "probability", "size", "at_least", "tokens"]
        names += ["margin", "edited_text"]
        columns = {}
        for name in names:
            columns[name] = [getattr(one, name) for one in self]
        frame = pd.DataFrame(columns)
        frame = frame.astype({"size": np.float64, "at_least": np.float64})
        frame["margin"] = frame["margin"].where(frame["size"].notna())
        return frame if self.unit == "words" else frame.drop(columns="edited_text")

    def to_text(self, *, top: int = 12) -> str:
        """Return statements, each with at most `top` tokens and the probabilities after them.

        For words, the edited text that was predicted follows.
        """
        check_scalar(top, "top", Integral, min_val=0)
        parts = []
        for at, one in enumerate(self):
            lines = [f"Document {one.document}  {label_text(one.before)}"]
            lines.append(visible(self.statement(at)))
            lines += self._step_lines(one, top)
            if one.unit == "words" and one.tokens:
                lines += _edited_lines(one)
            parts.append("\n".join(lines))
        return "\n\n".join(parts) or "No documents."

    def _step_lines(self, one: MinimalSet, top: int) -> list[str]:
        """Return a line for each of the first tokens, with the number after it."""
        numbers = []
        for step in self._steps(one):
            number = step["number"].replace(MINUS, "-")
            if one.is_kept and one.unit == "tokens":
                lead = "" if self._is_binary else "ahead by "
                number = f"{lead}{number} at least"
            numbers.append(number)
        names = [token_text(name) for name in one.tokens[:top]]
        width = max(map(len, names), default=0)
        sign = "=" if one.is_kept else "-"
        lines = []
        for name, number in zip(names, numbers[1:], strict=False):
            lines.append(f"  {sign} {name:{width}}  {number}")
        if len(one.tokens) > top:
            lines.append(f"  and {len(one.tokens) - top} more: {numbers[-1]}")
        return lines

    def to_html(self, *, top: int = 12, fragment: bool = False) -> str:
        """Return a page, or an element for another page, without scripts, that needs no network.

        The chosen words are marked in the texts, and edited texts stand below; at most `top` tokens
        are listed for each set.
        """
        check_scalar(top, "top", Integral, min_val=0)
        return self._html(len(self), top, fragment)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown, 12), repr(self), 60 + 300 * n_shown)

    def _html(self, n_shown: int, top: int, fragment: bool = False) -> str:
        """Return a page, or a part of one, of the first documents."""
        return render(
            "minimal.html",
            title=_TITLES[self.unit, self.is_kept] if self.sets else "No documents",
            views=[self._view(at, top) for at in range(n_shown)],
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
        )

    @property
    def _is_binary(self) -> bool:
        return len(self.explanation.classes) == 2

    def _view(self, at: int, top: int) -> dict[str, Any]:
        """Return the content of a document's part of the page."""
        one = self.sets[at]
        before = label_text(one.before)
        # 1) The steps: the first ones, and the last.
        steps = self._steps(one) if one.tokens else []
        n_hidden = max(len(one.tokens) - top - 1, 0)
        if n_hidden:
            steps = [*steps[: top + 1], steps[-1]]
        caption = f"probability of {before} after each"
        if one.is_kept and one.unit == "tokens":
            lowest = f"lowest lead of {before} in log-odds"
            if self._is_binary:
                lowest = f"lowest probability of {before}"
            caption = f"{lowest}, however much the other counts are reduced"
        # 2) The texts, with the chosen words marked, and edited.
        texts = [(name, _segments(text, spans)) for name, text, spans in one.marked_texts]
        edited = []
        if one.unit == "words" and one.tokens:
            edited = list(_edited_texts(one).items())
        targets = self.explanation.targets.tolist()
        return {
            "set": one,
            # As in the explanation: blue for a single explained class, orange for the other.
            "is_orange": len(targets) == 1 and targets[0] != one.before,
            "sign": "" if one.is_kept else MINUS,
            "statement": self.statement(at),
            "caption": caption,
            "steps": steps,
            # Where the prediction of two classes changes, in percent of a bar.
            "middle": 50.0 if self._is_binary else None,
            "more": n_hidden,
            "texts": texts,
            "edited": edited,
        }

    def _steps(self, one: MinimalSet) -> list[dict[str, Any]]:
        """Return the tokens of a set, and the probability or margin after each."""
        is_guarantee = one.is_kept and one.unit == "tokens"
        margins = one.margins
        # 1) Bars show probabilities, or margins where there are none.
        if is_guarantee and not self._is_binary:
            widths = (margins - margins.min()) / (np.ptp(margins) or 1.0)
            numbers = [signed(margin, MINUS) for margin in margins.tolist()]
        else:
            widths = expit(margins) if is_guarantee else one.probabilities
            numbers = [percent(probability) for probability in widths.tolist()]
        # 2) A step for each token, after the start.
        start = "as it is"
        if one.is_kept:
            start = "none fixed" if is_guarantee else "no word"
        steps = []
        for at, name in enumerate([start, *one.tokens]):
            step = {
                "name": name,
                "number": numbers[at],
                "width": 100.0 * float(widths[at]),
                "is_other": bool(margins[at] <= 0),
            }
            steps.append(step)
        return steps


def removal_in_parts(sets: MinimalSets, number: int) -> tuple[str, str]:
    """Return a statement on words or counts to remove: what to do, and what results."""
    one = sets.sets[number]
    if one.unit == "words":
        return _removal_of_words(one), _result_of_words(one)
    n_tokens = len(sets.explanation[number].tokens)
    return _removal_of_counts(one, n_tokens), _result_of_counts(one)


def all_are_named(one: MinimalSet) -> bool:
    """Return whether the statement on a set names all its words or tokens."""
    return len(one.tokens) <= (_MAX_NAMED if one.unit == "words" else 1)


def _statement_of_words(one: MinimalSet) -> str:
    """Return the prediction for the edited text and the other sets tried, as a sentence."""
    before = label_text(one.before)
    n = len(one.tokens)
    n_tried = (one.at_least or 0) - 1  # all sets of up to so many words were tried
    odds = percent(one.probability)
    if not one.found and one.is_kept:
        return f"No words were found that alone keep the prediction {before}.{_tried(n_tried)}"
    if not one.found and one.at_least is None:
        return "Removing words does not change the prediction (all sets of words were tried)."
    if not one.found:
        return f"No words were found whose removal changes the prediction.{_tried(n_tried)}"
    if n == 0 and one.is_kept:
        return f"Remove all words and the prediction is still {before} ({odds})."
    if n == 0:
        return f"The prediction is already {before} ({odds})."
    if one.is_kept:
        more = _tried(n_tried) if n > 1 else ""
        return f"Keep only {_these_words(one)} and the prediction is still {before} ({odds}).{more}"
    return f"{_removal_of_words(one)} and {_result_of_words(one)}"


def _removal_of_words(one: MinimalSet) -> str:
    """Return which words to remove, as a main clause."""
    return f"Remove {_these_words(one)}"


def _result_of_words(one: MinimalSet) -> str:
    """Return the prediction for the edited text and the other sets tried, from a clause on."""
    more = _tried((one.at_least or 0) - 1) if len(one.tokens) > 1 else ""
    return f"the prediction becomes {label_text(one.after)} ({percent(one.probability)}).{more}"


def _these_words(one: MinimalSet) -> str:
    """Return the words by name, or the number of many."""
    n = len(one.tokens)
    return f"these {n} words" if n > _MAX_NAMED else _listed(one.tokens)


def _listed(words: Sequence[str]) -> str:
    """Return quoted words as part of a sentence."""
    quoted = [f'"{token_text(word)}"' for word in words]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _tried(n_tried: int) -> str:
    """Return a sentence on the sizes of which all sets were tried."""
    if n_tried < 1:
        return ""
    if n_tried == 1:
        return " No single word is enough (all were tried)."
    if n_tried == 2:
        return " No set of one or two words is enough (all were tried)."
    return f" No set of up to {n_tried} words is enough (all were tried)."


def _statement_of_counts(one: MinimalSet, n_tokens: int, is_binary: bool) -> str:
    """Return the claim about the bag and the proof for smaller sets, as a sentence."""
    before = label_text(one.before)
    n = len(one.tokens)
    if not one.found and one.is_kept:
        return f"Two classes are tied: no counts guarantee {before}."
    if not one.found and one.at_least is None:
        return "Setting counts to 0 does not change the prediction (proved)."
    if not one.found:
        least = one.at_least
        return f"No set of counts was found in the time allowed. At least {least} are needed."
    if not n:
        if one.is_kept:
            return f"The prediction stays {before}, however much the counts are reduced."
        return f"The prediction is already {before}."
    if not one.is_kept:
        return f"{_removal_of_counts(one, n_tokens)} and {_result_of_counts(one)}"
    # The lowest probability, or lead, while these counts stay and the others are reduced.
    lowest = f"ahead by at least {signed(one.margin)} in log-odds"
    if is_binary:
        lowest = f"at least {percent(float(expit(one.margin)))}"
    these = _these_counts(one, n_tokens)
    verb = "keeps" if n == 1 else "keep"
    others = "" if n == n_tokens else ", however much the others are reduced"
    fewer = _statement_of_fewer(one)
    return (
        f"{these[0].upper()}{these[1:]} {verb} the prediction {before} ({lowest}){others}.{fewer}"
    )


def _removal_of_counts(one: MinimalSet, n_tokens: int) -> str:
    """Return which counts to set to 0, as a main clause."""
    return f"Set {_these_counts(one, n_tokens)} to 0"


def _result_of_counts(one: MinimalSet) -> str:
    """Return the prediction for the changed counts and what is proved, from a clause on."""
    odds = percent(one.probability)
    return f"the prediction becomes {label_text(one.after)} ({odds}).{_statement_of_fewer(one)}"


def _these_counts(one: MinimalSet, n_tokens: int) -> str:
    """Return a single count by its token's name, or the number of several."""
    n = len(one.tokens)
    if n == 1:
        return f'the count of "{token_text(one.tokens[0])}"'
    return f"all {n} counts" if n == n_tokens else f"these {n} of {n_tokens:,} counts"


def _statement_of_fewer(one: MinimalSet) -> str:
    """Return a sentence on sets of fewer counts, "" where there is nothing to say."""
    n = len(one.tokens)
    if not one.is_minimal:
        least = one.at_least or 0
        start = f"At least {least} are needed; whether" if least > 1 else "Whether"
        return f" {start} {n - 1} are enough is open."
    if n > 2:
        return f" No set of {n - 1} is enough."
    return " No single one is enough." if n == 2 else ""


def _edited_texts(one: MinimalSet) -> dict[Any, str]:
    """Return the edited texts by their columns, None for a document that is a text."""
    if isinstance(one.edited_text, dict):
        return one.edited_text
    return {None: one.edited_text}


def _edited_lines(one: MinimalSet) -> list[str]:
    """Return the edited texts as lines."""
    lines = []
    for name, text in _edited_texts(one).items():
        column = "" if name is None else f" ({name})"
        shown = visible(text, keep_lines=True) or "(empty)"
        lines.append(f"Edited text{column}: {shown}")
    return lines


def _segments(text: str, spans: Sequence[Span]) -> list[tuple[str, bool]]:
    """Return a text in segments, and whether each is marked."""
    marked = np.zeros(len(text), dtype=bool)
    for start, stop in spans:
        marked[start:stop] = True
    changes = np.flatnonzero(np.diff(marked)) + 1
    segments = []
    for start, stop in pairwise([0, *changes.tolist(), len(text)]):
        if stop > start:
            segments.append((text[start:stop], bool(marked[start])))
    return segments
