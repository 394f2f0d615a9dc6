"""Make ``python -m sklearn_clsattn`` do what the ``sklearn-clsattn`` command does."""

import sys

from sklearn_clsattn.cli import main

if __name__ == "__main__":
    sys.exit(main())
