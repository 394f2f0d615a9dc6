"""The commands ``compare``, ``fit`` and ``predict``."""

import contextlib
import csv
import io
import json
import platform
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier, __version__
from sklearn_clsattn._machine import memory
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli.arguments import PROGRAM, STDIN
from sklearn_clsattn.cli.reading import (
    SEED,
    check_label_column,
    load_model,
    read_batches,
    read_labelled,
    read_with_columns,
    split_texts,
)
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.cli.tables import fit_text, of_models, progress_shown, result_text
from sklearn_clsattn.cli.writing import check_output, shown_size
from sklearn_clsattn.comparison import class_tokens, compare
from sklearn_clsattn.saving import save_model
from sklearn_clsattn.text import HashingTokenVectorizer, make_text_classifier


def run_compare(arguments: Namespace) -> None:
    """Compare models on the same texts and print the results."""
    if arguments.json is not None:
        inputs = [arguments.data, arguments.test]
        check_output(arguments.json, overwrite=arguments.force, inputs=inputs)
    parts, source = split_texts(arguments)
    with progress_shown(quiet=arguments.quiet) as tell:
        result = compare(
            *parts,
            ngram_range=(1, arguments.ngrams),
            min_df=arguments.min_df,
            tune=arguments.tune,
            n_top=arguments.top,
            progress=of_models(tell),
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
    say(result_text(result, source=source))


def run_fit(arguments: Namespace) -> None:
    """Fit a pipeline from texts to classes, save it and print its most important tokens."""
    check_output(arguments.output, overwrite=arguments.force, inputs=arguments.data)
    if arguments.chunks:
        _fit_chunks(arguments)
        return
    path, *others = arguments.data
    if others:
        raise ValueError(f"{others[0]} is a second file; --chunks reads several, part by part")
    size = 0 if str(path) == STDIN else path.expanduser().stat().st_size
    if size > memory():
        raise ValueError(
            f"{path} has {size / 1e9:,.3g} GB, and this machine {memory() / 1e9:,.3g} GB of "
            "memory; --chunks reads files part by part"
        )
    texts, labels, columns = read_labelled(path, arguments)
    classes, sizes = np.unique(labels, return_counts=True)
    _check_classes(str(path), columns[1], classes)
    if labels.dtype.kind == "f" and not np.equal(labels, np.floor(labels)).all():
        # scikit-learn would treat them as targets of a regression.
        labels = np.array([str(label) for label in labels.tolist()], dtype=object)
    left_out = {"characters": None} if arguments.no_characters else {}
    model = make_text_classifier(
        ngram_range=(1, arguments.ngrams),
        min_df=arguments.min_df,
        context=not arguments.no_context,
        **left_out,
        **_strengths(arguments),
    )
    vectorizer, classifier = (step for _, step in model.steps)
    with progress_shown(quiet=arguments.quiet) as tell:
        tell("vectorizing texts", True)
        start = time.perf_counter()
        X = vectorizer.fit_transform(texts, labels)
        vectorizing_seconds = time.perf_counter() - start
        tell("fitting", True)
        import torch  # noqa: F401 - not part of the time to fit

        start = time.perf_counter()
        classifier.fit(X, labels)
        fit_seconds = time.perf_counter() - start
    save_model(model, arguments.output)
    facts = {
        "texts": f"{len(texts):,} of {path}, column {columns[0]!r}",
        "classes": f"{_sizes(classes, sizes)} (column {columns[1]!r})",
        "features": f"{X.shape[1]:,}, made in {vectorizing_seconds:.2f} s",
        **_of_fit(classifier, fit_seconds, arguments.output),
    }
    names = vectorizer.get_feature_names_out()
    say(fit_text(facts, class_tokens(classifier, X, names, n_top=arguments.top)))


def _fit_chunks(arguments: Namespace) -> None:
    """Fit a pipeline of a hashing vectorizer on files read part by part, and save it."""
    for name, usual in (("min_df", "auto"), ("top", 10)):
        if getattr(arguments, name) != usual:
            option = name.replace("_", "-")
            raise ValueError(
                f"--{option} needs names of tokens; --chunks hashes them, leave it out"
            )
    vectorizer = HashingTokenVectorizer(ngram_range=(1, arguments.ngrams), dtype=np.int32)
    classifier = ClsAttentionClassifier(**_strengths(arguments))
    sizes: Counter[str] = Counter()
    columns: tuple[dict[str, None], dict[str, None]] = ({}, {})  # names, in order
    source = ", ".join(map(str, arguments.data))

    with (
        # Windows keeps mapped files until the last array of them is gone.
        TemporaryDirectory(prefix=f"{PROGRAM}-", ignore_cleanup_errors=True) as folder,
        progress_shown(quiet=arguments.quiet) as tell,
    ):

        def batches() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
            for path in arguments.data:
                n_read = 0
                for number, (texts, labels, names) in enumerate(read_batches(path, arguments), 1):
                    yield texts, labels
                    sizes.update(labels.tolist())
                    n_read += len(texts)
                    for found, name in zip(columns, names, strict=True):
                        found[name] = None
                    # A line for a million texts and one for a file are enough for a log.
                    tell(f"reading {path}: {n_read:,} texts", number % 100 == 0)
                tell(f"read {path}: {n_read:,} texts", True)

        start = time.perf_counter()
        counts = ChunkedCounts.write(Path(folder, "counts"), batches(), vectorizer=vectorizer)
        reading_seconds = time.perf_counter() - start
        text_column, label_column = (" and ".join(map(repr, found)) for found in columns)
        check_label_column(source, " and ".join(columns[1]), len(sizes), counts.shape[0])
        _check_classes(source, " and ".join(columns[1]), counts.classes)
        tell(f"fitting on {counts.n_entries:,} counts in {len(counts)} chunks", True)
        start = time.perf_counter()
        classifier.fit_chunks(counts)
        fit_seconds = time.perf_counter() - start
    save_model(Pipeline([("vectorizer", vectorizer), ("classifier", classifier)]), arguments.output)
    classes = counts.classes
    in_order = np.array([sizes[label] for label in classes.tolist()])
    facts = {
        "texts": f"{counts.shape[0]:,} of {source}, column {text_column}",
        "classes": f"{_sizes(classes, in_order)} (column {label_column})",
        "features": f"{counts.shape[1]:,}, hashed; read and counted in {reading_seconds:.2f} s",
        **_of_fit(classifier, fit_seconds, arguments.output),
    }
    say(fit_text(facts, []))


def _strengths(arguments: Namespace) -> dict[str, Any]:
    """Return the strengths of the penalties that are given."""
    given = {"C": arguments.C, "attention_C": arguments.attention_C}
    return {name: value for name, value in given.items() if value is not None}


def _check_classes(source: str, column: str, classes: NDArray[Any]) -> None:
    """Raise ValueError if there is one class only."""
    if len(classes) < 2:
        raise ValueError(
            f"{source}: all labels in column {column!r} are {classes.tolist()[0]!r}; "
            "expected two classes or more"
        )


def _of_fit(classifier: Any, seconds: float, output: Path) -> dict[str, str]:
    """Return what is said of a fit and its file."""
    return {
        "fit": f"{seconds:.2f} s, {int(np.max(classifier.n_iter_))} iterations, "
        f"loss {classifier.loss_curve_[-1]:.4f}, C {classifier.C_:.3g}",
        "model": f"{output}, {shown_size(output.expanduser().stat().st_size)}",
    }


def run_predict(arguments: Namespace) -> None:
    """Classify texts with a saved model and write a CSV."""
    output = None if str(arguments.output) == "-" else arguments.output
    if output is not None:
        inputs = [arguments.model, arguments.data]
        check_output(output, overwrite=arguments.force, inputs=inputs)
    model = load_model(arguments.model)
    table, texts = read_with_columns(arguments.data, arguments)
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
    if output is None and sys.stdout.isatty():
        shown = io.StringIO()
        _write_csv(shown, table)
        say(shown.getvalue().rstrip("\n"))
    elif output is None:
        _write_csv(sys.stdout, table)
    else:
        with written_whole(output, text=True) as file:
            _write_csv(file, table)


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
