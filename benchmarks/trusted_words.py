"""Words beside labels: ``python -m benchmarks.trusted_words --explore FOLDER``.

Of each set there are the words of :data:`.keywords.LISTS` and, for two sets of topics, more of the
same kind, written down before the first run. With few labels and with many, the classifier learns
from the labels alone, and with these trusted words. Each draw has a label of each class. Without a
folder the texts are generated requests.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from . import pages
from .keywords import LISTS
from .models import quality, text_classifier
from .problems import REQUESTS, Problem, load

DRAWS = {20: 5, 100: 3, 300: 3, 2000: 1}
MOST_TEXTS = 3_000  # of the test part
LONGEST = 2  # words of a phrase, as the vectorizer's n-grams

MORE = {
    "agnews": {
        "1": "military, police, killed, iraq",
        "2": "cup, win, football, olympic",
        "3": "oil, prices, bank, investors",
        "4": "microsoft, google, space, users",
    },
    "20news": {
        "alt.atheism": "religion, argument, beliefs, secular",
        "comp.graphics": "3d, gif, jpeg, pixel",
        "comp.os.ms-windows.misc": "drivers, desktop, file manager, ini",
        "comp.sys.ibm.pc.hardware": "scsi, card, drive, disk",
        "comp.sys.mac.hardware": "se, simms, nubus, duo",
        "comp.windows.x": "server, x11r5, window manager, client",
        "misc.forsale": "condition, price, sold, obo",
        "rec.autos": "tires, honda, auto, driving",
        "rec.motorcycles": "dod, ride, bmw, motorcycles",
        "rec.sport.baseball": "yankees, pitching, mets, batting",
        "rec.sport.hockey": "leafs, bruins, penguins, goal",
        "sci.crypt": "key, encrypted, pgp, escrow",
        "sci.electronics": "circuits, chip, wire, signal",
        "sci.med": "health, drug, symptoms, infection",
        "sci.space": "satellite, spacecraft, mars, lunar",
        "soc.religion.christian": "god, catholic, scripture, sin",
        "talk.politics.guns": "firearm, shooting, amendment, batf",
        "talk.politics.mideast": "jews, palestine, armenians, turkey",
        "talk.politics.misc": "gay, liberal, libertarian, economic",
        "talk.religion.misc": "sandvik, koresh, spirit, occult",
    },
}


def words_of(name: str, labels: list[Any]) -> dict[Any, list[str]]:
    """Return the words of each class of a set that are in no other class, and not too long."""
    given = {}
    for label in labels:
        more = MORE.get(name, {}).get(str(label))
        words = LISTS[name][str(label)].split(", ") + (more.split(", ") if more else [])
        given[label] = [word for word in words if len(word.split()) <= LONGEST]
    every_word = [word for words in given.values() for word in words]
    return {
        label: [word for word in words if every_word.count(word) == 1]
        for label, words in given.items()
    }


def drawn(y: Any, n_labels: int, seed: int) -> Any:
    """Return the rows of some labels: the first of each class, and others."""
    order = np.random.default_rng(seed).permutation(len(y))
    _, first = np.unique(y[order], return_index=True)
    others = np.setdiff1d(np.arange(len(y)), first)
    return order[np.concatenate([first, others])][:n_labels]


def measured(name: str, problem: Problem, n_labels: int) -> list[Any]:
    """Return a row of the table."""
    words = words_of(name, np.unique(problem.y_train).tolist())
    test = problem.X_test[:MOST_TEXTS], problem.y_test[:MOST_TEXTS]
    found = []
    for seed in range(DRAWS[n_labels]):
        rows = drawn(problem.y_train, n_labels, seed)
        for trusted_words in (None, words):
            model = text_classifier(trusted_words=trusted_words)
            model.fit(problem.X_train[rows], problem.y_train[rows])
            one = quality(model, *test)
            found.append([100 * one["accuracy"], one["log_loss"]])
    labels, both = np.array(found).reshape(-1, 2, 2).mean(axis=0)
    change = both - labels
    return [
        name,
        n_labels,
        f"{labels[0]:.1f}",
        f"{both[0]:.1f}",
        f"{change[0]:+.1f}",
        f"{labels[1]:.3f}",
        f"{both[1]:.3f}",
    ]


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets, and write the page."""
    parser = pages.parser("trusted_words", __doc__, "explore")
    parser.add_argument("--sets", nargs="+", choices=LISTS, metavar="NAME", default=None)
    parser.add_argument("--labels", nargs="+", type=int, metavar="N", default=DRAWS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    for name in options.sets or (LISTS if options.explore else REQUESTS):
        problem = load(name, explore=options.explore)
        for n_labels in options.labels:
            rows.append(measured(name, problem, n_labels))
            print(*rows[-1], file=sys.stderr, flush=True)
    header = ["set", "labels", "accuracy", "with words", "", "log loss", "with words"]
    draws = ", ".join(f"{n} of {size}" for size, n in DRAWS.items())
    notes = (
        "Accuracy (%) and log loss on test texts of the classifier with some labels, and with six "
        "trusted words a class as well (ten for agnews and 20news); means of several draws of "
        f"labels ({draws})."
    )
    pages.publish(
        options.output,
        "Words beside labels",
        "trusted_words --explore FOLDER",
        notes,
        pages.table(header, rows),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
