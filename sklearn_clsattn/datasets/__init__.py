"""Data sets: synthetic documents, customer messages, and files of texts and labels."""

from ._requests import load_requests
from ._synthetic import make_token_classification

__all__ = ["load_requests", "make_token_classification"]
