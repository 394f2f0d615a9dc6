"""Whether what Theorem 4.3 asks is so for a fit: data, step and direction."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class TheoremConditions:
    r"""The conditions of Theorem 4.3, checked on one fit. True as a condition if all hold.

    ``print`` says which hold and which do not.

    Attributes
    ----------
    single_relevant_token : bool
        Assumption 1: every training document has exactly one completely relevant token, and all
        its other tokens are irrelevant.
    starting_loss : float
        n L(p0): the sum of the training losses, in nats, after the gradient step and before p is
        trained. With document weights, over the smallest of them.
    direction_converged : bool
        Whether the direction of p is certified to be the limit, to the tolerance of the fit.

    See Also
    --------
    sklearn_clsattn.paper.OneStepClassifier : Has them as ``conditions_``.
    check_single_relevant_token : Which documents and tokens break Assumption 1.

    Notes
    -----
    The theorem asks for a step :math:`\eta_0` that is large enough. What can be computed is a
    certificate of that: L never rises along gradient flow, so that while
    :math:`n L(p_0) < \log 2`, every document's own loss stays below :math:`\log 2`, and it stays
    right to the end. Without it, the flow may end with documents that select irrelevant tokens,
    and need not: the certificate is sufficient, not necessary.

    Examples
    --------
    >>> from sklearn_clsattn.theory import TheoremConditions
    >>> print(TheoremConditions(True, 0.5, True))
    The conditions of Theorem 4.3 hold here.
      One relevant token a document (Assumption 1): holds.
      eta_0 large enough: certified, n L(p0) = 0.5 < log 2: flow keeps every document right.
      The direction of p converges: certified.
    >>> bool(TheoremConditions(True, 70.0, True))
    False
    """

    single_relevant_token: bool
    starting_loss: float
    direction_converged: bool

    @property
    def keeps_documents_right(self) -> bool:
        """Whether gradient flow is certified to keep every training document right."""
        return self.starting_loss < math.log(2)

    def __bool__(self) -> bool:
        return (
            self.single_relevant_token and self.keeps_documents_right and self.direction_converged
        )

    def __str__(self) -> str:
        if self.keeps_documents_right:
            step = f"certified, n L(p0) = {self.starting_loss:.3g} < log 2: flow keeps every "
            step += "document right."
        else:
            step = f"not certified, n L(p0) = {self.starting_loss:.3g} >= log 2."
        lines = [
            "The conditions of Theorem 4.3 hold here."
            if self
            else "The conditions of Theorem 4.3 do not all hold here, or are not certified.",
            "  One relevant token a document (Assumption 1): "
            + ("holds." if self.single_relevant_token else "does not hold."),
            f"  eta_0 large enough: {step}",
            "  The direction of p converges: "
            + ("certified." if self.direction_converged else "not certified."),
        ]
        return "\n".join(lines)
