"""The commands, one function each: callers of the package's functions."""

import csv
import sys
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .._text_classifier import TextClassifier
from .._writing import visible, written_whole
from ..comparison import compare, probability_text
from ..datasets import load_requests
from ..inspection import explain, report
from ..inspection.displays import important_tokens, token_importance
from ..saving import load_model, save_model

_N_TOKENS = 8  # of each class
_N_EXAMPLES = 5
_TEST_SHARE = 0.2


def run_compare(arguments: Namespace) -> None:
    """Compare models on the same texts, and print their measures."""
    X_train, X_test, y_train, y_test = _split(arguments)
    measures = compare(X_train, y_train, X_test, y_test)
    print(f"{len(X_train):,} training texts, {len(X_test):,} test texts")
    measures["p_value"] = measures["p_value"].map(probability_text, na_action="ignore")
    print(measures.to_string(float_format="{:.4f}".format, na_rep="-"))
    print(
        "p_value: how probable so large a difference in accuracy from the first model is by chance"
    )


def run_fit(arguments: Namespace) -> None:
    """Fit a model on labelled texts, save it, and print its most important tokens."""
    _check_free(arguments)
    # 1) the texts
    texts, labels = _labelled(arguments, arguments.data)
    unlabeled = None
    if arguments.unlabeled is not None:
        unlabeled = _texts(_table(arguments, arguments.unlabeled), arguments)
    # 2) the model, with defaults where the command line says nothing
    model = TextClassifier()
    for parameter, value in (("C", arguments.C), ("min_df", arguments.min_df)):
        if value is not None:
            model.set_params(**{parameter: value})
    if arguments.ignore is not None:
        lines = arguments.ignore.read_text("utf-8").splitlines()
        model.set_params(stop_words=list(filter(None, map(str.strip, lines))))
    model.fit(texts, labels, unlabeled=unlabeled)
    save_model(model, arguments.output)
    # 3) what it has learned
    print(f"{arguments.output}: a model of {len(texts):,} texts, C {model.C_:.3g}")
    print("Most important tokens of each class (value × standard deviation of attention):")
    importance = token_importance(model, texts)
    for label in importance.columns.tolist():
        tokens = important_tokens(importance, label, _N_TOKENS).index.tolist()
        print(visible(f"  {label}: {', '.join(tokens)}"))


def run_predict(arguments: Namespace) -> None:
    """Classify texts with a saved model, and write a table."""
    _check_free(arguments)
    model = load_model(arguments.model)
    table = _table(arguments, arguments.data)
    texts = _texts(table, arguments)
    # 1) the new columns
    names = [f"probability_{label}" for label in model.classes_.tolist()]
    columns = pd.DataFrame(model.predict_proba(texts), table.index, names).round(6)
    columns.insert(0, "prediction", model.predict(texts).tolist())
    taken = table.columns.intersection(columns.columns).tolist()
    if taken:
        raise ValueError(f"{arguments.data} has columns that predict writes: rename {taken}")
    # 2) the table with them
    table = pd.concat([table, columns], axis=1)
    if arguments.output is None:
        table.to_csv(sys.stdout, index=False)
        return
    with written_whole(arguments.output, text=True) as file:
        table.to_csv(file, index=False, lineterminator="\r\n")


def run_explain(arguments: Namespace) -> None:
    """Explain a saved model's predictions for texts, in the terminal or as a page."""
    _check_free(arguments)
    model = load_model(arguments.model)
    texts = arguments.say
    if texts is None:
        texts = _texts(_table(arguments, arguments.data), arguments)[: arguments.limit]
    # 1) the class to explain, or to reach
    classes = {str(label): label for label in model.classes_.tolist()}
    if arguments.target is not None and arguments.target not in classes:
        raise ValueError(f"--target {arguments.target} is not one of {', '.join(classes)}")
    target = classes.get(arguments.target)
    # 2) the answer
    answer: Any
    if not arguments.counterfactual:
        answer = explain(model, texts, target=target)
    elif getattr(model, "multilabel_", False):
        answer = explain(model, texts, target=target).counterfactual()
    else:
        answer = explain(model, texts).counterfactual(to=target)
    if arguments.output is None:
        print(answer.to_text())
    else:
        _write(arguments.output, answer.to_html())


def run_report(arguments: Namespace) -> None:
    """Fit models on texts, and write a page on them."""
    _check_free(arguments)
    X_train, X_test, y_train, y_test = _split(arguments)
    title = "Model report" if arguments.data is None else f"Model report: {arguments.data.name}"
    page = report(TextClassifier(), X_test, y_test, X_train=X_train, y_train=y_train, title=title)
    _write(arguments.output, page)


def run_page(arguments: Namespace) -> None:
    """Write a saved model as a page."""
    _check_free(arguments)
    model = load_model(arguments.model)
    texts: list[str] = []
    if arguments.examples is not None:
        texts = _texts(_table(arguments, arguments.examples), arguments)
    examples = texts[:_N_EXAMPLES]
    model.to_page(arguments.output, title=arguments.title, examples=examples, texts=texts)


def read_table(path: Path, sep: str | None = None, encoding: str = "utf-8") -> pd.DataFrame:
    """Return the table in a file; cells of delimited text are strings, as they are written.

    Its name ends in .csv, .tsv, whose cells have no quotes, .jsonl or .parquet, before the
    extension of a compression.
    """
    # 1) formats whose cells have types
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".parquet" in suffixes:
        return pd.read_parquet(path)
    if ".jsonl" in suffixes:
        return pd.read_json(path, lines=True, dtype=False, convert_axes=False, encoding=encoding)
    # 2) delimited text
    quoting: Any = csv.QUOTE_MINIMAL
    if ".tsv" in suffixes and sep is None:
        sep = "\t"
        quoting = csv.QUOTE_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # of rows that are cut off
        return pd.read_csv(
            path,
            sep=sep or ",",
            quoting=quoting,
            encoding=encoding,
            dtype=str,
            keep_default_na=False,
            index_col=False,
        )


def _table(arguments: Namespace, path: Path) -> pd.DataFrame:
    """Return the table in a file, read as arguments say."""
    try:
        return read_table(path, arguments.sep, arguments.encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not {arguments.encoding}: choose with --encoding") from error


def _column(table: pd.DataFrame, name: str) -> "pd.Series[Any]":
    """Return a column of a table."""
    if name not in table:
        names = ", ".join(map(str, table.columns))
        options = "--text and --label" if len(table.columns) > 1 else "--sep, --text and --label"
        raise ValueError(f"there is no column {name!r} among {names}: choose with {options}")
    return table[name]


def _texts(table: pd.DataFrame, arguments: Namespace) -> list[str]:
    """Return the texts of a table."""
    texts: list[str] = _column(table, arguments.text).tolist()
    return texts


def _labelled(arguments: Namespace, path: Path) -> tuple[list[str], NDArray[Any]]:
    """Return the texts and labels in a file."""
    table = _table(arguments, path)
    labels = _column(table, arguments.label)
    is_missing = labels.isna() | (labels == "")  # empty cells of delimited text are ""
    if is_missing.any():
        raise ValueError(f"row {is_missing.argmax() + 1} of {path} has no label")
    return _texts(table, arguments), labels.to_numpy()


def _split(arguments: Namespace) -> tuple[Any, Any, Any, Any]:
    """Return texts for training and test, and their labels: generated messages without a file."""
    # 1) labelled texts
    if arguments.data is None:
        texts, labels = load_requests(return_X_y=True)
    else:
        texts, labels = _labelled(arguments, arguments.data)
    # 2) a file of test texts, or a part of them
    if arguments.test is not None:
        test_texts, test_labels = _labelled(arguments, arguments.test)
        return texts, test_texts, labels, test_labels
    options = {"test_size": _TEST_SHARE, "random_state": 0, "stratify": labels}
    X_train, X_test, y_train, y_test = train_test_split(texts, labels, **options)
    return X_train, X_test, y_train, y_test


def _check_free(arguments: Namespace) -> None:
    """Raise an error, before what takes long, if there is no place for the output."""
    output = arguments.output
    if output is None:
        return
    if output.is_dir() or not output.parent.is_dir():
        raise OSError(f"{output} is not a file in a folder that exists")
    if output.is_file() and not arguments.force:
        raise FileExistsError(f"{output} exists already: pass --force to overwrite it")


def _write(path: Path, page: str) -> None:
    """Write a page."""
    with written_whole(path, text=True) as file:
        file.write(page)
