"""Short customer messages with topics and moods, which need no download."""

import re
from importlib import resources
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from .._sklearn import StrOptions, validate_params

_N_SAMPLES = 3000

Lists = dict[str, list[str]]


@validate_params(
    {"target": [StrOptions({"topic", "mood"})], "return_X_y": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def load_requests(*, target: Literal["topic", "mood"] = "topic", return_X_y: bool = False) -> Any:
    """Load 3,000 short generated messages from customers to a shop, in English, in random order.

    They are generated from some 80 sentences written for this package, with words filled in and a
    typing error in about every fortieth word. They are the same on every machine. Use them to try
    things out, not as a benchmark. Some messages have a sentence of a second topic after their own
    topic, and some have a sentence of the other mood before their own mood.

    Parameters
    ----------
    target : {"topic", "mood"}, default="topic"
        The kind of label: one of four topics, or whether the customer is content or upset. One
        sentence expresses the mood, often with a negation; if there are two moods, the last counts.
    return_X_y : bool, default=False
        Whether to return texts and labels instead of a Bunch.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With these fields:

        data : ndarray of str objects of shape (3000,)
            The messages.
        target : ndarray of str objects of shape (3000,)
            Their labels: those of `topic` or of `mood`.
        topic, mood : ndarray of str objects of shape (3000,)
            Both labels.
        target_names : list of str
            The different labels, sorted.
    (data, target) : tuple
        Returned instead if `return_X_y` is True.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import load_requests
    >>> requests = load_requests()
    >>> requests.target_names
    ['billing', 'delivery', 'product', 'returns']
    >>> texts, moods = load_requests(target="mood", return_X_y=True)
    >>> len(texts), sorted(set(moods))
    (3000, ['content', 'upset'])
    """
    rng = np.random.RandomState(0)  # its numbers stay the same from release to release
    lists = {title: text.splitlines() for title, text in sections("requests.txt").items()}
    rows: dict[str, list[str]] = {}  # every text once
    while len(rows) < _N_SAMPLES:
        titles = [_pick(rng, _titles(lists, kind)) for kind in ("topic ", "mood ")]
        rows[_text(rng, lists, *titles)] = [title.split()[1] for title in titles]
    data = np.array(list(rows), dtype=object)
    topic, mood = np.array(list(rows.values()), dtype=object).T
    chosen = topic if target == "topic" else mood
    if return_X_y:
        return data, chosen
    names = sorted(set(chosen))
    return Bunch(data=data, target=chosen, topic=topic, mood=mood, target_names=names)


def sections(file: str) -> dict[str, str]:
    """Return the text below each heading, which is in brackets, of a file of this folder."""
    text = (resources.files(__package__) / file).read_text("utf-8")
    parts = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _titles(lists: Lists, kind: str) -> list[str]:
    return [title for title in lists if title.startswith(kind)]


def _text(rng: np.random.RandomState, lists: Lists, topic: str, mood: str) -> str:
    """Return a message of a topic and a mood, given by their titles in `lists`."""
    about = [_pick(rng, lists[topic])]
    if rng.random_sample() < 0.2:
        about.append(_pick(rng, lists[_pick(rng, _titles(lists, "topic "))]))
    neither = lists["neither"].copy()
    for _ in range(_below(rng, 3)):
        about.insert(_below(rng, len(about) + 1), neither.pop(_below(rng, len(neither))))
    feeling = _pick(rng, lists[mood])
    if rng.random_sample() < 0.15:  # the last mood counts
        (other,) = {*_titles(lists, "mood ")} - {mood}
        about = [_pick(rng, lists[other]), *about, feeling]
    else:
        about.insert(0 if rng.random_sample() < 0.2 else len(about), feeling)

    def filled(slot: re.Match[str]) -> str:
        return _pick(rng, lists[f"slot {slot[1]}"])

    sentences = (re.sub(r"\{(\w+)\}", filled, sentence) for sentence in about)
    body = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    greeting = _pick(rng, [*lists["greeting"], "", "", ""])

    def mistyped(word: re.Match[str]) -> str:
        """Return every fortieth word or so with two letters in the wrong order."""
        letters = word[0]
        if rng.random_sample() >= 1 / 40:
            return letters
        at = 1 + _below(rng, len(letters) - 2)
        return letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :]

    return re.sub(r"[a-z]{4,}", mistyped, f"{greeting} {body}".strip())


def _pick(rng: np.random.RandomState, options: list[str]) -> str:
    return options[_below(rng, len(options))]


def _below(rng: np.random.RandomState, n: int) -> int:
    """Return one of 0 to n - 1, the same on every platform."""
    return int(rng.random_sample() * n)
