"""Run it: ``python -m benchmarks.defaults --explore FOLDER [--reviews FOLDER] [QUESTION ...]``."""

import sys

from .run import main

if __name__ == "__main__":
    sys.exit(main())
