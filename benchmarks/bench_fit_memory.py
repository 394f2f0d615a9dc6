"""What a fit takes beyond X at its peak, in bytes an entry and a trained number.

Every case runs in a process of its own; peaks are of the resident size. With few tokens entries
decide, with many tokens and classes trained numbers do.
"""

import resource
import subprocess
import sys
import warnings

import numpy as np
import scipy.sparse as sp

CASES = [  # entries, tokens, classes, C, type of the entries
    (5_000_000, 10_000, 2, "1.0", "int64"),
    (5_000_000, 10_000, 2, "auto", "int64"),
    (5_000_000, 10_000, 2, "1.0", "float64"),
    (1_000_000, 500_000, 2, "1.0", "int64"),
    (1_000_000, 200_000, 20, "1.0", "int64"),
    (1_000_000, 200_000, 20, "auto", "int64"),
    (1_000_000, 200_000, 20, "1.0", "float64"),
    (5_000_000, 200_000, 20, "1.0", "int64"),
]
LENGTH = 100


def peak() -> int:
    """Return the largest resident size of this process so far, in bytes (Linux)."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(entries, tokens, n_classes, C, dtype):
    """Return the bytes that a fit adds to the peak of this process."""
    from sklearn_clsattn import ClsAttentionClassifier
    from sklearn_clsattn._core import fit  # noqa: F401 - libraries are no part of it

    rng, n = np.random.default_rng(0), entries // LENGTH
    columns = rng.integers(0, tokens, n * LENGTH, dtype=np.int32)
    indptr = np.arange(0, n * LENGTH + 1, LENGTH, dtype=np.int32)
    X = sp.csr_matrix((np.ones(n * LENGTH, dtype), columns, indptr), shape=(n, tokens))
    X.sum_duplicates()
    before = peak()
    model = ClsAttentionClassifier(C=C if C == "auto" else float(C), max_iter=8)
    model.fit(X, np.arange(n) % n_classes)
    return peak() - before


def main():
    """Print a line a case; with the arguments of one, its bytes alone."""
    warnings.simplefilter("ignore")
    if arguments := sys.argv[1:]:
        entries, tokens, n_classes, C, dtype = arguments
        print(measure(int(entries), int(tokens), int(n_classes), C, dtype))
        return
    print("| entries | tokens | classes | C | type | peak | an entry | a trained number |")
    print("|---|---|---|---|---|---|---|---|")
    for case in CASES:
        command = [sys.executable, __file__, *map(str, case)]
        size = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        entries, tokens, n_classes, *rest = case
        numbers = tokens * (2 if n_classes == 2 else 1 + n_classes)
        shown = [f"{entries:,}", f"{tokens:,}", n_classes, *rest, f"{size / 1e9:.2f} GB"]
        shown += [f"{size / entries:.0f}", f"{size / numbers:.0f}"]
        print("|", " | ".join(map(str, shown)), "|", flush=True)


if __name__ == "__main__":
    main()
