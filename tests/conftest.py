"""What all tests share: a hypothesis profile in which every run draws the same examples."""

from hypothesis import settings

settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.load_profile("deterministic")
