r"""Faithfulness: whether the tokens that an explanation names are those the model goes by.

For any scikit-learn classifier of a token matrix, and any scores per token: an explanation is put
to the test by removing the tokens it ranks highest, or all others, and asking the model again.
The conventions are the same in all functions:

- *Removing* a token of a document sets its column to 0 in that document: all its occurrences go.
  Tokens are counted as distinct tokens (columns that are not 0), not as occurrences.
- *Ranking*: tokens are taken from the highest score to the lowest, tokens of equal score in the
  order of their columns. Only tokens that speak for the explained class are ever taken: those
  with a score over 0. Nothing but the order and the sign of scores matters.
- A document with fewer such tokens than asked for has all of them taken; one without any keeps its
  probability when tokens are removed, and is emptied when only the top tokens are kept.
- Scores of tokens that a document does not have are not looked at: there is nothing to remove.
- Nothing is retrained or renormalised but what the model itself does: a token that is removed
  from a document of TF-IDF weights leaves the others' weights as they are, unless the weighting
  is part of the estimator.
"""

from ._faithfulness import ERASER_FRACTIONS, comprehensiveness, deletion_curve, sufficiency

__all__ = ["ERASER_FRACTIONS", "comprehensiveness", "deletion_curve", "sufficiency"]
