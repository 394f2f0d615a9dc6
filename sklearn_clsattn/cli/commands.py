"""The commands ``compare``, ``fit`` and ``predict``."""

import contextlib
import csv
import io
import json
import platform
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from sklearn_clsattn import __version__
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli.reading import (
    SEED,
    load_model,
    read_labelled,
    read_reviews,
    split_texts,
)
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.cli.tables import busy, fit_report, progress_shown, result_report, show
from sklearn_clsattn.cli.writing import check_output
from sklearn_clsattn.comparison import class_tokens, compare
from sklearn_clsattn.saving import save_model
from sklearn_clsattn.text import make_text_classifier


def run_compare(arguments: Namespace) -> None:
    """Compare models on the same texts and print the results."""
    if arguments.json is not None:
        check_output(arguments.json, overwrite=True, inputs=[arguments.data, arguments.test])
    parts, source = split_texts(arguments)
    with progress_shown(quiet=arguments.quiet) as progress:
        result = compare(
            *parts,
            ngram_range=(1, arguments.ngrams),
            min_df=arguments.min_df,
            tune=arguments.tune,
            n_top=arguments.top,
            progress=progress,
            random_state=SEED,
        )
    if arguments.json is not None:
        settings = {
            "data": None if arguments.data is None else str(arguments.data),
            "test": None if arguments.test is None else str(arguments.test),
            "ngrams": arguments.ngrams,
            "min_df": arguments.min_df,
            "tune": arguments.tune,
            "seed": SEED,
            "sklearn_clsattn": __version__,
            "scikit_learn": sklearn.__version__,
            "python": platform.python_version(),
        }
        with written_whole(arguments.json, text=True) as file:
            written = {"settings": settings, **result.to_dict()}
            json.dump(written, file, indent=2, ensure_ascii=False)
            file.write("\n")
    show(result_report(result, source=source))


def run_fit(arguments: Namespace) -> None:
    """Fit a pipeline from texts to classes, save it and print its most important tokens."""
    check_output(arguments.output, overwrite=arguments.force, inputs=[arguments.data])
    texts, labels, columns = read_labelled(arguments.data, arguments)
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"{arguments.data}: all labels in column {columns[1]!r} are {classes.tolist()[0]!r}; "
            "expected two classes or more"
        )
    if labels.dtype.kind == "f" and not np.equal(labels, np.floor(labels)).all():
        # scikit-learn would treat them as targets of a regression.
        labels = np.array([str(label) for label in labels.tolist()], dtype=object)
    given = {"C": arguments.C, "attention_C": arguments.attention_C}
    left_out = {"characters": None} if arguments.no_characters else {}
    model = make_text_classifier(
        ngram_range=(1, arguments.ngrams),
        min_df=arguments.min_df,
        context=not arguments.no_context,
        **left_out,
        **{name: value for name, value in given.items() if value is not None},
    )
    vectorizer, classifier = (step for _, step in model.steps)
    with busy("vectorizing texts", quiet=arguments.quiet):
        start = time.perf_counter()
        X = vectorizer.fit_transform(texts, labels)
        vectorizing_seconds = time.perf_counter() - start
    with busy("fitting", quiet=arguments.quiet):
        import torch  # noqa: F401 - not part of the time to fit

        start = time.perf_counter()
        classifier.fit(X, labels)
        fit_seconds = time.perf_counter() - start
    save_model(model, arguments.output)
    facts = {
        "texts": f"{len(texts):,} of {arguments.data}, column {columns[0]!r}",
        "classes": f"{_sizes(classes, sizes)} (column {columns[1]!r})",
        "features": f"{X.shape[1]:,}, made in {vectorizing_seconds:.2f} s",
        "fit": f"{fit_seconds:.2f} s, {int(np.max(classifier.n_iter_))} iterations, "
        f"loss {classifier.loss_curve_[-1]:.4f}, C {classifier.C_:.3g}",
        "model": f"{arguments.output}, {arguments.output.expanduser().stat().st_size / 1e6:.1f} MB",
    }
    names = vectorizer.get_feature_names_out()
    show(fit_report(facts, class_tokens(classifier, X, names, n_top=arguments.top)))


def run_predict(arguments: Namespace) -> None:
    """Classify texts with a saved model and write a CSV."""
    output = None if str(arguments.output) == "-" else arguments.output
    if output is not None:
        check_output(output, overwrite=True, inputs=[arguments.model, arguments.data])
    model = load_model(arguments.model)
    reviews = read_reviews(arguments.data, arguments, label=False)
    try:  # the texts are vectorized once for both
        X = model[:-1].transform(reviews.data)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model in {arguments.model} does not take texts ({type(error).__name__}: {error})"
        ) from error
    predicted, proba = model[-1].predict(X), model[-1].predict_proba(X)
    guarded = str if arguments.raw_labels else guarded_cell
    if output is None and sys.stdout.isatty():
        shown = io.StringIO()
        _write_predictions(shown, model.classes_, predicted, proba, guarded)
        say(shown.getvalue().rstrip("\n"))
    elif output is None:
        _write_predictions(sys.stdout, model.classes_, predicted, proba, guarded)
    else:
        with written_whole(output, text=True) as file:
            _write_predictions(file, model.classes_, predicted, proba, guarded)


def guarded_cell(label: Any) -> str:
    """Return a label as a cell that no spreadsheet takes for a formula: with ' before it if so."""
    text = str(label)
    starts = ("=", "+", "-", "@", "\t", "\r", "\n")
    if not isinstance(label, str) or not text.lstrip(" ").startswith(starts):
        return text
    with contextlib.suppress(ValueError):
        float(text)
        return text  # a number is one in a spreadsheet, too
    return f"'{text}"


def _sizes(classes: NDArray[Any], sizes: NDArray[np.intp]) -> str:
    """Return the classes with their numbers of texts, at most eight of them."""
    pairs = list(zip(classes.tolist(), sizes.tolist(), strict=True))
    named = ", ".join(f"{label} ({size:,})" for label, size in pairs[:8])
    return named if len(pairs) <= 8 else f"{named} and {len(pairs) - 8} more"


def _write_predictions(
    file: IO[str],
    classes: NDArray[Any],
    predicted: NDArray[Any],
    proba: NDArray[Any],
    guarded: Callable[[Any], str],
) -> None:
    """Write one row a text; labels guarded, probabilities to six digits."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["prediction", *(f"probability_{label}" for label in classes.tolist())])
    writer.writerows(
        [guarded(label), *(f"{p:.6g}" for p in row)]
        for label, row in zip(predicted.tolist(), proba.tolist(), strict=True)
    )
