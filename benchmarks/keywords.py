"""Words in place of labels: ``python -m benchmarks.keywords --explore FOLDER``.

For each class up to six words, written down after at most the first lines of a set were read, and
not chosen by results (those of "topic: product" were replaced after reading messages, as no text
had the first). The model learns the training texts without labels. Beside it are the package's
classifier with 100 labels, and the other texts without labels; the same with the words as its
teacher; and that with all labels. Without a folder the texts are generated requests.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

from sklearn_clsattn.text import Keywords

from . import pages
from .models import quality, text_classifier
from .problems import REQUESTS, Problem, load
from .processes import timed

SIZES = 1, 2, 4, 6
N_LABELS = 100
LONG = {"20news"}  # sets that take minutes: only with the most words, or some labels

# Phrases are between commas; the first are those that a person thinks of first.
LISTS = {
    "topic": {
        "billing": "invoice, charged, payment, bill, card, refund",
        "delivery": "delivered, parcel, courier, late, arrived, tracking",
        "product": "made of, clean, came loose, manual, switch on, fit",
        "returns": "return, send it back, exchange, returned, return label, sent back",
    },
    "mood": {
        "content": "thank, thanks, happy, great, perfect, love",
        "upset": "angry, disappointed, unhappy, terrible, complaint, annoyed",
    },
    "agnews": {
        "1": "government, minister, president, war, troops, elections",
        "2": "game, team, season, coach, players, league",
        "3": "stocks, shares, profit, market, company, sales",
        "4": "software, internet, computer, technology, web, scientists",
    },
    "20news": {
        "alt.atheism": "atheism, atheists, atheist, morality, belief, islam",
        "comp.graphics": "graphics, image, images, rendering, polygon, animation",
        "comp.os.ms-windows.misc": "windows, microsoft, dos, program manager, windows 3, win",
        "comp.sys.ibm.pc.hardware": "motherboard, bios, ide, pc, controller, isa",
        "comp.sys.mac.hardware": "mac, apple, macintosh, quadra, powerbook, centris",
        "comp.windows.x": "motif, xterm, x window, widget, x11, xlib",
        "misc.forsale": "sale, sell, for sale, shipping, offer, asking",
        "rec.autos": "car, cars, engine, dealer, ford, toyota",
        "rec.motorcycles": "bike, motorcycle, riding, helmet, rider, bikes",
        "rec.sport.baseball": "baseball, pitcher, hitter, innings, braves, home run",
        "rec.sport.hockey": "hockey, nhl, goalie, puck, playoffs, stanley cup",
        "sci.crypt": "encryption, clipper, cryptography, nsa, privacy, keys",
        "sci.electronics": "circuit, voltage, electronics, amplifier, resistor, battery",
        "sci.med": "doctor, disease, medical, patients, treatment, medicine",
        "sci.space": "space, nasa, orbit, launch, moon, shuttle",
        "soc.religion.christian": "jesus, church, christ, christians, bible, faith",
        "talk.politics.guns": "gun, guns, firearms, weapons, nra, rifle",
        "talk.politics.mideast": "israel, arab, israeli, armenian, palestinian, turkish",
        "talk.politics.misc": "president, clinton, congress, tax, government, politics",
        "talk.religion.misc": "religion, religious, cult, mormon, prophet, spiritual",
    },
    "trec": {
        "ABBR": "stand for, abbreviation, acronym, abbreviated, short for, stands for",
        "DESC": "why, how do, what does, origin, difference, how does",
        "ENTY": "animal, color, what kind, food, film, game",
        "HUM": "who, whose, president, actor, author, wrote",
        "LOC": "where, country, city, state, river, located",
        "NUM": "how many, when, how much, year, how long, how far",
    },
    "r8": {
        "acq": "acquisition, merger, takeover, acquire, stake, buy",
        "crude": "oil, crude, barrels, opec, petroleum, energy",
        "earn": "profit, net, loss, dividend, quarter, earnings",
        "grain": "wheat, grain, corn, crop, maize, harvest",
        "interest": "interest, rates, rate, prime, lending, bank rate",
        "money-fx": "currency, dollar, yen, exchange, central bank, exchange rates",
        "ship": "ship, vessel, shipping, port, tanker, cargo",
        "trade": "trade, tariffs, imports, exports, deficit, surplus",
    },
    "sms": {
        "ham": "love, home, sorry, tomorrow, ok, lol",
        "spam": "free, win, prize, claim, urgent, cash",
    },
    "subj": {
        "0": "finds, discovers, father, police, wife, murder",
        "1": "film, movie, funny, acting, comedy, entertaining",
    },
    "sst2": {
        "0": "bad, boring, worst, dull, awful, terrible",
        "1": "good, great, funny, best, beautiful, excellent",
    },
    "mr": {
        "0": "bad, boring, worst, dull, awful, terrible",
        "1": "good, great, funny, best, beautiful, excellent",
    },
}


def some_words(name: str, n_words: int) -> dict[str, list[str]]:
    """Return the first words of each class of a set."""
    return {label: words.split(", ")[:n_words] for label, words in LISTS[name].items()}


def with_words(problem: Problem, keywords: dict[str, list[str]]) -> dict[str, Any] | None:
    """Return what a model learns from words alone, and whether it warns.

    None if a class has no text with its words alone.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            model, seconds = timed(
                lambda: Keywords(keywords).fit(problem.X_train), time.process_time
            )
        except ValueError as error:
            print(error, file=sys.stderr)
            return None
    return {
        "coverage": model.coverage_,
        "agreement": model.agreement_,
        "warns": any("do not agree" in str(one.message) for one in caught),
        "seconds": seconds,
        **quality(model, problem.X_test, problem.y_test),
    }


def with_labels(name: str, problem: Problem, keywords: dict[str, list[str]]) -> dict[str, Any]:
    """Return what some labels teach, alone, with the words as teacher, and what all do."""
    texts, labels = problem.X_train, problem.y_train
    test = problem.X_test, problem.y_test
    order = np.random.default_rng(0).permutation(len(labels))
    some, others = order[:N_LABELS], order[N_LABELS:]
    labelled = texts[some], labels[some]
    few = text_classifier().fit(*labelled, unlabeled=texts[others])
    found = {"few": few.score(*test), "every": None, "taught": None}
    if name in LONG:
        return found
    found["every"] = text_classifier().fit(texts, labels).score(*test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of words that do not agree
        try:
            taught = text_classifier().fit(
                *labelled, unlabeled=texts[others], teacher=Keywords(keywords)
            )
        except ValueError:
            return found
    (weight,) = taught.teacher_weights_
    estimate, low, high = taught.teacher_accuracies_[0]
    seems = f"{estimate:.2f} ({low:.2f} to {high:.2f})"
    return found | {"taught": taught.score(*test), "weight": weight, "seems": seems}


def row(name: str, n_words: int, found: dict[str, Any] | None) -> list[Any]:
    """Return a row of the table of words alone."""
    if found is None:
        return [name, n_words, *"–––––"]
    known = "not known" if np.isnan(found["agreement"]) else f"{found['agreement']:.2f}"
    return [
        name,
        n_words,
        f"{found['coverage']:.2f}",
        f"{known}{' (warns)' if found['warns'] else ''}",
        f"{found['accuracy']:.3f}",
        f"{found['log_loss']:.3f}",
        f"{found['seconds']:.1f}",
    ]


def row_of_labels(name: str, words: dict[str, Any] | None, labels: dict[str, Any]) -> list[Any]:
    """Return a row of the table of words and labels."""
    alone = None if words is None else words["accuracy"]
    both = ["–"] * 3
    if labels["taught"] is not None:
        both = [f"{labels['taught']:.3f}", labels["seems"], f"{labels['weight']:.2f}"]
    alone, few, every = (pages.number(n, ".3f") for n in (alone, labels["few"], labels["every"]))
    return [name, alone, few, *both, every]


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets, and write the page."""
    parser = pages.parser("keywords", __doc__, "explore")
    parser.add_argument("--sets", nargs="+", choices=LISTS, metavar="NAME", default=None)
    parser.add_argument("--words", nargs="+", type=int, metavar="N", default=SIZES)
    options = parser.parse_args(arguments)
    rows, rows_of_labels = [], []
    for name in options.sets or (LISTS if options.explore else REQUESTS):
        problem = load(name, explore=options.explore)
        most = max(options.words)
        for n_words in [most] if name in LONG else sorted(options.words):
            found = with_words(problem, some_words(name, n_words))
            rows.append(row(name, n_words, found))
            print(*rows[-1], file=sys.stderr, flush=True)
        labelled = with_labels(name, problem, some_words(name, most))
        rows_of_labels.append(row_of_labels(name, found, labelled))
        print(*rows_of_labels[-1], file=sys.stderr, flush=True)
    notes = (
        "Words a class; the share of the training texts that have words of one class only; "
        "`agreement_`, with a warning or without; accuracy and log loss on test texts (a random "
        "quarter where a set has no test part); and seconds of processor time of the fit. Dashes: "
        "a class has no text with its words alone. The words were written down after at most the "
        "first lines of a set were read, and not chosen by results; those of topic, product, were "
        "replaced after reading messages, as no text had the first ones."
    )
    header = ["set", "words", "texts with words", "agreement", "accuracy", "log loss", "seconds"]
    notes_of_labels = (
        f"Test accuracy of the most words alone; of {N_LABELS} labels, with the other texts "
        "unlabelled; of both, where the words are the teacher; how right the teacher seems to be "
        "by these labels, with a 95 % interval, and its weight; and of all labels. One draw "
        "of labels."
    )
    header_of_labels = ["set", "words", f"{N_LABELS} labels", "both", "seems right", "weight"]
    lists = pages.table(
        ["set", "class", "words"],
        [[name, label, words] for name in LISTS for label, words in LISTS[name].items()],
    )
    parts = [
        *("## Words alone", notes, pages.table(header, rows)),
        *("## Words and labels", notes_of_labels),
        pages.table([*header_of_labels, "all labels"], rows_of_labels),
        *("## The words", lists),
    ]
    pages.publish(options.output, "Words in place of labels", "keywords --explore FOLDER", *parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
