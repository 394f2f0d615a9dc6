"""Run all experiments: ``python -m benchmarks.paper [--reviews FOLDER]`` (``make paper``)."""

import sys

from .run import main

if __name__ == "__main__":
    sys.exit(main())
