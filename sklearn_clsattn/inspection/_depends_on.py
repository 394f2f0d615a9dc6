"""How far a model's predictions depend on words, by predicting texts without them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..text._normalization import normalized
from ..text._tokens import checked_texts
from .edited_text import EditableText, word_spans


def depends_on(
    model: Any, texts: Iterable[str], words: Iterable[str | re.Pattern[str]]
) -> pd.DataFrame:
    """Measure how far predictions depend on words, such as names, places or products.

    Each word is deleted from the texts that have it, and these are predicted again. So it works for
    every classifier of texts, and for one that must not use a word it proves that it does not.

    Parameters
    ----------
    model : estimator
        A fitted classifier of texts with `predict_proba`, such as a
        :class:`~sklearn_clsattn.TextClassifier` or a Pipeline of scikit-learn.
    texts : iterable of str
        Texts of the kind that the model is for; labels are not needed.
    words : iterable of str or compiled pattern
        Single words, and patterns of whole words. Case is ignored.

    Returns
    -------
    dependence : DataFrame
        A row for each of `words`, with the columns `n_texts` (that have the word), `changed` (the
        share of these for which the model predicts something else without the word), `mean_change`
        and `largest_change` (of the class whose probability changes most), and `largest_in` (the
        position of the text with the largest change). If no text has the word, -1 and NaN.

    Raises
    ------
    ValueError
        If one of `words` is not a single word.

    Examples
    --------
    >>> from sklearn_clsattn import TextClassifier
    >>> from sklearn_clsattn.datasets import load_requests
    >>> from sklearn_clsattn.inspection import depends_on
    >>> texts, topics = load_requests(return_X_y=True)
    >>> free = TextClassifier(stop_words=["invoice"]).fit(texts[:500], topics[:500])
    >>> float(depends_on(free, texts, ["invoice"])["largest_change"].iloc[0])
    0.0
    """
    every_text = list(checked_texts(texts))
    if isinstance(words, str):
        raise ValueError(f"Expected a list of words, got one: pass [{words!r}].")
    sought = list(words)
    patterns = [_pattern(word) for word in sought]
    # 1) the texts that have each word, and without it
    edits = []
    for at, text in enumerate(map(EditableText, every_text)):
        present = [normalized(word.name, lowercase=True) for word in text.words]
        for number, pattern in enumerate(patterns):
            found = [place for place, word in enumerate(present) if pattern.fullmatch(word)]
            if found:
                edits.append((number, at, text.without(found)))
    edited = pd.DataFrame(edits, columns=["word", "largest_in", "text"])
    # 2) what changes in their predictions
    edited["changed"] = edited["change"] = np.zeros(len(edits))
    if edits:
        with_word = [every_text[at] for at in edited["largest_in"]]
        without = edited["text"].tolist()
        is_changed = np.asarray(model.predict(without)) != np.asarray(model.predict(with_word))
        edited["changed"] = is_changed.reshape(len(edits), -1).any(axis=1)
        changes = np.abs(model.predict_proba(without) - model.predict_proba(with_word))
        edited["change"] = changes.max(axis=1)
    # 3) word by word
    by_word = edited.groupby("word")
    places = edited.loc[by_word["change"].idxmax()].set_index("word")["largest_in"]
    rows = range(len(sought))
    dependence = pd.DataFrame(
        {
            "n_texts": by_word.size().reindex(rows, fill_value=0),
            "changed": by_word["changed"].mean().reindex(rows),
            "mean_change": by_word["change"].mean().reindex(rows),
            "largest_change": by_word["change"].max().reindex(rows),
            "largest_in": places.reindex(rows, fill_value=-1).astype(int),
        }
    )
    names = [word if isinstance(word, str) else word.pattern for word in sought]
    return dependence.set_axis(pd.Index(names, name="word"))


def _pattern(word: Any) -> re.Pattern[str]:
    """Return the pattern of normalized words that are sought."""
    if isinstance(word, re.Pattern):
        if word.fullmatch(""):
            raise ValueError(f"The pattern {word.pattern!r} matches no character.")
        return re.compile(word.pattern, word.flags | re.IGNORECASE)
    if word_spans(word) != [(0, len(word))]:
        raise ValueError(f"Expected single words, got {word!r}: pass its words one by one.")
    return re.compile(re.escape(normalized(word, lowercase=True)))
