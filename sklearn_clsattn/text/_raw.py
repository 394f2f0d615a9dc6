"""The raw documents of a vectorizer: whether integers can count them, and their tokens."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np

from .._validation import is_missing
from ._tokens import BETWEEN_SPACES, PATTERNS

# Characters of all documents from which on counting integers is faster than scikit-learn's code.
MIN_SIZE = 20_000
_FEW_DOCUMENTS = 5_000
_UNKNOWN_SIZE = 1_000  # characters of a file that has not been read


def fast_pattern(vectorizer: Any) -> str | None:
    """Return the pattern of the tokens to count for a vectorizer; None if scikit-learn counts."""
    pattern: str | None = vectorizer.token_pattern
    if vectorizer.analyzer == "char_wb":
        pattern = BETWEEN_SPACES
    elif (
        vectorizer.analyzer != "word"
        or vectorizer.tokenizer is not None
        or (pattern not in PATTERNS and vectorizer.input != "content")  # files are read once
    ):
        return None
    bounds = vectorizer.ngram_range
    if len(bounds) != 2 or not all(isinstance(n, Integral) for n in bounds):
        return None
    dtype = vectorizer.dtype
    usual = dtype is not None and np.dtype(dtype).char in "?bBhHiIlLqQfd"
    return pattern if usual and 1 <= bounds[0] <= bounds[1] else None


def peek(
    vectorizer: Any, raw_documents: Iterable[Any], min_size: int
) -> tuple[bool, Iterable[Any]]:
    """Return whether documents have `min_size` characters, and all of them, from the first on."""
    size = 0
    documents = iter(raw_documents)
    seen = []
    for document in documents:
        seen.append(document)
        known = vectorizer.input == "content" and isinstance(document, str | bytes)
        size += len(document) if known else _UNKNOWN_SIZE
        if size >= min_size:
            return True, chain(seen, documents)
    return False, seen


def texts(vectorizer: Any, raw_documents: Iterable[Any]) -> Iterator[str]:
    """Yield documents decoded and preprocessed as a vectorizer has it."""
    preprocess = vectorizer.build_preprocessor()
    for document in raw_documents:
        text = preprocess(vectorizer.decode(document))
        if not isinstance(text, str):
            re.search("", text)  # raises what scikit-learn raises: a string is expected
        yield text


def checked(raw_documents: Iterable[Any]) -> Iterator[Any]:
    """Yield documents, and raise ValueError for one that is missing."""
    for at, document in enumerate(raw_documents):
        if is_missing(document):
            raise ValueError(
                f"Documents must be texts, but the one at position {at} is {document!r}: leave it "
                "out, with its label if it has one, or pass '' in its place."
            )
        yield document


def document_number(bound: Any, n_documents: int) -> float:
    """Return the number of documents that `min_df` or `max_df` says: itself, or its share."""
    return float(bound if isinstance(bound, Integral) else bound * n_documents)


def least_documents(bound: Any, n_documents: int, *, otherwise: int) -> float:
    """Return what `min_df` says; "auto" keeps what is in one of few documents."""
    if bound == "auto":
        return 1 if n_documents < _FEW_DOCUMENTS else otherwise
    return document_number(bound, n_documents)


def stop_words(vectorizer: Any) -> Iterable[str]:
    """Return the words that a vectorizer leaves out."""
    return () if vectorizer.analyzer == "char_wb" else vectorizer.get_stop_words() or ()
