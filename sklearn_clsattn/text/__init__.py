"""Raw text to numbers, fast: counts of words, and bags of words in context."""

from ._context_vectorizer import ContextVectorizer, Occurrences
from ._hashing_vectorizer import HashingTokenVectorizer
from ._text_classifier import make_text_classifier
from ._token_vectorizer import TokenVectorizer
from ._tokens import WORDS_AND_PUNCTUATION

__all__ = [
    "WORDS_AND_PUNCTUATION",
    "ContextVectorizer",
    "HashingTokenVectorizer",
    "Occurrences",
    "TokenVectorizer",
    "make_text_classifier",
]
