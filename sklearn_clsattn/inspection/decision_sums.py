"""How fitted estimators decide: as sums over tokens, or averages of several such sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._base import BaseAttentionClassifier
from .._types import Array
from .attention_sum import AttentionSum
from .column_names import column_names
from .inner_classifiers import Member, Members
from .linear_sum import LinearSum
from .terms import DecisionSum, Terms
from .token_positions import LocatedText


def sum_of(inside: Members, *, of_texts: bool) -> DecisionSum | AverageSum | None:
    """Return the sum by which an estimator decides, on average; None if by none.

    A sum over columns without names, such as the numbers of an embedding, says nothing of texts.
    """
    sums = []
    for member in inside.members:
        decision_sum = member_sum(member)
        if decision_sum is None:
            return None
        is_foreign = isinstance(decision_sum, LinearSum)  # ours always have names
        if of_texts and is_foreign and not column_names(member.steps, member.classifier).are_names:
            return None
        sums.append(decision_sum)
    if len(sums) == 1:
        return sums[0]
    if not know_the_same_classes(inside.members):
        return None
    return AverageSum(sums, np.array([member.share for member in inside.members]))


def know_the_same_classes(members: Sequence[Member]) -> bool:
    """Return whether classifiers inside an estimator know the same classes; some may know fewer."""
    classes = [member.classifier.classes_ for member in members]
    return all(np.array_equal(known, classes[0]) for known in classes)


def member_sum(member: Member) -> DecisionSum | None:
    """Return the sum by which a classifier inside an estimator decides, None if by none."""
    classifier = member.classifier
    if isinstance(classifier, BaseAttentionClassifier):
        return None if classifier.mlp else AttentionSum(member.steps, classifier)
    return LinearSum.of(member.steps, classifier)


@dataclass(frozen=True, eq=False)
class AverageSum:
    """The average of several sums, such as those of the classifiers that vote."""

    members: Sequence[DecisionSum]
    shares: Array  # (n_members,), with the sum 1

    @property
    def intercept(self) -> Array:
        """The average intercepts, (n_outputs,)."""
        return self._average([np.asarray(member.intercept) for member in self.members])

    def read(self, documents: Any) -> list[Any]:
        """Return documents as each member reads them."""
        return [member.read(documents) for member in self.members]

    def decisions(self, read: list[Any]) -> Array:
        """Return the average decisions, (n_documents, n_outputs)."""
        of_members = []
        for member, documents in zip(self.members, read, strict=True):
            of_members.append(member.decisions(documents))
        return self._average(of_members)

    def terms(self, read: list[Any]) -> Terms:
        """Return the average terms of the decisions, by document and name of the token."""
        # 1) The terms of all members, one after the other.
        documents = []
        tokens = []
        numbers = []
        for share, member, of_member in zip(self.shares, self.members, read, strict=True):
            terms = member.terms(of_member)
            n_documents = len(terms.indptr) - 1
            documents.append(np.repeat(np.arange(n_documents), np.diff(terms.indptr)))
            tokens.append(terms.tokens)
            numbers.append(share * np.column_stack([terms.weights, terms.contributions]))
        # 2) Their sums, by document and name.
        codes, names = pd.factorize(np.concatenate(tokens))
        table = pd.DataFrame(np.concatenate(numbers))
        sums = table.groupby([np.concatenate(documents), codes]).sum()
        n_tokens = np.bincount(sums.index.get_level_values(0), minlength=n_documents)
        return Terms(
            indptr=np.append(0, np.cumsum(n_tokens)),
            tokens=np.asarray(names, dtype=object)[sums.index.get_level_values(1)],
            weights=sums[0].to_numpy(),
            contributions=sums.to_numpy()[:, 1:],
        )

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens; none if members read texts differently."""
        first, *others = [repr(member.steps[0]) for member in self.members if member.steps]
        if any(other != first for other in others):
            return LocatedText(text)
        return self.members[0].locate(text, tokens)

    def _average(self, of_members: list[Array]) -> Array:
        """Return the average of arrays of equal shape, one of each member."""
        return np.tensordot(self.shares, np.stack(of_members), axes=1)
