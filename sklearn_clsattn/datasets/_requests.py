"""Short messages of customers, with topics and moods: data to begin with, nothing to download."""

from __future__ import annotations

import re
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions, validate_params

from ._request_sentences import GREETINGS, MOODS, NEITHER, SLOTS, TOPICS

_N_SAMPLES = 3000
_DESCRIPTION = """\
3,000 messages of customers to a shop, of 2 to 6 sentences, with a topic (delivery, billing,
returns, product) and a mood (content, upset). They are made of some 80 sentences written for this
package, with words filled in and a typing error in every fortieth word: invented, but sensible.
Some have a sentence of a second topic after that of their own, some one of the other mood before
their own. Nobody's data."""


@overload
def load_requests(
    *, target: Literal["topic", "mood"] = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...


@overload
def load_requests(
    *, target: Literal["topic", "mood"] = ..., return_X_y: Literal[True]
) -> tuple[NDArray[np.object_], NDArray[np.object_]]: ...


@validate_params(
    {"target": [StrOptions({"topic", "mood"})], "return_X_y": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def load_requests(
    *, target: Literal["topic", "mood"] = "topic", return_X_y: bool = False
) -> Bunch | tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Load 3,000 short messages of customers to a shop, in English, in random order.

    They are made of sentences written for this package, the same ones on every machine: data to
    try things on, with words that make sense, and no benchmark.

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
        DESCR : str
            Description of the data set.
    (data, target) : tuple
        Returned instead if `return_X_y` is True.

    Raises
    ------
    sklearn.utils._param_validation.InvalidParameterError
        If a parameter has an unknown value.

    See Also
    --------
    make_token_classification : Documents from a known distribution.
    load_reviews : Load texts and labels from a file.

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
    return Bunch(
        data=data,
        target=labels,
        topic=topics,
        mood=moods,
        target_names=sorted(set(labels)),
        DESCR=_DESCRIPTION,
    )


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
    filled = (re.sub(r"\{(\w+)\}", lambda slot: _fill(rng, slot), one) for one in about)
    sentences = " ".join(one[0].upper() + one[1:] for one in filled)
    greeting = _pick(rng, GREETINGS.split("|"))
    return _mistype(rng, f"{greeting} {sentences}".strip())


def _fill(rng: np.random.RandomState, slot: re.Match[str]) -> str:
    return _pick(rng, SLOTS[slot[1]].split("|")).strip()


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
