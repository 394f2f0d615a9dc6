"""The arguments of the commands."""

# No libraries that are slow to load, so that --help is fast.
import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from sklearn_clsattn import __version__

PROGRAM = "sklearn-clsattn"
STDIN = "-"

_FORMATS = "CSV, TSV, JSON lines or Parquet, compressed or not; - is standard input"
_TRUST = (
    "A model in a file *.skops can be loaded whoever made it. Any other file is a pickle: loading "
    "one runs whatever code is in it. Load only files that you trust."
)


class UsageError(Exception):
    """The arguments are not valid."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors as the rest of the command line does, in one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise the message, for :func:`~sklearn_clsattn.cli.main` to print."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, which raises :class:`UsageError` on errors."""
    parser = _Parser(
        prog=PROGRAM,
        description="Interpretable text classification with one <cls> attention layer.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_compare(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_report(commands)
    return parser


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare classifiers on labelled texts",
        description="Fit our classifier and the usual ones on the same texts; print how well and "
        "how fast each does, and the most important tokens of each class in ours.",
    )
    _add_labelled(parser)


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="fit a model and save it",
        description="Fit a pipeline of ContextVectorizer and ClsAttentionClassifier on labelled "
        f"texts and save it. {_TRUST}",
    )
    parser.add_argument("data", type=Path, metavar="DATA", help=f"labelled texts ({_FORMATS})")
    what = "file for the model; *.skops is the name of the safe format"
    _add_output(parser, "MODEL", what, required=True)
    _add_fitting(parser)
    parser.add_argument(
        "--C",
        type=_number(float, auto=True),
        help='inverse strength of the penalty on token values, or "auto" (default: the '
        "classifier's)",
    )


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="classify texts with a saved model",
        description="Write a CSV with the columns of DATA, the predicted class of each text and "
        f"the probability of every class. {_TRUST}",
    )
    _add_model(parser)
    parser.add_argument("data", type=Path, metavar="DATA", help=f"texts ({_FORMATS})")
    _add_output(parser, "OUT", "CSV file to write (default: to stdout)")
    parser.add_argument(
        "--raw-labels",
        action="store_true",
        help="write labels as they are; by default those that a spreadsheet would take for a "
        "formula, such as =1+1, get a ' before them",
    )
    _add_reading(parser)


def _add_explain(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="explain a saved model's predictions for texts",
        description="Show what every word of a text adds to the decision, exactly: as text in the "
        f"terminal, or as a page of HTML. {_TRUST}",
    )
    _add_model(parser)
    parser.add_argument("data", nargs="?", type=Path, metavar="DATA", help=f"texts ({_FORMATS})")
    parser.add_argument(
        "--say",
        action="append",
        metavar="TEXT",
        help="explain this text rather than a file's; may be given several times",
    )
    _add_output(parser, "OUT", "HTML file to write (default: to stdout)")
    parser.add_argument(
        "--target",
        metavar="CLASS",
        help="the class to explain (default: the predicted one, or the second of two), or to reach",
    )
    parser.add_argument(
        "--counterfactual",
        nargs="?",
        const="words",
        choices=["words", "tokens", "add"],
        metavar="CHANGE",
        help="show the smallest change of each prediction instead: the fewest words to remove "
        "(default), tokens to remove, or tokens to add (words, tokens, add)",
    )
    _add_reading(parser, label="column of the true classes (default: none are shown)")
    _add_count(parser, "--limit", _number(int, 1), 10, "explain the first N texts of DATA")
    _add_count(parser, "--top", _number(int, 0), 8, "list N tokens for and N against each decision")


def _add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="write a page on a model's accuracy, tokens and mistakes",
        description="Fit our classifier and logistic regressions on the same texts and write one "
        "page of HTML: test measures, calibration, confusions, the most important tokens and the "
        "worst mistakes, word by word.",
    )
    usual = Path("report.html")
    _add_output(parser, "OUT", f"HTML file to write (default: {usual})", default=usual)
    _add_labelled(parser)
    _add_count(parser, "--mistakes", _number(int, 0), 10, "show the N worst mistakes")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a file that 'fit' has saved; if it is no *.skops, one that you trust",
    )


def _add_output(parser: argparse.ArgumentParser, name: str, what: str, **settings: Any) -> None:
    """Add the arguments of a file to write."""
    parser.add_argument("-o", "--output", type=Path, metavar=name, help=what, **settings)
    parser.add_argument("--force", action="store_true", help=f"overwrite {name} if it is there")


def _add_labelled(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that fit on some texts and test on others."""
    parser.add_argument(
        "data",
        nargs="?",
        type=Path,
        metavar="DATA",
        help=f"labelled texts ({_FORMATS}); without, reviews are generated",
    )
    parser.add_argument(
        "--test",
        type=Path,
        metavar="FILE",
        help="texts to measure on, in the same columns; without, 20 %% of DATA is held out",
    )
    _add_fitting(parser)


def _add_fitting(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that fit a model."""
    _add_reading(parser, label="column of the labels (default: usual names)")
    _add_count(parser, "--ngrams", _number(int, 1), 2, "tokens are sequences of 1 to N words")
    fewer = "leave out word sequences in fewer than N training texts"
    _add_count(parser, "--min-df", _number(int, 1, auto=True), "auto", fewer)
    _add_count(parser, "--top", _number(int, 0), 10, "show N tokens of each class")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _add_reading(parser: argparse.ArgumentParser, *, label: str | None = None) -> None:
    """Add the arguments of commands that read a file of texts; `label` is a help text."""
    parser.add_argument("--text", metavar="COL", help="column of the texts (default: usual names)")
    if label is not None:
        parser.add_argument("--label", metavar="COL", help=label)
    parser.add_argument("--encoding", default="utf-8", metavar="E", help="(default: utf-8)")
    parser.add_argument(
        "--sep",
        type=lambda text: "\t" if text == r"\t" else text,
        metavar="CHAR",
        help="character between columns (default: what the first row has: , or ; or | or a tab)",
    )


def _add_count(
    parser: argparse.ArgumentParser, option: str, kind: Any, default: int | str, help: str
) -> None:
    parser.add_argument(
        option, type=kind, default=default, metavar="N", help=f"{help} (default: {default})"
    )


def _number(kind: type, least: float = sys.float_info.min, *, auto: bool = False) -> Any:
    """Return a function that reads a number, or "auto", from an argument."""

    def read(text: str) -> Any:
        if auto and text == "auto":
            return text
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not least <= number < float("inf"):
            bound = "of 0 or more" if least == 0 else "above 0"
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"expected {what} {bound}, got {text!r}")
        return number

    return read
