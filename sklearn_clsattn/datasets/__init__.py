"""Data sets: synthetic documents, and customer messages."""

from ._requests import load_requests
from ._synthetic import make_token_classification

__all__ = ["load_requests", "make_token_classification"]
