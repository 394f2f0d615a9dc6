r"""What people say of words, as evidence beside that of the documents.

A word s that is trusted for class k has the stated log-odds :math:`w_{sk} = 1`, all others 0; where
two classes have one output, the second has 1 and the first -1. With them the prior mean
(:mod:`.prior_mean`) is

.. math:: \bar b_{sk} = \tfrac12 (\alpha\, \phi_s r_{sk} + \gamma\, w_{sk})\, \nu\, e^{-a_s},

in training and in prediction alike: what is stated knows no document's class. The penalty shrinks a
token by the size of :math:`\phi_s r_{sk} + w_{sk}`.

The factor :math:`\phi_s` is 1 for trusted words, and n-grams with one. For others it is
4 / (4 + m), with the mean number m of trusted words in the training texts: where there are four,
other words are evidence for half.

After training, a word that speaks more for another class than for its own gets the value of that
class for both, and one that speaks against its class where there is no other the value 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._bags import TrustedTokens
from .._targets import Targets
from .._types import Array


class Trust(NamedTuple):
    """What people say of the tokens.

    stated : (n_tokens, n_outputs), log-odds
    factors : (n_tokens,), by which the log-odds of the documents are multiplied
    has_rivals : whether outputs are those of classes of which a document has one
    """

    stated: Array
    factors: Array
    has_rivals: bool

    def kept_by(self, values: Array) -> Array:
        """Return values, (n_tokens, n_outputs), in which no word speaks against its class.

        That of its class is raised to the largest of the others, or to 0 where there are none.
        """
        sign = self.stated.sum(axis=1)
        rows = np.flatnonzero(sign)
        outputs = np.abs(self.stated[rows]).argmax(axis=1)
        least = np.zeros(len(rows))
        if self.has_rivals:
            others = values[rows]
            others[np.arange(len(rows)), outputs] = -np.inf
            least = others.max(axis=1)
        kept = values.copy()
        kept[rows, outputs] = sign[rows] * np.maximum(sign[rows] * values[rows, outputs], least)
        return kept


def trust_in(tokens: TrustedTokens, targets: Targets) -> Trust:
    """Return what people say of the tokens of documents with these targets."""
    labels = targets.classes.tolist()
    unknown = [label for label in tokens.labels if label not in labels]
    if unknown:
        raise ValueError(f"trusted_words are of {unknown}, but the classes are {labels}.")
    by_class = np.zeros((len(tokens.numbers), len(labels)))
    spoken_for = np.flatnonzero(tokens.numbers >= 0)
    columns = np.array([labels.index(label) for label in tokens.labels], dtype=np.intp)
    by_class[spoken_for, columns[tokens.numbers[spoken_for]]] = 1.0
    has_one_output = targets.n_outputs < len(labels)
    stated = by_class[:, 1:] - by_class[:, :1] if has_one_output else by_class
    has_rivals = targets.n_outputs > 1 and not targets.multilabel
    return Trust(stated, tokens.factors, has_rivals)
