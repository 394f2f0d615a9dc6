"""Data to fit on: synthetic documents, files of reviews and the IMDB reviews."""

from ._imdb import fetch_imdb
from ._reviews import load_reviews
from ._synthetic import make_token_classification

__all__ = ["fetch_imdb", "load_reviews", "make_token_classification"]
