"""What the paper reports in numbers, from its public reviews and poster; nothing here is ours.

D. Wu, A. Shevchenko, S. Oymak, M. Mondelli, "Attention with Trained Embeddings Provably Selects
Important Tokens", NeurIPS 2025, arXiv:2505.17282. Means over bins of the posterior difference.
"""

from __future__ import annotations

import numpy as np

EMBEDDING_DIM = 2048
FROZEN_ACCURACY = 0.72
TRAINED_ACCURACY = 0.95
FROZEN_ERROR, TRAINED_ERROR = 0.6, 0.1
SCATTER_RATIO_VALUES = 8.0
SCATTER_RATIO_SCORES = 6.0


def _row(numbers: str) -> np.ndarray:
    return np.array([float(number) for number in numbers.split()])


BINS = _row(
    "-0.95 -0.85 -0.76 -0.66 -0.56 -0.47 -0.37 -0.28 -0.18 -0.08 "
    "0.01 0.11 0.21 0.30 0.40 0.50 0.59 0.69 0.79 0.89"
)
TWO_LAYER_SCORES = _row(
    "15.47 7.37 7.79 4.64 3.68 1.60 0.68 -0.61 -2.22 -2.80 "
    "-3.92 -3.18 -2.23 -1.43 -0.15 0.29 3.21 2.98 7.90 12.44"
)
TWO_LAYER_VALUES = _row(
    "-1.07 -1.14 -0.82 -0.69 -0.58 -0.65 -0.53 -0.44 -0.18 -0.13 "
    "0.01 0.11 0.26 0.39 0.54 0.63 0.81 0.73 0.61 0.93"
)
MLP_SCORES = _row(
    "4.76 4.61 3.26 3.08 2.80 2.06 1.60 1.43 0.89 0.67 "
    "0.59 0.71 1.11 1.61 2.02 2.30 3.28 3.39 4.84 6.10"
)
MLP_VALUES = _row(
    "0.13 0.24 0.06 0.09 0.04 0.10 0.01 0.04 -0.01 0.03 "
    "0.06 0.11 0.18 0.24 0.34 0.44 0.57 0.72 0.87 1.40"
)
# Four classes of Yelp: the axis of each table, and the means of E.v_k along it.
CLASS_BINS = {
    2: _row(
        "-0.026 -0.020 -0.017 -0.014 -0.011 -0.008 -0.005 -0.002 0.001 0.005 "
        "0.008 0.011 0.014 0.017 0.020 0.023 0.026 0.029 0.032"
    ),
    4: _row(
        "-0.021 -0.018 -0.016 -0.014 -0.011 -0.009 -0.007 -0.004 -0.002 0.000 "
        "0.002 0.005 0.007 0.009 0.012 0.014 0.016 0.019 0.021"
    ),
}
CLASS_VALUES = {
    2: _row(
        "-42.375 -27.306 -51.164 -20.713 -40.923 -41.925 -41.884 -35.691 18.255 35.633 "
        "30.524 56.211 44.184 23.280 45.341 43.210 62.935 81.274 53.548"
    ),
    4: _row(
        "-64.776 -66.074 -37.040 -32.499 -31.109 -30.686 -26.341 -23.153 -22.310 -0.648 "
        "31.915 27.601 30.951 29.300 19.455 29.693 41.506 34.151 21.060"
    ),
}
