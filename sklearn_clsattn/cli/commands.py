"""The commands, one function each, and how they read texts and models."""

import contextlib
import csv
import datetime
import io
import shlex
import sys
import time
import warnings
from argparse import Namespace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_clsattn import saving
from sklearn_clsattn._machine import memory
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli.arguments import PROGRAM, STDIN
from sklearn_clsattn.cli.output import check_output, say, shown_size
from sklearn_clsattn.cli.tables import fit_text, progress_text, result_text
from sklearn_clsattn.comparison import class_tokens, compare, has_fractions
from sklearn_clsattn.datasets import load_reviews, make_token_classification
from sklearn_clsattn.datasets._reviews import read_texts
from sklearn_clsattn.inspection import ModelReport, explain
from sklearn_clsattn.text import make_text_classifier

SEED = 0
HELD_OUT = 0.2

Texts = NDArray[Any]


def run_compare(arguments: Namespace) -> None:
    """Compare models on the same texts and print the results."""
    texts_and_labels, source = _split_texts(arguments)
    result = compare(
        *texts_and_labels,
        ngram_range=(1, arguments.ngrams),
        min_df=arguments.min_df,
        n_top=arguments.top,
        progress=_progress(arguments),
    )
    say(result_text(result, source=source))


def run_fit(arguments: Namespace) -> None:
    """Fit a pipeline from texts to classes, save it and print its most important tokens."""
    path, output = arguments.data, arguments.output
    check_output(output, overwrite=arguments.force, inputs=[path])
    size = 0 if str(path) == STDIN else path.expanduser().stat().st_size
    if size > memory():
        raise ValueError(
            f"{path} has {size / 1e9:,.3g} GB, and this machine {memory() / 1e9:,.3g} GB of "
            "memory; ClsAttentionClassifier.fit_chunks, in Python, learns from one part at a time"
        )
    texts, labels, columns = _read_labelled(path, arguments)
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"{path}: all labels in column {columns[1]!r} are {classes.tolist()[0]!r}; "
            "expected two classes or more"
        )
    if has_fractions(labels):
        labels = np.array([str(label) for label in labels.tolist()], dtype=object)
    given = {} if arguments.C is None else {"C": arguments.C}
    model = make_text_classifier(
        ngram_range=(1, arguments.ngrams), min_df=arguments.min_df, **given
    )
    vectorizer, classifier = (step for _, step in model.steps)
    _tell(arguments, "vectorizing texts")
    start = time.perf_counter()
    X = vectorizer.fit_transform(texts, labels)
    vectorizing_seconds = time.perf_counter() - start
    _tell(arguments, "fitting")
    import torch  # noqa: F401 - not part of the time to fit

    start = time.perf_counter()
    classifier.fit(X, labels)
    fit_seconds = time.perf_counter() - start
    saving.save_model(model, output)
    counted = [f"{label} ({n:,})" for label, n in zip(classes.tolist(), sizes, strict=True)]
    more = f" and {len(counted) - 8} more" if len(counted) > 8 else ""
    facts = {
        "texts": f"{len(texts):,} of {path}, column {columns[0]!r}",
        "classes": f"{', '.join(counted[:8])}{more} (column {columns[1]!r})",
        "features": f"{X.shape[1]:,}, made in {vectorizing_seconds:.2f} s",
        "fit": f"{fit_seconds:.2f} s, {int(np.max(classifier.n_iter_))} iterations, "
        f"loss {classifier.loss_curve_[-1]:.4f}, C {classifier.C_:.3g}",
        "model": f"{output}, {shown_size(output.expanduser().stat().st_size)}",
    }
    names = vectorizer.get_feature_names_out()
    say(fit_text(facts, class_tokens(classifier, X, names, n_top=arguments.top)))


def run_predict(arguments: Namespace) -> None:
    """Classify texts with a saved model and write a CSV."""
    output = _output(arguments)
    model = _load_model(arguments.model)
    table, texts = read_texts(_source(arguments.data), **_reading(arguments))
    try:  # the texts are vectorized once for both
        X = model[:-1].transform(texts)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model in {arguments.model} does not take texts ({type(error).__name__}: {error})"
        ) from error
    guarded = str if arguments.raw_labels else guarded_cell
    answer = {"prediction": [guarded(label) for label in model[-1].predict(X).tolist()]}
    proba = model[-1].predict_proba(X).T.tolist()
    for label, of_class in zip(model.classes_.tolist(), proba, strict=True):
        answer[f"probability_{label}"] = [f"{p:.6g}" for p in of_class]
    for name in answer:
        if name in table:
            raise ValueError(
                f"{arguments.data} has a column {name!r} already, as predictions get; rename it"
            )
    table = table.astype(object).assign(**answer)
    if output is not None:
        with written_whole(output, text=True) as file:
            _write_csv(file, table)
    elif sys.stdout.isatty():
        shown = io.StringIO()
        _write_csv(shown, table)
        say(shown.getvalue().rstrip("\n"))
    else:
        _write_csv(sys.stdout, table)


def run_explain(arguments: Namespace) -> None:
    """Explain a saved model's predictions for texts, in the terminal or as a page."""
    if (arguments.data is None) == (arguments.say is None):
        raise ValueError("pass texts to explain: either a file DATA or --say TEXT")
    if arguments.data is None:
        _check_no_columns(arguments, ("text", "label", "sep"), "explain MODEL DATA")
    output = _output(arguments)
    model = _load_model(arguments.model)
    classes = {str(label): label for label in model.classes_.tolist()}
    if arguments.target is not None and arguments.target not in classes:
        raise ValueError(
            f"--target must be one of the model's classes, {', '.join(classes)}; "
            f"got {arguments.target!r}"
        )
    target, change = classes.get(arguments.target), arguments.counterfactual
    texts, labels = arguments.say, None
    if arguments.data is not None:
        label = False if arguments.label is None else arguments.label
        reviews = _read_reviews(arguments.data, arguments, label=label)
        texts, labels = reviews.data, reviews.target
    n_all = len(texts)
    if arguments.data is not None:
        texts = texts[: arguments.limit]
    if labels is not None:
        labels = _known_labels(labels[: arguments.limit], arguments.label, classes)
    shown: dict[str, Any] = {"top": arguments.top}
    try:
        answer: Any
        if change is not None:
            answer = explain(model, texts).counterfactual(change, to=target)
        else:
            of_one = target if len(classes) == 2 else None  # of more, two are compared
            answer = explain(model, texts, target=of_one, y_true=labels)
            shown["target"] = target
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model in {arguments.model} cannot be explained ({type(error).__name__}: {error})"
        ) from error
    if output is None:
        say(answer.to_text(**shown), styled=True)
    else:
        _write_page(output, answer.to_html(**shown))
    if n_all > len(texts):
        say(f"The first {len(texts):,} of {n_all:,} texts; --limit N explains more.", sys.stderr)


def run_report(arguments: Namespace) -> None:
    """Fit models on texts and write a page on them."""
    inputs = [arguments.data, arguments.test]
    check_output(arguments.output, overwrite=arguments.force, inputs=inputs)
    texts_and_labels, source = _split_texts(arguments)
    report = ModelReport.from_texts(
        *texts_and_labels,
        ngram_range=(1, arguments.ngrams),
        min_df=arguments.min_df,
        n_top=arguments.top,
        n_mistakes=arguments.mistakes,
        title="Model report" + ("" if arguments.data is None else f": {arguments.data.name}"),
        source=source,
        made={
            "Command": shlex.join([PROGRAM, *arguments.argv]),
            "Made on": datetime.date.today().isoformat(),
        },
        progress=_progress(arguments),
    )
    measured = ", ".join(f"{one.name} {one.accuracy:.3f}" for one in report.models)
    _tell(arguments, f"accuracy on {report.data.n_test:,} test texts: {measured}")
    _write_page(arguments.output, report.to_html(), quiet=arguments.quiet)


def _tell(arguments: Namespace, state: str) -> None:
    """Print how far a command is, unless it is to be quiet."""
    if not arguments.quiet:
        say(state, sys.stderr)


def _progress(arguments: Namespace) -> Any:
    """Return what is called when a model of a comparison is done."""
    return lambda *done: _tell(arguments, progress_text(*done))


def _output(arguments: Namespace) -> Path | None:
    """Return the file to write with a model's answer, None for standard output."""
    if arguments.output is None or str(arguments.output) == STDIN:
        return None
    inputs = [arguments.model, arguments.data]
    check_output(arguments.output, overwrite=arguments.force, inputs=inputs)
    return arguments.output


def _write_page(output: Path, page: str, *, quiet: bool = False) -> None:
    with written_whole(output, text=True) as file:
        file.write(page)
    if not quiet:
        say(f"{output}: {shown_size(len(page.encode()))}", sys.stderr)


def _write_csv(file: IO[str], table: pd.DataFrame) -> None:
    """Write a table as CSV, with empty cells for missing values."""

    class Lines:
        def write(self, line: str) -> None:
            # The writer puts carriage returns in cells into quotes only if its lines end in them.
            line = line.removesuffix("\r\n").encode("utf-8", "backslashreplace").decode()
            file.write(f"{line}\n")

    writer = csv.writer(Lines())
    writer.writerow(table.columns)
    writer.writerows(table.where(table.notna(), "").itertuples(index=False, name=None))


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


def _split_texts(arguments: Namespace) -> tuple[tuple[Texts, Texts, Texts, Texts], str]:
    """Return training and test texts and labels, generated without a file, and their source."""
    if arguments.data is None:
        asked = f"{arguments.command} DATA"
        _check_no_columns(arguments, ("text", "label", "sep", "test"), asked)
        # Texts on which models differ, and which they fit in seconds.
        texts, y = make_token_classification(
            n_samples=5000,
            n_relevant_per_class=40,
            n_irrelevant=4000,
            document_length=80,
            relevant_share=0.08,
            delta=(0.1, 0.45),
            flip_y=0.1,
            as_text=True,
            random_state=SEED,
        )
        labels = np.array(["negative", "positive"], dtype=object)[y]
        source = (
            f"{len(texts):,} generated reviews, a tenth of their labels drawn at random.\n"
            "Pass a file of labelled texts to use yours."
        )
    else:
        texts, labels, columns = _read_labelled(arguments.data, arguments)
        source = f"{arguments.data}: texts in column {columns[0]!r}, labels in {columns[1]!r}."
    if arguments.test is not None:
        # The same columns as in the training file.
        test = _read_reviews(arguments.test, arguments, text=columns[0], label=columns[1])
        return (texts, labels, test.data, test.target), f"{source}\nTest set: {arguments.test}."
    source += f"\n{HELD_OUT:.0%} of the texts, drawn at random (seed {SEED}), are the test set."
    return _hold_out(texts, labels), source


def _hold_out(texts: Texts, labels: Texts) -> tuple[Texts, Texts, Texts, Texts]:
    """Return training and test texts and labels, both with texts of all classes."""
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"all labels are {classes.tolist()[0]!r}; expected two classes or more")
    if sizes.min() < 2 or round(HELD_OUT * len(texts)) < len(classes):
        raise ValueError(
            f"cannot hold out {HELD_OUT:.0%} of {len(texts)} texts with all {len(classes)} classes "
            f"on both sides (the smallest, {classes[sizes.argmin()]!s}, has {sizes.min()}); give "
            "more texts, or a test set of its own"
        )
    train, test = train_test_split(
        np.arange(len(texts)), test_size=HELD_OUT, stratify=labels, random_state=SEED
    )
    return texts[train], labels[train], texts[test], labels[test]


def _check_no_columns(arguments: Namespace, names: tuple[str, ...], asked: str) -> None:
    """Raise ValueError for options that say how to read a file, where there is none."""
    for name in names:
        if getattr(arguments, name):
            raise ValueError(f"--{name} needs a file of texts: {asked} --{name} ...")


def _reading(arguments: Namespace) -> dict[str, Any]:
    """Return the options of a command that say how to read a file."""
    return {name: getattr(arguments, name) for name in ("text", "sep", "encoding")}


def _read_reviews(path: Path, arguments: Namespace, **columns: Any) -> Any:
    """Read a file with the options of a command; `columns` are passed to `load_reviews`."""
    return load_reviews(_source(path), **{**_reading(arguments), **columns})


def _source(path: Path) -> Any:
    """Return what to read: a file or standard input."""
    if str(path) != STDIN:
        return path
    if sys.stdin is None:
        raise ValueError("standard input is closed; name a file to read")
    return sys.stdin.buffer


def _read_labelled(path: Path, arguments: Namespace) -> tuple[Texts, Texts, tuple[str, str]]:
    """Return the texts and labels (n_texts,) of a file, and the names of their columns."""
    reviews = _read_reviews(path, arguments, label=arguments.label)
    n_classes, n_rows = len(np.unique(reviews.target)), len(reviews.target)
    if n_classes > 20 and 2 * n_classes > n_rows:
        raise ValueError(
            f"{path} has {n_classes:,} different labels in {n_rows:,} rows of column "
            f"{reviews.label_column!r}; name the column of the classes with --label"
        )
    return reviews.data, reviews.target, (reviews.text_column, reviews.label_column)


def _known_labels(labels: Texts, column: str, classes: dict[str, Any]) -> Texts:
    """Return labels as the model's classes, which may be names where the file has numbers."""
    unknown = sorted({str(label) for label in labels.tolist()} - set(classes))
    if unknown:
        warnings.warn(
            f"column {column!r} has labels that the model does not know, such as "
            f"{unknown[0]!r}; its classes are {', '.join(classes)}",
            stacklevel=2,
        )
    return np.array([classes.get(str(label), label) for label in labels.tolist()], dtype=object)


def _load_model(path: Path) -> Pipeline:
    """Load a pipeline from texts to probabilities that ``fit`` has saved."""
    if not path.expanduser().is_file():
        raise ValueError(f"there is no file {path}; expected a model that 'fit' has saved")
    model = saving.load_model(path)
    if not (isinstance(model, Pipeline) and len(model) > 1 and hasattr(model, "predict_proba")):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, not a pipeline from texts to probabilities "
            "such as 'fit' saves"
        )
    check_is_fitted(model)
    return model
