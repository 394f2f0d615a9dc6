"""Short customer messages with topics and moods, which need no download."""

import re
from functools import partial
from importlib import resources
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from .._sklearn import StrOptions, validate_params

_N_SAMPLES = 3000
_MISTYPED = 1 / 40  # share of the long words that are mistyped

Lists = dict[str, list[str]]


@validate_params(
    {"target": [StrOptions({"topic", "mood"})], "return_X_y": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def load_requests(*, target: Literal["topic", "mood"] = "topic", return_X_y: bool = False) -> Any:
    """Load 3,000 short generated messages from customers to a shop, in English, in random order.

    They are generated from some 80 sentences written for this package, with words filled in and a
    typing error in about every ninetieth word. They are the same on every machine. Use them to try
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
    # 1) what messages are made of
    rng = np.random.RandomState(0)  # its numbers stay the same from release to release
    lists = _read_lists()
    topic_titles = _titles(lists, "topic ")
    mood_titles = _titles(lists, "mood ")
    # 2) different messages, with their labels
    labels: dict[str, tuple[str, str]] = {}  # of every text, once
    while len(labels) < _N_SAMPLES:
        topic_title = _pick(rng, topic_titles)
        mood_title = _pick(rng, mood_titles)
        message = _write_message(rng, lists, topic_title, mood_title)
        topic_of_message = topic_title.removeprefix("topic ")
        mood_of_message = mood_title.removeprefix("mood ")
        labels[message] = (topic_of_message, mood_of_message)
    # 3) arrays of them
    data = np.array(list(labels), dtype=object)
    topic, mood = np.array(list(labels.values()), dtype=object).T
    labels_of_target = topic if target == "topic" else mood
    if return_X_y:
        return data, labels_of_target
    return Bunch(
        data=data,
        target=labels_of_target,
        topic=topic,
        mood=mood,
        target_names=sorted(set(labels_of_target)),
    )


def _read_lists() -> Lists:
    """Return the lines below each title, which is in brackets, of the file of sentences."""
    text = (resources.files(__package__) / "requests.txt").read_text("utf-8")
    _, *parts = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)  # nothing before the first
    titles = parts[::2]
    lists = map(str.splitlines, parts[1::2])
    return dict(zip(titles, lists, strict=True))


def _titles(lists: Lists, kind: str) -> list[str]:
    """Return the titles of the lists of a kind, such as "topic "."""
    return [title for title in lists if title.startswith(kind)]


def _write_message(rng: np.random.RandomState, lists: Lists, topic: str, mood: str) -> str:
    """Return a message of a topic and a mood, given by their titles in `lists`."""
    # 1) sentences, with words in the slots
    sentences = []
    for template in _templates(rng, lists, topic, mood):
        sentence = re.sub(r"\{(\w+)\}", partial(_word_for, rng, lists), template)
        sentences.append(sentence[0].upper() + sentence[1:])
    # 2) a greeting before some, and typing errors in words of four letters or more
    greeting = _pick(rng, [*lists["greeting"], "", "", ""])
    message = " ".join([greeting, *sentences]).strip()
    return re.sub(r"[a-z]{4,}", partial(_mistyped, rng), message)


def _word_for(rng: np.random.RandomState, lists: Lists, slot: re.Match[str]) -> str:
    """Return a word for a slot."""
    return _pick(rng, lists[f"slot {slot[1]}"])


def _mistyped(rng: np.random.RandomState, word: re.Match[str]) -> str:
    """Return a word, of which a few have two letters in the wrong order."""
    letters = word[0]
    if rng.random_sample() >= _MISTYPED:
        return letters
    at = 1 + _below(rng, len(letters) - 2)  # the first letter is never wrong
    return letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :]


def _templates(rng: np.random.RandomState, lists: Lists, topic: str, mood: str) -> list[str]:
    """Return the sentences of a message, with slots to fill in."""
    # 1) the topic, sometimes with a second one after it
    templates = [_pick(rng, lists[topic])]
    if rng.random_sample() < 0.2:
        second_topic = _pick(rng, _titles(lists, "topic "))
        templates.append(_pick(rng, lists[second_topic]))
    # 2) up to two sentences without topic and mood
    neutral = lists["neither"].copy()
    for _ in range(_below(rng, 3)):
        place = _below(rng, len(templates) + 1)
        templates.insert(place, neutral.pop(_below(rng, len(neutral))))
    # 3) the mood, sometimes after the other one
    feeling = _pick(rng, lists[mood])
    if rng.random_sample() < 0.15:
        moods = _titles(lists, "mood ")
        moods.remove(mood)  # the other one is left
        return [_pick(rng, lists[moods[0]]), *templates, feeling]
    if rng.random_sample() < 0.2:
        return [feeling, *templates]
    return [*templates, feeling]


def _pick(rng: np.random.RandomState, options: list[str]) -> str:
    """Return one of several texts at random."""
    return options[_below(rng, len(options))]


def _below(rng: np.random.RandomState, n: int) -> int:
    """Return one of 0 to n - 1, the same on every platform."""
    return int(rng.random_sample() * n)
