"""Measures beyond those of scikit-learn: faithfulness of explanations, and calibration.

Faithfulness: whether predictions depend on the tokens that they name.

For any scikit-learn classifier of a token matrix, and any scores per token: the tokens with the
highest scores, or all others, are removed, and the probability of the class is compared.
The conventions are the same in all functions:

- *Removing* a token of a document sets its column to 0 in that document, which removes all its
  occurrences. Tokens are counted as distinct tokens (columns that are not 0), not as occurrences.
- *Ranking*: tokens are taken from the highest score to the lowest, tokens of equal score in the
  order of their columns. Only tokens with a score over 0, which is evidence for the explained
  class, are taken. Nothing but the order and the sign of scores matters.
- Of a document with fewer such tokens all of them are taken; one without any keeps its
  probability when tokens are removed, and is empty when only the top tokens are kept.
- Scores of tokens that a document does not have are ignored.
- The model is not retrained and documents are not renormalised: when a token is removed from a
  document of TF-IDF weights, the other weights stay the same, unless the weighting is part of
  the estimator.
"""

from ._calibration import expected_calibration_error
from ._faithfulness import ERASER_FRACTIONS, comprehensiveness, deletion_curve, sufficiency
from ._greedy import greedy_scores

__all__ = [
    "ERASER_FRACTIONS",
    "comprehensiveness",
    "deletion_curve",
    "expected_calibration_error",
    "greedy_scores",
    "sufficiency",
]
