"""Data to fit on: synthetic documents, customers' messages, files of reviews, IMDB reviews."""

from ._imdb import fetch_imdb
from ._requests import load_requests
from ._reviews import load_reviews
from ._synthetic import make_token_classification

__all__ = ["fetch_imdb", "load_requests", "load_reviews", "make_token_classification"]
