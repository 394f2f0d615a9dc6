"""The classifier under the two names by which ASReview knows it, as an entry point."""

from __future__ import annotations

from ._classifier import ClsAttentionClassifier


class ASReviewClassifier(ClsAttentionClassifier):
    """Attention over words, for screening records in ASReview."""

    name = "clsattn"
    label = "Attention (clsattn)"
