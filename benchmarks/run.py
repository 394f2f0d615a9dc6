"""Run the benchmark: ``python benchmarks/run.py [--reviews FOLDER] [--fast]`` (``make bench``)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.suite import main

if __name__ == "__main__":
    sys.exit(main())
