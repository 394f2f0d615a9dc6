"""Answers about words: whether they come true, how small they are, and how long they take.

``python -m benchmarks.bench_words [--reviews FOLDER] [--against CHECKOUT] [--documents 1500]``

An answer says that deleting some words of a text changes its prediction, and to which probability.
Here the words are deleted where the answer marks them and the text is predicted again. With
``--against``, the same is done with the answers of another checkout. Sizes are compared with those
of trying all sets of words. Training texts alone are used, of which the models see a half.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

from . import command_line, pages, problems
from .processes import in_process

LENGTHS = ((10, 14), (55, 65), (180, 220), (900, 1100))  # words of the texts that are timed
PER_LENGTH = 20


def texts_of(name: str, folder: Path | None) -> tuple[Any, Any]:
    """Return texts and labels in a random order."""
    if name.startswith("requests"):
        requests = load_requests()
        texts, labels = np.array(requests.data, dtype=object), requests[name.split()[1]]
    else:
        assert folder is not None
        texts, labels, is_test = problems.read_set(folder / "explore" / f"{name}.csv.gz")
        texts, labels = texts[~is_test], labels[~is_test]
    order = np.random.default_rng(0).permutation(len(texts))
    return texts[order], np.asarray(labels)[order]


MODELS = {
    "requests topic": ("requests topic", lambda: TextClassifier()),
    "requests mood": ("requests mood", lambda: TextClassifier()),
    "requests mood, without characters": (
        "requests mood",
        lambda: TextClassifier(characters=None),
    ),
    "sst2, single words": (
        "sst2",
        lambda: make_pipeline(CountVectorizer(), ClsAttentionClassifier()),
    ),
}


def answers(checkout: str, model: str, folder: str, n_documents: int) -> dict[str, Any]:
    """Return the answers of a checkout's package about words, and whether they come true."""
    name, make = MODELS[model]
    texts, labels = texts_of(name, Path(folder))
    half = min(len(texts) // 2, 5_000)
    fitted = make().fit(texts[:half], labels[:half])
    asked = texts[half : half + n_documents].tolist()
    start = process_time()
    sets = explain(fitted, asked).counterfactual("words")
    seconds = process_time() - start
    claims, edited, promised, sizes = [], [], [], []
    for text, one in zip(asked, sets, strict=True):
        if not one.found or not one.tokens:
            continue
        claims.append(one)
        # Answers of earlier versions have the places of the words alone.
        edited.append(one.edited_text if hasattr(one, "edited_text") else _cut(text, one.marks[0]))
        promised.append(float(one.probabilities[-1]))
        sizes.append(len(one.tokens))
    found = fitted.predict_proba(edited)
    columns = [fitted.classes_.tolist().index(one.before) for one in claims]
    differences = np.abs(found[np.arange(len(claims)), columns] - promised)
    after = fitted.predict(edited)
    unchanged = [bool(one.before == label) for one, label in zip(claims, after, strict=True)]
    return {
        "claims": len(claims),
        "unchanged": float(np.mean(unchanged)),
        "mean difference": float(differences.mean()),
        "90 %": float(np.quantile(differences, 0.9)),
        "most": float(differences.max()),
        "denied": _denied(fitted, asked, sets),
        "size": float(np.mean(sizes)),
        "milliseconds": 1000 * seconds / len(asked),
    }


def _cut(text: str, spans: Any) -> str:
    """Return a text without some spans, which are in order, with single spaces."""
    for start, stop in reversed(list(spans)):
        text = text[:start] + text[stop:]
    return re.sub(r" +", " ", text).strip()


def _denied(fitted: Any, asked: list[str], sets: Any) -> str:
    """Return how many answers deny single words that suffice, of those with several words."""
    wrong = several = 0
    for text, document, one in zip(asked, sets.explanation, sets, strict=True):
        if not one.found or not one.at_least or one.at_least < 2 or len(one.tokens) < 2:
            continue
        several += 1
        shown = document.texts[0][0]
        words: dict[str, list[tuple[int, int]]] = {}
        for start, stop in shown.words.tolist():
            words.setdefault(text[start:stop].lower(), []).append((start, stop))
        named = {token.lower() for token in one.tokens}
        singles = [_cut(text, spans) for word, spans in words.items() if word in named]
        wrong += bool(singles) and bool((fitted.predict(singles) != one.before).any())
    return f"{wrong} of {several}"


def sizes_tried(folder: Path) -> list[tuple[Any, ...]]:
    """Return rows on the sizes of sets for texts of 12 words, beside those of trying all sets."""
    from sklearn_clsattn.inspection import word_search

    rows = []
    for name in ("sst2", "trec"):
        texts, labels = texts_of(name, folder)
        fitted = TextClassifier().fit(texts[:3000], labels[:3000])
        some = [text for text in texts[3000:] if len(text.split()) == 12][:100]
        explanation = explain(fitted, some)
        usual = explanation.counterfactual("words").sizes
        with patch.multiple(word_search, _MAX_CHOICES=10**9, _MAX_AT_ONCE=10**9):
            smallest = explanation.counterfactual("words").sizes
        with patch.multiple(word_search, _MAX_CHOICES=0, _MAX_AT_ONCE=0):
            greedy = explanation.counterfactual("words").sizes
        for kind, sizes in (("as it is", usual), ("without trying pairs", greedy)):
            both = ~np.isnan(smallest)
            reached = both & ~np.isnan(sizes)
            rows.append(
                (
                    f"{name}, {kind}",
                    int(both.sum()),
                    int((both & np.isnan(sizes)).sum()),
                    f"{np.mean(sizes[reached]):.2f}",
                    f"{np.mean(smallest[reached]):.2f}",
                    f"{np.mean(sizes[reached] == smallest[reached]):.1%}",
                )
            )
    return rows


def times(reviews: Path) -> list[tuple[Any, ...]]:
    """Return rows of milliseconds of the processor for an answer, by length of the text."""
    rows = []
    texts, labels = problems.labelled_texts(problems.REVIEWS["imdb"], reviews, "train")
    order = np.random.default_rng(0).permutation(len(texts))
    texts, labels = texts[order], labels[order]
    imdb = TextClassifier().fit(texts[:5000], labels[:5000])
    others = texts[5000:]
    for low, high in LENGTHS:
        some = [text for text in others if low <= len(text.split()) <= high][:PER_LENGTH]
        if len(some) < PER_LENGTH:  # shorter texts are the beginnings of longer ones
            some = [" ".join(text.split()[:high]) for text in others[:PER_LENGTH]]
        rows.append((f"reviews, {low} to {high} words", *_milliseconds(imdb, some)))
    texts, labels = texts_of("banking77", reviews)
    banking = TextClassifier().fit(texts[:4000], labels[:4000])
    rows.append(("banking77, 77 classes, all lengths", *_milliseconds(banking, texts[4000:4200])))
    return rows


def _milliseconds(model: Any, texts: Any) -> tuple[str, str, str]:
    """Return the number of texts, and the median and the longest time for one."""
    explanation = explain(model, list(texts))
    seconds = []
    for one in explanation:
        start = process_time()
        one.counterfactual("words")
        seconds.append(process_time() - start)
    return (
        str(len(seconds)),
        f"{1000 * np.median(seconds):.0f}",
        f"{1000 * max(seconds):.0f}",
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the page."""
    parser = command_line.parser("bench_words", __doc__, reviews=True)
    parser.add_argument("--against", type=Path, help="another checkout of the project")
    parser.add_argument("--documents", type=int, default=1500, help="texts to ask about")
    parser.add_argument("-o", "--output", type=Path, help="page to write")
    options = parser.parse_args(arguments)
    folder = problems.find_reviews(options.reviews)
    rows = []
    for model, (name, _) in MODELS.items():
        if folder is None and not name.startswith("requests"):
            print(f"{name}: skipped, its texts are not there", file=sys.stderr)
            continue
        for checkout in filter(None, (command_line.ROOT, options.against)):
            given = checkout.resolve(), model, options.reviews, options.documents
            measured = in_process("benchmarks.bench_words.answers", *given, checkout=checkout)
            label = "this checkout" if checkout == command_line.ROOT else _commit(checkout)
            rows.append((model, label, *_shown(measured)))
    header = ("model", "answers of", "claims", "prediction does not change")
    header += ("difference: mean", "90 %", "most", "single words denied", "words", "ms a text")
    parts = ["## Do they come true?", pages.table(header, rows)]
    if folder is not None:
        header = ("texts of 12 words", "have a set", "none found", "words", "fewest", "smallest")
        parts += ["## How small are they?", pages.table(header, sizes_tried(folder))]
        header = ("texts", "number", "median, ms", "longest, ms")
        parts += ["## How long do they take? (processor)", pages.table(header, times(folder))]
    command = " ".join(["python -m benchmarks.bench_words", *(arguments or sys.argv[1:])])
    pages.publish(pages.page("Answers about words", command, *parts), options.output)
    return 0


def _commit(checkout: Path) -> str:
    """Return the short name of a checkout's commit."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _shown(measured: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row."""
    return (
        f"{measured['claims']:,}",
        f"{measured['unchanged']:.1%}",
        f"{measured['mean difference']:.3f}",
        f"{measured['90 %']:.3f}",
        f"{measured['most']:.3f}",
        measured["denied"],
        f"{measured['size']:.2f}",
        f"{measured['milliseconds']:.0f}",
    )


if __name__ == "__main__":
    sys.exit(main())
