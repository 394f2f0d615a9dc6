"""The commands, one function each, with their input and output."""

import csv
import datetime
import io
import os
import re
import shlex
import sys
import time
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_clsattn import TextClassifier, comparison, saving
from sklearn_clsattn._writing import written_whole
from sklearn_clsattn.cli.arguments import PROGRAM, STDIN, say
from sklearn_clsattn.cli.reader import (
    Reviews,
    read_probabilities,
    read_reviews,
    read_texts,
)
from sklearn_clsattn.comparison import QUALITY_MEASURES, Measure, result_table
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, explain
from sklearn_clsattn.inspection.formatting import WIDTH, filled, in_columns, token_lists, token_text
from sklearn_clsattn.inspection.important_tokens import ClassTokens, class_tokens, read_documents

SEED = 0
HELD_OUT = 0.2
_N_NEAREST = 4  # words of each class
_N_LISTED = 8  # classes, the others are counted
# What spreadsheets take for a formula, and numbers, which they do not.
_FORMULA = re.compile(r" *[=+@\t\r\n-]")
_NUMBER = re.compile(r" *[-+]?\d+(\.\d*)?(e[-+]?\d+)?", re.IGNORECASE)

_MEASURES = (
    *QUALITY_MEASURES,
    Measure("fit s", "fit_seconds", ".3f", min),
    Measure("predict s", "predict_seconds", ".3f", min),
)


def run_compare(arguments: Namespace) -> None:
    """Compare models on the same texts and print the results."""
    split, source = _split_texts(arguments)
    models = comparison.default_models(len(split[0]), arguments.min_df)
    result = comparison.compare(*split, models=models, progress=partial(_tell_fit, arguments))
    read = read_documents(result.entrants[0].estimator, split[0])
    say(result_text(result, source, class_tokens(read)))


def run_fit(arguments: Namespace) -> None:
    """Fit a pipeline from texts to classes, save it and print its most important tokens."""
    # 1) the texts
    output = arguments.output
    _output(arguments, arguments.data, arguments.unlabeled)
    reviews = _read_labelled(arguments.data, arguments)
    classes, sizes = np.unique(reviews.labels, return_counts=True)
    unlabeled, teacher = _unlabeled(arguments, classes)
    # 2) the fit
    parameters: dict[str, Any] = {"min_df": arguments.min_df}
    if arguments.C is not None:
        parameters["C"] = arguments.C
    model = TextClassifier(**parameters)
    import torch  # noqa: F401 - not part of the time to fit

    _tell(arguments, "fitting")
    start = time.perf_counter()
    model.fit(reviews.texts, reviews.labels, unlabeled=unlabeled, teacher=teacher)
    seconds = time.perf_counter() - start
    saving.save_model(model, output)
    # 3) what it learned
    classifier = model.classifier_
    facts = {
        "texts": f"{len(reviews.texts):,} of {reviews.file}, column {reviews.text_column!r}",
        "classes": f"{_counted(classes, sizes)} (column {reviews.label_column!r})",
        **_facts_of_unlabeled(arguments, unlabeled, model),
        "features": f"{classifier.n_features_in_:,}",
        "fit": f"{seconds:.2f} s, {int(np.max(classifier.n_iter_))} iterations, "
        f"loss {classifier.loss_curve_[-1]:.4f}, C {classifier.C_:.3g}",
        "model": f"{output}, {shown_size(output.expanduser().stat().st_size)}",
    }
    tokens = class_tokens(read_documents(model, reviews.texts))
    say("\n\n".join([fit_text(facts, tokens), *_nearest(model.vectorizer_.word_vectors_, tokens)]))


def _counted(classes: NDArray[Any], sizes: NDArray[np.intp]) -> str:
    """Return the first classes, each with its number of texts, in words."""
    counted = []
    for label, n_texts in zip(classes.tolist(), sizes, strict=True):
        counted.append(f"{label} ({n_texts:,})")
    listed = ", ".join(counted[:_N_LISTED])
    n_more = len(counted) - _N_LISTED
    return f"{listed} and {n_more} more" if n_more > 0 else listed


def _unlabeled(arguments: Namespace, classes: NDArray[Any]) -> tuple[Any, Any]:
    """Return the texts without labels, and a teacher's probabilities of them, None without any."""
    path = arguments.unlabeled
    columns = arguments.teacher_columns
    reading = _reading(arguments)
    if path is None:
        if columns is not None:
            raise ValueError("--teacher-columns are columns of a file: pass it as --unlabeled")
        return None, None
    if path.suffix.lower() == ".txt":
        reading.update(text=None, sep=None)  # which are DATA's
    table, texts = read_texts(_source(path), **reading)
    if columns is None:
        return texts, None
    return texts, read_probabilities(table, columns, classes, str(path))


def _facts_of_unlabeled(
    arguments: Namespace, unlabeled: Any, model: TextClassifier
) -> dict[str, str]:
    """Return the facts learned from texts without labels, in words."""
    if unlabeled is None:
        return {}
    facts = {}
    used = f"{len(unlabeled):,} of {arguments.unlabeled}"
    vectors = model.vectorizer_.word_vectors_
    if vectors is not None:
        n_words = len(vectors.words_)
        scale = model.token_vectors_scale_
        used += f": vectors of {n_words:,} words, scale {scale:g}{_not_used(scale)}"
    facts["unlabeled"] = used
    if hasattr(model, "teacher_weight_"):
        weight = model.teacher_weight_
        facts["teacher"] = f"weight {weight:.2g}{_not_used(weight)}"
    return facts


def _not_used(weight: float) -> str:
    """Return a remark on a weight of 0."""
    return "" if weight else " (not used)"


def _nearest(vectors: Any, tokens: list[ClassTokens]) -> list[str]:
    """Return the words nearest to the most important ones of each class, if they have vectors."""
    if vectors is None:
        return []
    words = set(vectors.words_.tolist())
    lists = []
    for one in tokens:
        with_vectors = [token for token, _ in one.important if token in words]
        names = []
        for token in with_vectors[:_N_NEAREST]:
            near = ", ".join(word for word, _ in vectors.most_similar(token, 3))
            names.append(f"{token} (near {near})")
        lists.append((one.label, names))
    return [token_lists("Words like the most important ones, by their vectors", lists)]


def run_predict(arguments: Namespace) -> None:
    """Classify texts with a saved model and write a CSV."""
    # 1) the model and the texts
    output = _output(arguments, arguments.model, arguments.data)
    model = _load_model(arguments.model)
    table, texts = read_texts(_source(arguments.data), **_reading(arguments))
    # 2) their classes
    try:
        proba = model.predict_proba(texts)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model in {arguments.model} does not take texts ({type(error).__name__}: {error})"
        ) from error
    if getattr(model, "multilabel_", False):
        predicted = (proba > 0.5).astype(int)
    else:
        predicted = model.classes_[proba.argmax(axis=1)]
    # 3) the table of DATA with new columns
    columns = {"prediction": list(map(guarded_cell, predicted.tolist()))}
    for label, of_class in zip(model.classes_.tolist(), proba.T.tolist(), strict=True):
        columns[f"probability_{label}"] = list(map("{:.6g}".format, of_class))
    for name in columns:
        if name in table:
            raise ValueError(
                f"{arguments.data} already has a column {name!r}, which predict writes; rename it"
            )
    table = table.astype(object).assign(**columns)
    if output is not None:
        with written_whole(output, text=True) as file:
            _write_csv(file, table)
    elif sys.stdout.isatty():
        written = io.StringIO()
        _write_csv(written, table)
        say(written.getvalue().rstrip("\n"))
    else:
        _write_csv(sys.stdout, table)


def run_explain(arguments: Namespace) -> None:
    """Explain a saved model's predictions for texts, in the terminal or as a page."""
    # 1) the arguments
    if (arguments.data is None) == (arguments.say is None):
        raise ValueError("pass texts to explain: either a file DATA or --say TEXT")
    output = _output(arguments, arguments.model, arguments.data)
    if arguments.data is None:
        _check_no_columns(arguments, ("text", "sep"), "explain MODEL DATA")
    model = _load_model(arguments.model)
    classes = {str(label): label for label in model.classes_.tolist()}
    if arguments.target is not None and arguments.target not in classes:
        raise ValueError(
            f"--target must be one of the model's classes, {', '.join(classes)}; "
            f"got {arguments.target!r}"
        )
    target = classes.get(arguments.target)
    # 2) the texts
    all_texts = arguments.say
    if all_texts is None:
        _, all_texts = read_texts(_source(arguments.data), **_reading(arguments))
    texts = all_texts if arguments.data is None else all_texts[: arguments.limit]
    # 3) the answer
    try:
        answer, options = _answer(model, texts, target, arguments.counterfactual)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model in {arguments.model} cannot be explained ({type(error).__name__}: {error})"
        ) from error
    if output is None:
        say(answer.to_text(**options), styled=True)
    else:
        _write_page(output, answer.to_html(**options))
    if len(all_texts) > len(texts):
        say(
            f"The first {len(texts):,} of {len(all_texts):,} texts; --limit N explains more.",
            sys.stderr,
        )


def _answer(model: Any, texts: Any, target: Any, change: str | None) -> tuple[Any, dict[str, Any]]:
    """Return an explanation, or the fewest words or counts to change, and how to show it."""
    has_several_labels = getattr(model, "multilabel_", False)
    options: dict[str, Any] = {"top": 8}
    # 1) the fewest changes: of several labels one changes, else the class becomes the target
    if change is not None:
        unit: Any = change
        if has_several_labels:
            return explain(model, texts, target=target).counterfactual(unit), options
        return explain(model, texts).counterfactual(unit, to=target), options
    # 2) an explanation: of several labels or two classes, one is explained; of more classes, two
    # are compared
    is_single = has_several_labels or len(model.classes_) == 2
    options["target"] = None if has_several_labels else target
    return explain(model, texts, target=target if is_single else None), options


def run_report(arguments: Namespace) -> None:
    """Fit models on texts and write a page on them."""
    # 1) the texts
    _output(arguments, arguments.data, arguments.test)
    split, source = _split_texts(arguments)
    texts, labels, test_texts, test_labels = split
    # 2) the fits
    name = getattr(arguments.data, "name", STDIN)
    report = ModelReport.from_estimator(
        TextClassifier(min_df=arguments.min_df),
        test_texts,
        test_labels,
        X_train=texts,
        y_train=labels,
        title="Model report" if name == STDIN else f"Model report: {name}",
        source=source,
        made={
            "Command": shlex.join([PROGRAM, *arguments.argv]),
            "Made on": datetime.date.today().isoformat(),
        },
        progress=partial(_tell_fit, arguments),
    )
    # 3) the page
    measured = ", ".join(f"{one.name} {one.accuracy:.3f}" for one in report.models)
    _tell(arguments, f"accuracy on {report.data.n_test:,} test texts: {measured}")
    _write_page(arguments.output, report.to_html(), quiet=arguments.quiet)


def _split_texts(arguments: Namespace) -> tuple[tuple[Any, Any, Any, Any], str]:
    """Return training and test texts and labels, generated without a file, and their source."""
    # 1) all texts
    if arguments.data is None:
        asked = f"{arguments.command} DATA"
        _check_no_columns(arguments, ("text", "label", "sep", "test"), asked)
        texts, labels = _generated_reviews()
        source = (
            f"{len(texts):,} generated reviews, a tenth of their labels drawn at random.\n"
            "Pass a file of labelled texts to use yours."
        )
    else:
        reviews = _read_labelled(arguments.data, arguments)
        texts = reviews.texts
        labels = reviews.labels
        source = (
            f"{reviews.file}: texts in column {reviews.text_column!r}, labels in "
            f"{reviews.label_column!r}."
        )
    # 2) a test set in a file, which has the same columns
    if arguments.test is not None:
        columns = {"text": reviews.text_column, "label": reviews.label_column}
        reading = {**_reading(arguments), **columns}
        test = _labelled(read_reviews(_source(arguments.test), **reading))
        return (texts, labels, test.texts, test.labels), f"{source}\nTest set: {arguments.test}."
    # 3) or held out
    classes, sizes = np.unique(labels, return_counts=True)
    if sizes.min() < 2 or round(HELD_OUT * len(texts)) < len(classes):
        raise ValueError(
            f"cannot hold out {HELD_OUT:.0%} of {len(texts)} texts with all {len(classes)} classes "
            f"on both sides (the smallest, {classes[sizes.argmin()]!s}, has {sizes.min()}); add "
            "texts, or pass a test set with --test"
        )
    source += f"\n{HELD_OUT:.0%} of the texts, drawn at random (seed {SEED}), are the test set."
    train, test, y_train, y_test = train_test_split(
        texts, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED
    )
    return (train, y_train, test, y_test), source


def _generated_reviews() -> tuple[Any, NDArray[np.object_]]:
    """Return texts on which models differ, and which they fit in seconds, and their labels."""
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
    return texts, np.array(["negative", "positive"], dtype=object)[y]


def _check_no_columns(arguments: Namespace, names: tuple[str, ...], asked: str) -> None:
    """Raise ValueError for options that say how to read a file, where there is none."""
    for name in names:
        if getattr(arguments, name):
            raise ValueError(f"--{name} needs a file of texts: {asked} --{name} ...")


def _reading(arguments: Namespace) -> dict[str, Any]:
    """Return the options of a command that say how to read a file."""
    return {"text": arguments.text, "sep": arguments.sep, "encoding": arguments.encoding}


def _source(path: Path) -> Any:
    """Return the file to read, or standard input."""
    if str(path) != STDIN:
        return path
    if sys.stdin is None:
        raise ValueError("standard input is closed; name a file to read")
    return sys.stdin.buffer


def _read_labelled(path: Path, arguments: Namespace) -> Reviews:
    """Return the texts and labels of a file of two classes or more."""
    reviews = _labelled(read_reviews(_source(path), label=arguments.label, **_reading(arguments)))
    classes = np.unique(reviews.labels).tolist()
    n_rows = len(reviews.labels)
    if len(classes) < 2:
        raise ValueError(
            f"{path}: all labels in column {reviews.label_column!r} are {classes[0]!r}; "
            "expected two classes or more"
        )
    if len(classes) > 20 and 2 * len(classes) > n_rows:
        raise ValueError(
            f"{path} has {len(classes):,} different labels in {n_rows:,} rows of column "
            f"{reviews.label_column!r}; choose the column of the classes with --label"
        )
    return reviews


def _labelled(reviews: Reviews) -> Reviews:
    """Return reviews with labels for classifiers, to which fractions would be a regression."""
    labels = reviews.labels
    if labels.dtype.kind == "f" and not np.equal(labels, np.floor(labels)).all():
        names = np.array(list(map(str, labels.tolist())), dtype=object)
        return replace(reviews, labels=names)
    return reviews


def _load_model(path: Path) -> Any:
    """Load a classifier of texts that ``fit`` has saved."""
    if not path.expanduser().is_file():
        raise ValueError(f"there is no file {path}; expected a model saved by 'fit'")
    model = saving.load_model(path)
    if not isinstance(model, TextClassifier | Pipeline):
        raise ValueError(
            f"{path} contains a {type(model).__name__}; expected a classifier of texts, such as "
            "'fit' saves"
        )
    check_is_fitted(model)
    return model


def _output(arguments: Namespace, *inputs: Path | None) -> Path | None:
    """Return the file to write, None for standard output, or raise an error if it cannot be.

    Devices such as /dev/null may exist already.
    """
    path = arguments.output
    if path is None or (str(path) == STDIN and arguments.command in ("predict", "explain")):
        return None
    path = path.expanduser()
    if path.is_dir():
        raise ValueError(f"{path} is a folder; choose a file to write")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.exists():
        for other in inputs:
            if other and other.exists() and path.samefile(other):
                raise ValueError(f"{path} is also an input; choose another file to write")
        if path.is_file() and not arguments.force:
            raise ValueError(f"{path} exists already; pass --force to overwrite it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: permission denied")
    return arguments.output


def _write_page(output: Path, page: str, *, quiet: bool = False) -> None:
    """Write a page, and print its size."""
    with written_whole(output, text=True) as file:
        file.write(page)
    if not quiet:
        say(f"{output}: {shown_size(len(page.encode()))}", sys.stderr)


def shown_size(n_bytes: int) -> str:
    """Return a file's size as it is printed."""
    return f"{n_bytes / 1e3:.0f} KB" if n_bytes < 100_000 else f"{n_bytes / 1e6:.1f} MB"


def _write_csv(file: IO[str], table: pd.DataFrame) -> None:
    """Write a table as CSV, with empty cells for missing values."""

    class Lines:
        """A file that gets each line without the writer's carriage return."""

        def write(self, line: str) -> None:
            # The writer puts carriage returns in cells into quotes only if its lines end in them.
            line = line.removesuffix("\r\n").encode("utf-8", "backslashreplace").decode()
            file.write(f"{line}\n")

    writer = csv.writer(Lines())
    writer.writerow(table.columns)
    writer.writerows(table.where(table.notna(), "").itertuples(index=False, name=None))


def guarded_cell(label: Any) -> str:
    """Return a label as a cell, with a leading ' if a spreadsheet would read it as a formula."""
    is_formula = isinstance(label, str) and _FORMULA.match(label) and not _NUMBER.fullmatch(label)
    return f"'{label}" if is_formula else str(label)


def _tell(arguments: Namespace, state: str) -> None:
    """Print the progress of a command, unless it is quiet."""
    if not arguments.quiet:
        say(state, sys.stderr)


def _tell_fit(arguments: Namespace, *done: Any) -> None:
    """Print that a model is fitted: the last argument, after its number and the total."""
    *numbers, one = done
    before = "[{}/{}] ".format(*numbers) if numbers else ""
    _tell(arguments, f"{before}{one.name}: fitted in {one.fit_seconds:.2f} s")


def result_text(result: comparison.Comparison, source: str, tokens: list[ClassTokens]) -> str:
    """Return the report of a comparison, the best of each column with a star."""
    # 1) the table; a space in place of the star keeps numbers aligned
    table = [["  model", *(measure.heading for measure in _MEASURES)]]
    measured = result_table(result.models, _MEASURES, missing="-")
    for model, cells in zip(result.models, measured, strict=True):
        mark = "> " if model.kind == "ours" else "  "
        numbers = [cell.text + ("*" if cell.is_best else " ") for cell in cells]
        table.append([mark + model.name, *numbers])
    head, *rows = in_columns(table, gap=" ").split("\n")
    legend = "  >: this package's classifier; *: best in column (without the majority class)"
    # 2) the notes
    values = ", ".join(map("{:g}".format, comparison.BASELINE_CS))
    notes = [
        "Times are from texts to a fitted model, and to predictions.",
        f"{comparison.TUNED}: sublinear TF-IDF of words and pairs, C chosen from {values} by "
        "validation on training texts, included in its time. The other baselines have "
        "scikit-learn's default parameters.",
        *result.notes,
    ]
    note_lines = []
    for note in notes:
        note_lines.append(filled(note.split(), "- ", "  "))
    # 3) all in sections
    sections = [
        f"{source}\n{result.n_train:,} training texts, {result.n_test:,} test texts, "
        f"{len(result.classes)} classes.",
        "\n".join([head, "─" * WIDTH, *rows, legend]),
        "\n".join(note_lines),
    ]
    return "\n\n".join([*sections, *_token_sections(tokens)])


def fit_text(facts: dict[str, str], tokens: Any) -> str:
    """Return the report of one fit: named facts, then tokens."""
    width = max(map(len, facts)) + 2
    lines = []
    for name, fact in facts.items():
        lines.append(filled(fact.split(), name.ljust(width), " " * width))
    return "\n\n".join(["\n".join(lines), *_token_sections(tokens)])


def _token_sections(tokens: Any) -> list[str]:
    """Return the lists of each class's most important and most selected tokens."""
    # 1) each class's label and its tokens in words
    important = []
    selected = []
    for one in tokens:
        names = [token_text(name) for name, _ in one.important]
        important.append((one.label, names))
        counted = [f"{token_text(name)} ({n})" for name, n in one.selected]
        selected.append((one.label, counted))
    # 2) the lists; in texts that are all alike, no token is important
    by_importance = "value × standard deviation of attention"
    by_selection = "number of texts where it gets the most attention"
    sections = []
    if any(names for _, names in important):
        title = f"Most important tokens of each class ({by_importance})"
        sections.append(token_lists(title, important))
    title = f"Most selected tokens ({by_selection})"
    sections.append(token_lists(title, selected))
    return sections
