"""Run the ``sklearn-clsattn`` command as ``python -m sklearn_clsattn``."""

import sys

from sklearn_clsattn.cli import main

if __name__ == "__main__":
    sys.exit(main())
