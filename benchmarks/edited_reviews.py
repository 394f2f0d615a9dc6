"""Reviews, and the same reviews edited until their label is the opposite.

``python -m benchmarks.edited_reviews [FOLDER]``

The folder is `sentiment` of the public counterfactually augmented reviews
(acmi-lab/counterfactually-augmented-data): `orig/train.tsv`, `new/train.tsv` and both's `test.tsv`,
with the columns Sentiment and Text, and `combined/paired/train_paired.tsv`, whose `batch_id` is the
same for a review and its edited twin. A model that uses the words that people would is right about
both. Trusted words are those of the lexicon that `vaderSentiment` ships, where it is installed, and
stop words name kinds of films. Without a folder the texts are generated requests, with a last
sentence of the other mood.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from sklearn_clsattn.text import TokenVectorizer

from . import pages
from .models import LOGISTIC, OURS, logistic, nb_svm, quality, text_classifier
from .problems import load

KINDS_OF_FILMS = [
    "horror",
    "romance",
    "romantic",
    "comedy",
    "drama",
    "documentary",
    "western",
    "musical",
    "thriller",
    "fantasy",
    "sequel",
    "remake",
    "series",
    "cartoon",
    "anime",
    "zombie",
]


class Reviews(NamedTuple):
    """Texts, their labels, and the number of the review that each is or was edited from."""

    texts: NDArray[Any]
    labels: NDArray[Any]
    numbers: NDArray[np.intp]


def read(file: Path) -> Reviews:
    """Return the reviews of a file."""
    frame = pd.read_csv(file, sep="\t", quoting=3, keep_default_na=False)
    numbers = frame["batch_id"] if "batch_id" in frame else np.arange(len(frame))
    labels = (frame["Sentiment"] == "Positive").to_numpy(dtype=int)
    return Reviews(frame["Text"].to_numpy(dtype=object), labels, np.asarray(numbers))


def generated(texts: Any, labels: Any) -> tuple[Reviews, Reviews]:
    """Return texts and the same with a last sentence of the other label."""
    last = "But now I am not happy at all.", "But now I am happy, thank you."
    is_second = (labels == np.unique(labels)[1]).astype(int)
    edited = [f"{text} {last[1 - label]}" for text, label in zip(texts, is_second, strict=True)]
    numbers = np.arange(len(labels))
    first = Reviews(np.asarray(texts, dtype=object), is_second, numbers)
    return first, Reviews(np.array(edited, dtype=object), 1 - is_second, numbers)


def lexicon() -> dict[int, list[str]] | None:
    """Return the words of a public lexicon, bad (0) and good ones (1), None where it is absent."""
    package = importlib.util.find_spec("vaderSentiment")
    if package is None or package.origin is None:
        return None
    words: dict[int, list[str]] = {0: [], 1: []}
    file = Path(package.origin).with_name("vader_lexicon.txt")
    for line in file.read_text(encoding="utf-8").splitlines():
        word, mean, *_ = line.split("\t")
        if word.isalpha():
            words[int(float(mean) > 0)].append(word)
    return words


def both(first: Reviews, second: Reviews) -> Reviews:
    """Return the reviews of two sets as one."""
    return Reviews(*(np.concatenate(parts) for parts in zip(first, second, strict=True)))


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = pages.parser("edited_reviews", __doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    # 1) originals, edited, and both
    if options.folder:
        originals, edited = (read(options.folder / kind / "train.tsv") for kind in ("orig", "new"))
        tests = [read(options.folder / kind / "test.tsv") for kind in ("orig", "new")]
        paired = read(options.folder / "combined" / "paired" / "train_paired.tsv")
    else:
        mood = load("mood")
        originals, edited = generated(mood.X_train, mood.y_train)
        tests = list(generated(mood.X_test, mood.y_test))
        paired = both(originals, edited)
    # 2) every model, trained on each
    models = {
        LOGISTIC: logistic,
        "NB-SVM(C=1)": lambda: make_pipeline(TokenVectorizer(ngram_range=(1, 2)), nb_svm(1.0, 2)),
        OURS: text_classifier,
    }
    rows = []
    for where, train in (("originals", originals), ("edited", edited), ("both", paired)):
        for title, make in models.items():
            model = make().fit(train.texts, train.labels)
            rows.append([where, title, *_measures(model, tests)])
    model = text_classifier().fit(paired.texts, paired.labels, groups=paired.numbers)
    rows.append(["both", f"{OURS}, groups", *_measures(model, tests)])
    # 3) with words that people know
    trusted_words = lexicon()
    if trusted_words is None:
        print("vaderSentiment is not installed: no trusted words.", file=sys.stderr)
    for where, train in (("originals", originals), ("edited", edited)):
        model = text_classifier(stop_words=KINDS_OF_FILMS).fit(train.texts, train.labels)
        rows.append([where, f"{OURS}, stop words", *_measures(model, tests)])
        if trusted_words is not None:
            model = text_classifier(trusted_words=trusted_words).fit(train.texts, train.labels)
            rows.append([where, f"{OURS}, trusted words", *_measures(model, tests)])
    header = "trained on", "", "originals", "edited"
    notes = "Accuracy and log loss of reviews for testing, and of the same reviews edited."
    pages.publish(
        options.output, "Edited reviews", "edited_reviews FOLDER", notes, pages.table(header, rows)
    )
    return 0


def _measures(model: Any, tests: list[Reviews]) -> list[str]:
    """Return accuracy and log loss of each test."""
    found = [quality(model, test.texts, test.labels) for test in tests]
    return [f"{one['accuracy']:.3f} {one['log_loss']:.3f}" for one in found]


if __name__ == "__main__":
    sys.exit(main())
