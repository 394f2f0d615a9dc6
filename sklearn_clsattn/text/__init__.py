"""From raw texts to counts, fast, and to classes by words alone."""

from ._context_vectorizer import ContextVectorizer
from ._keywords import Keywords
from ._token_vectorizer import TokenVectorizer
from ._tokens import WORDS_AND_PUNCTUATION as WORDS_AND_PUNCTUATION
from ._word_vectors import WordVectors

__all__ = ["ContextVectorizer", "Keywords", "TokenVectorizer", "WordVectors"]
