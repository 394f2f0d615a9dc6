"""From raw texts to counts, fast: word counts, and bags of words in context."""

from ._context_vectorizer import ContextVectorizer
from ._token_vectorizer import TokenVectorizer
from ._tokens import WORDS_AND_PUNCTUATION as WORDS_AND_PUNCTUATION
from ._word_vectors import WordVectors

__all__ = ["ContextVectorizer", "TokenVectorizer", "WordVectors"]
