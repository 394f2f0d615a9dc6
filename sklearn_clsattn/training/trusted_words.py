"""What people say of words, as evidence beside that of the documents (``docs/mathematics.md``).

What is stated knows no document's class, and so is the same in training and in prediction. A word
that is trusted for a class has the stated log-odds 1 for it; where two classes have one output, the
second has 1 and the first -1.

After training, the value of a word that, with its letters, speaks more for another class than for
its own is raised until it speaks for both alike. With two classes or several labels, a word that
speaks against its class gets a value with which it says nothing.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._bags import TrustedTokens
from .._targets import Targets
from .._types import Array
from .fitted_model import FittedAttention


class Trust(NamedTuple):
    """What people say of the tokens.

    stated : (n_tokens, n_outputs), log-odds
    factors : (n_tokens,), by which the log-odds of the documents are multiplied
    """

    stated: Array
    factors: Array


def trust_in(tokens: TrustedTokens, targets: Targets) -> Trust:
    """Return the log-odds and factors of the tokens of documents with these targets.

    Nothing is said of classes that no document can have.
    """
    labels = targets.classes.tolist()
    by_class = np.zeros((len(tokens.numbers), len(labels)))
    for number, label in enumerate(tokens.labels):
        if label in labels:
            by_class[tokens.numbers == number, labels.index(label)] = 1.0
    has_one_output = targets.n_outputs < len(labels)
    stated = by_class[:, 1:] - by_class[:, :1] if has_one_output else by_class
    return Trust(stated, tokens.factors)


def kept_to_their_class(
    model: FittedAttention, tokens: TrustedTokens, targets: Targets
) -> FittedAttention:
    """Return a model of documents with these targets whose trusted words speak for their class."""
    stated, _ = trust_in(tokens, targets)
    columns = tokens.spoken_for
    is_stated = stated[columns].any(axis=1)
    columns = columns[is_stated]
    words = np.arange(len(columns))
    # 1) what each word adds, by itself and by its letters, times the attention mass
    spelled = tokens.spelled[is_stated]
    attention = np.exp(model.scores)
    added = spelled @ (attention[:, None] * model.values)
    own_weights = spelled[:, columns].diagonal() * attention[columns]
    # 2) what it lacks to speak for its class as it does for others, or not against it
    signs = stated[columns].sum(axis=1)
    outputs = np.abs(stated[columns]).argmax(axis=1)
    for_class = signs * added[words, outputs]
    least = np.zeros(len(words))
    if targets.has_rivals:
        added[words, outputs] = -np.inf
        least = added.max(axis=1)
    lacking = np.maximum(least - for_class, 0.0)
    # 3) its value with that
    values = model.values.copy()
    values[columns, outputs] += signs * lacking / own_weights
    return replace(model, values=values)
