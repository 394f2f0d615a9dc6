r"""How much each of several teachers is believed.

The teachers' probabilities are averaged, with shares that say how much each is believed.

**By agreement** [1]_. Without labels, each teacher t names the right class of a text with an
unknown accuracy :math:`a_t`, and every other class equally often, whatever the other teachers name.
Expectation maximization alternates between the probabilities of the true classes, given these
accuracies, and the accuracies. At least three teachers are needed: two that differ do not tell who
is wrong.

**By labels** [2]_. A model that is taught by one teacher alone gives each labelled text's class a
probability. The shares are those whose mean of these probabilities explains the labels best, again
by expectation maximization; what agreement says counts as much as :data:`PRIOR_LABELS` texts.

.. [1] A. P. Dawid, A. M. Skene (1979). Maximum Likelihood Estimation of Observer Error-Rates Using
   the EM Algorithm. Applied Statistics 28.
.. [2] Y. Yao, A. Vehtari, D. Simpson, A. Gelman (2018). Using Stacking to Average Bayesian
   Predictive Distributions. Bayesian Analysis 13.
"""

import numpy as np
from scipy.special import softmax
from scipy.stats import binomtest

from .._matrices import safe_divide
from .._types import Array

PRIOR_LABELS = 10.0
"""The number of labelled texts that the agreement of teachers is worth."""

LEAST_SHARE = 0.05
"""A teacher that labels believe less, relative to the most believed, is left out."""

_ROUNDS = 200


def accuracies_by_agreement(answers: Array) -> Array:
    """Return the teachers' estimated accuracies, (n_teachers,), from what they say.

    `answers` are (n_teachers, n_texts, n_classes), NaN where a teacher does not answer. Of fewer
    than three teachers the accuracies are NaN.
    """
    n_teachers, _, n_classes = answers.shape
    if n_teachers < 3:
        return np.full(n_teachers, np.nan)
    # 1) the class that each teacher names: 1, and 0 for all others and where it does not answer
    has_answer = ~np.isnan(answers[:, :, 0])
    named = np.eye(n_classes)[np.nan_to_num(answers).argmax(axis=2)]
    named *= has_answer[:, :, None]
    # 2) from the majority's classes on
    truth = named.sum(axis=0)
    truth /= truth.sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        right = (named * truth).sum(axis=(1, 2))
        accuracies = (right + 1) / (has_answer.sum(axis=1) + 2)  # never 0 or 1
        log_odds = np.log(accuracies / (1 - accuracies) * (n_classes - 1))
        truth = softmax(np.tensordot(log_odds, named, axes=1), axis=1)
    return np.asarray(accuracies)


def shares_by_agreement(accuracies: Array, n_classes: int) -> Array:
    """Return the shares of teachers in their mean, (n_teachers,), by estimated accuracies."""
    n_teachers = len(accuracies)
    even = np.full(n_teachers, 1.0 / n_teachers)
    if np.isnan(accuracies).any():
        return even
    log_odds = np.log(accuracies / (1 - accuracies) * (n_classes - 1)).clip(min=0)
    return log_odds / log_odds.sum() if log_odds.any() else even


def shares_by_labels(likelihoods: Array, weights: Array, prior: Array) -> Array:
    """Return the shares of teachers in their mean, (n_teachers,), by labelled texts.

    `likelihoods`, (n_teachers, n_labelled), are the labels' probabilities by models that each
    teacher alone has taught, NaN where there is none; `weights` are those of the texts. The `prior`
    shares are those without labels, and stay those of teachers that taught no model.
    """
    has_model = ~np.isnan(likelihoods).all(axis=1)
    compared = likelihoods[has_model]
    prior_shares = safe_divide(prior[has_model], prior[has_model].sum())
    new_shares = prior_shares
    for _ in range(_ROUNDS):
        terms = new_shares[:, None] * compared
        responsibilities = safe_divide(terms, terms.sum(axis=0))  # 0 of texts that are NaN
        totals = responsibilities @ weights + PRIOR_LABELS * prior_shares
        new_shares = safe_divide(totals, totals.sum())
    shares = prior.copy()
    shares[has_model] = new_shares * prior[has_model].sum()
    shares[shares < LEAST_SHARE * shares.max()] = 0.0
    return shares / shares.sum()


def pooled(answers: Array, shares: Array) -> tuple[Array, Array]:
    """Return the teachers' mean, (n_texts, n_classes), and the shares of those who answer."""
    has_answer = ~np.isnan(answers[:, :, 0])
    answering = shares @ has_answer
    sums = np.tensordot(shares, np.nan_to_num(answers), axes=1)
    return np.asarray(safe_divide(sums, answering[:, None])), answering


def accuracy_interval(n_right: int, n: int) -> tuple[float, float, float]:
    """Return the share of right answers with the bounds of Wilson's interval of 95 %."""
    if not n:
        return np.nan, np.nan, np.nan
    interval = binomtest(n_right, n).proportion_ci(method="wilson")
    return n_right / n, float(interval.low), float(interval.high)
