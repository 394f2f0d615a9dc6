"""Private names of scikit-learn that several modules import: a new release may change them."""

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
    validate_params,  # checks the arguments of a function
)
from sklearn.utils.validation import (
    _check_estimator_name,  # names an estimator in messages
    _check_sample_weight,  # reads the weights of documents
    _check_y,  # reads labels
    _get_feature_names,  # reads the names of a data frame's columns
)
