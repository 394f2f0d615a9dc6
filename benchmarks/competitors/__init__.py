"""The competitors, one file each; adding one is adding its file and its name here."""

from . import (
    linear_svc,
    logistic_counts,
    logistic_tfidf,
    multinomial_nb,
    nb_svm,
    ours,
    ours_given_c,
)
from .base import Competitor

COMPETITORS: dict[str, Competitor] = {
    module.COMPETITOR.name: module.COMPETITOR
    for module in (
        ours,
        ours_given_c,
        logistic_counts,
        logistic_tfidf,
        nb_svm,
        linear_svc,
        multinomial_nb,
    )
}
