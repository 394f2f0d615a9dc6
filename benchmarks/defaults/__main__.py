"""``python -m benchmarks.defaults [QUESTION ...]``."""

import sys

from .engine import main

sys.exit(main())
