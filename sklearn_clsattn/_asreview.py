"""What ASReview finds by its entry points: the classifier, and how its web page calls it."""

from __future__ import annotations

from typing import Literal

from ._classifier import ClsAttentionClassifier


class ASReviewClassifier(ClsAttentionClassifier):
    """Attention over words, for screening records; see `ClsAttentionClassifier`.

    Where few records are relevant and read in order of their rank, words are better not scaled by
    their log-odds (``python -m benchmarks.hosts.screening``).
    """

    name = "clsattn"
    label = "Attention (clsattn)"

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        attention_C: float | Literal["auto"] = 0.03,
        token_scaling: Literal["log_odds"] | None = None,
    ) -> None:
        super().__init__(C=C, attention_C=attention_C, token_scaling=token_scaling)


MODEL_METADATA = {"classifiers": {ASReviewClassifier.name: {"label": ASReviewClassifier.label}}}
