"""Short messages of customers, with topics and moods: data to begin with, nothing to download."""

import re
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions, validate_params

from ._request_sentences import GREETINGS, MOODS, NEITHER, SLOTS, TOPICS

_N_SAMPLES = 3000


@validate_params(
    {"target": [StrOptions({"topic", "mood"})], "return_X_y": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def load_requests(*, target: Literal["topic", "mood"] = "topic", return_X_y: bool = False) -> Any:
    """Load 3,000 short messages of customers to a shop, in English, in random order.

    They are made of some 80 sentences written for this package, with words filled in and a typing
    error in every fortieth word, the same ones on every machine: data to try things on, and no
    benchmark. Some have a sentence of a second topic after that of their own, some one of the
    other mood before their own.

    Parameters
    ----------
    target : {"topic", "mood"}, default="topic"
        What the labels are: one of four topics, or whether the customer is content or upset. A
        mood stands in one sentence, often with a negation; of two moods the last counts.
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
    rows: dict[str, tuple[str, str]] = {}  # every text once
    while len(rows) < _N_SAMPLES:
        topic, mood = _pick(rng, list(TOPICS)), _pick(rng, list(MOODS))
        rows[_text(rng, topic, mood)] = topic, mood
    data = np.array(list(rows), dtype=object)
    topics, moods = np.array(list(rows.values()), dtype=object).T
    labels = topics if target == "topic" else moods
    if return_X_y:
        return data, labels
    names = sorted(set(labels))
    return Bunch(data=data, target=labels, topic=topics, mood=moods, target_names=names)


def _text(rng: np.random.RandomState, topic: str, mood: str) -> str:
    """Return a message of a topic and a mood."""
    about = [_pick(rng, TOPICS[topic].strip().split("\n"))]
    if rng.random_sample() < 0.2:
        about.append(_pick(rng, TOPICS[_pick(rng, list(TOPICS))].strip().split("\n")))
    neither = NEITHER.strip().split("\n")
    for _ in range(_below(rng, 3)):
        about.insert(_below(rng, len(about) + 1), neither.pop(_below(rng, len(neither))))
    feeling = _pick(rng, MOODS[mood].strip().split("\n"))
    if rng.random_sample() < 0.15:  # the last word counts
        (other,) = MOODS.keys() - {mood}
        about = [_pick(rng, MOODS[other].strip().split("\n")), *about, feeling]
    else:
        about.insert(0 if rng.random_sample() < 0.2 else len(about), feeling)

    def filled(slot: re.Match[str]) -> str:
        return _pick(rng, SLOTS[slot[1]].split("|")).strip()

    sentences = (re.sub(r"\{(\w+)\}", filled, sentence) for sentence in about)
    body = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    greeting = _pick(rng, GREETINGS.split("|"))
    return _mistype(rng, f"{greeting} {body}".strip())


def _mistype(rng: np.random.RandomState, text: str) -> str:
    """Return the text with two letters of every fortieth word or so in the wrong order."""

    def swap(word: re.Match[str]) -> str:
        letters = word[0]
        if rng.random_sample() >= 1 / 40:
            return letters
        at = 1 + _below(rng, len(letters) - 2)
        return letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :]

    return re.sub(r"[a-z]{4,}", swap, text)


def _pick(rng: np.random.RandomState, options: list[str]) -> str:
    return options[_below(rng, len(options))]


def _below(rng: np.random.RandomState, n: int) -> int:
    """Return one of 0 to n - 1, the same on every platform."""
    return int(rng.random_sample() * n)
