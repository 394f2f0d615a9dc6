"""How fitted estimators decide: as sums over tokens, or averages of several such sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._base import BaseAttentionClassifier
from .._types import Array
from .attention_decision import AttentionDecision
from .linear_decision import LinearDecision
from .parts import Member, have_names
from .terms import Decision, Terms, TokenDecision


def decision_of(members: list[Member], *, of_texts: bool) -> Decision | None:
    """Return how the classifiers inside an estimator decide on average, None if by no sum.

    A sum over columns without names, such as the numbers of an embedding, says nothing of texts.
    """
    decisions = []
    for member in members:
        decision = member_decision(member)
        if decision is None:
            return None
        is_linear = isinstance(decision, LinearDecision)
        if of_texts and is_linear and not have_names(member.steps, member.classifier):
            return None
        decisions.append(decision)
    if len(decisions) == 1:
        return decisions[0]
    if len({len(decision.intercept) for decision in decisions}) > 1:  # some know fewer classes
        return None
    return AverageDecision(decisions, np.array([member.share for member in members]))


def member_decision(member: Member) -> TokenDecision | None:
    """Return how a classifier inside an estimator decides, None if by no sum."""
    classifier = member.classifier
    if isinstance(classifier, BaseAttentionClassifier):
        return None if classifier.mlp else AttentionDecision(member.steps, classifier)
    return LinearDecision.of(member.steps, classifier)


@dataclass(frozen=True, eq=False)
class AverageDecision:
    """The average of several decisions, such as those of the classifiers that vote."""

    members: Sequence[Decision]
    shares: Array  # (n_members,), with the sum 1

    @property
    def intercept(self) -> Array:
        """The average intercepts, (n_outputs,)."""
        return self._average([member.intercept for member in self.members])

    def read(self, documents: Any) -> list[Any]:
        """Return documents as each member reads them."""
        return [member.read(documents) for member in self.members]

    def decisions(self, read: list[Any]) -> Array:
        """Return the average decisions, (n_documents, n_outputs)."""
        of_members = []
        for member, documents in zip(self.members, read, strict=True):
            of_members.append(member.decisions(documents))
        return self._average(of_members)

    def probabilities(self, read: list[Any], decisions: Array) -> None:
        """Return None: the estimator has probabilities of its own."""

    def terms(self, read: list[Any]) -> Terms:
        """Return the average terms of the decisions, by document and name of the token."""
        # 1) The terms of all members, times their shares.
        of_members = []
        for member, documents in zip(self.members, read, strict=True):
            of_members.append(member.terms(documents))
        names, tokens = pd.factorize(np.concatenate([terms.tokens for terms in of_members]))
        n_documents = len(of_members[0].indptr) - 1
        rows = [np.repeat(np.arange(n_documents), np.diff(terms.indptr)) for terms in of_members]
        weights = []
        contributions = []
        for terms, share in zip(of_members, self.shares, strict=True):
            weights.append(share * terms.weights)
            contributions.append(share * terms.contributions)
        # 2) Their sums, by document and name.
        keys = np.concatenate(rows) * len(tokens) + names
        found, places = np.unique(keys, return_inverse=True)
        sums: list[Array] = []
        for column in np.column_stack([np.concatenate(weights), np.concatenate(contributions)]).T:
            sums.append(np.bincount(places, column, len(found)).astype(np.float64))
        lengths = np.bincount(found // max(len(tokens), 1), minlength=n_documents)
        return Terms(
            indptr=np.append(0, np.cumsum(lengths)).astype(np.intp),
            tokens=np.asarray(tokens, dtype=object)[found % max(len(tokens), 1)],
            weights=sums[0],
            contributions=np.column_stack(sums[1:]),
        )

    def _average(self, of_members: list[Array]) -> Array:
        """Return the average of arrays of equal shape, one of each member."""
        return np.tensordot(self.shares, np.stack(of_members), axes=1)
