"""All private names of scikit-learn in this package: what a new release of it may change."""

from typing import TYPE_CHECKING, Any

from sklearn.base import (
    _fit_context,  # validates parameters before a fit, and clears up its callbacks
)
from sklearn.utils._openmp_helpers import (
    _openmp_effective_n_threads,  # the number of cores, or OMP_NUM_THREADS
)
from sklearn.utils._param_validation import (
    Interval,  # numbers that a parameter may have
    Options,  # objects that a parameter may have
    RealNotInt,  # the type of shares, where integers are counts
    StrOptions,  # strings that a parameter may have
    validate_parameter_constraints,  # checks the parameters of an estimator from a file
    validate_params,  # checks the arguments of a function
)
from sklearn.utils.parallel import (
    _get_threadpool_controller,  # limits the threads of BLAS; found once for a process
)
from sklearn.utils.validation import (
    _check_estimator_name,  # names an estimator in messages
    _check_sample_weight,  # reads the weights of documents
    _get_feature_names,  # reads the names of a data frame's columns
)

if TYPE_CHECKING:
    from sklearn.linear_model._base import LinearClassifierMixin

__all__ = [
    "Interval",
    "LinearClassifierMixin",
    "Options",
    "RealNotInt",
    "StrOptions",
    "_check_estimator_name",
    "_check_sample_weight",
    "_fit_context",
    "_get_feature_names",
    "_get_threadpool_controller",
    "_openmp_effective_n_threads",
    "validate_parameter_constraints",
    "validate_params",
]


def __getattr__(name: str) -> Any:
    """Import on first use what loads more of scikit-learn than a fit needs."""
    if name != "LinearClassifierMixin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The base of linear classifiers, by which those in a file are recognised.
    from sklearn.linear_model._base import LinearClassifierMixin

    return LinearClassifierMixin
