"""How the defaults are chosen: ``python -m benchmarks.defaults``."""
