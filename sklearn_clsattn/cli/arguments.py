"""The arguments of the commands, and the function by which they print."""

# No libraries that are slow to load, so that --help is fast.
import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

from sklearn_clsattn import __version__
from sklearn_clsattn._writing import visible

PROGRAM = "sklearn-clsattn"
STDIN = "-"

# Colours and the like, as rich writes them.
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
_FORMATS = "CSV, TSV, JSON lines or Parquet, compressed or not; - is standard input"
_TRUST = (
    "A model in a file *.skops can be loaded whoever made it. Any other file is a pickle: loading "
    "one runs whatever code is in it. Load only files that you trust."
)
_COMPARED = "Fit our classifier and others on the same texts, and"


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

    def command(name: str, help: str, description: str) -> Any:
        return commands.add_parser(name, help=help, description=description).add_argument

    add = command(
        "compare",
        "compare classifiers on labelled texts",
        f"{_COMPARED} print how well and how fast each does, and the tokens of ours that matter "
        "most in each class.",
    )
    _add_labelled(add)

    add = command(
        "fit",
        "fit a model and save it",
        f"Fit the pipeline of make_text_classifier on labelled texts and save it. {_TRUST}",
    )
    add("data", type=Path, metavar="DATA", help=f"labelled texts ({_FORMATS})")
    what = "file for the model; *.skops is the name of the safe format"
    _add_output(add, "MODEL", what, required=True)
    _add_fitting(add)
    what = 'inverse strength of the penalty on token values, or "auto" (default: auto)'
    add("--C", type=_number(float, auto=True), help=what)

    add = command(
        "predict",
        "classify texts with a saved model",
        "Write a CSV with the columns of DATA, the predicted class of each text and the "
        f"probability of every class. {_TRUST}",
    )
    _add_model(add)
    add("data", type=Path, metavar="DATA", help=f"texts ({_FORMATS})")
    _add_output(add, "OUT", "CSV file to write (default: to stdout)")
    what = "write labels without the ' before those that a spreadsheet takes for formulas (=1+1)"
    add("--raw-labels", action="store_true", help=what)
    _add_reading(add)

    add = command(
        "explain",
        "explain a saved model's predictions for texts",
        "Show what every word of a text adds to the decision, exactly: as text in the terminal, or "
        f"as a page of HTML. {_TRUST}",
    )
    _add_model(add)
    add("data", nargs="?", type=Path, metavar="DATA", help=f"texts ({_FORMATS})")
    what = "explain this text rather than a file's; may be given several times"
    add("--say", action="append", metavar="TEXT", help=what)
    _add_output(add, "OUT", "HTML file to write (default: to stdout)")
    what = "the class to explain (default: the predicted one, or the second of two), or to reach"
    add("--target", metavar="CLASS", help=what)
    changes = ["words", "tokens", "add"]
    what = "show the smallest change of each prediction instead: the fewest words (default) or "
    what += "tokens to remove, or tokens to add (words, tokens, add)"
    settings = {"nargs": "?", "const": "words", "choices": changes, "metavar": "CHANGE"}
    add("--counterfactual", help=what, **settings)
    _add_reading(add)
    what = "explain the first N texts of DATA (default: 10)"
    add("--limit", type=_number(int), default=10, metavar="N", help=what)

    add = command(
        "report",
        "write a page on a model's accuracy, tokens and mistakes",
        f"{_COMPARED} write one page of HTML: test measures, calibration, confusions, the most "
        "important tokens and the worst mistakes, word by word.",
    )
    usual = Path("report.html")
    _add_output(add, "OUT", f"HTML file to write (default: {usual})", default=usual)
    _add_labelled(add)
    return parser


def _add_model(add: Callable[..., Any]) -> None:
    what = "a file that 'fit' has saved; if it is no *.skops, one that you trust"
    add("model", type=Path, metavar="MODEL", help=what)


def _add_output(add: Callable[..., Any], name: str, what: str, **settings: Any) -> None:
    add("-o", "--output", type=Path, metavar=name, help=what, **settings)
    add("--force", action="store_true", help=f"overwrite {name} if it is there")


def _add_labelled(add: Callable[..., Any]) -> None:
    """Add the arguments of commands that fit on some texts and test on others."""
    what = f"labelled texts ({_FORMATS}); without, reviews are generated"
    add("data", nargs="?", type=Path, metavar="DATA", help=what)
    what = "texts to measure on, in the same columns; without, 20 %% of DATA is held out"
    add("--test", type=Path, metavar="FILE", help=what)
    _add_fitting(add)


def _add_fitting(add: Callable[..., Any]) -> None:
    """Add the arguments of commands that fit a model."""
    _add_reading(add)
    add("--label", metavar="COL", help="column of the labels (default: usual names)")
    what = "leave out word sequences in fewer than N training texts (default: auto)"
    add("--min-df", type=_number(int, auto=True), default="auto", metavar="N", help=what)
    add("--quiet", action="store_true", help="show no progress")


def _add_reading(add: Callable[..., Any]) -> None:
    """Add the arguments of commands that read a file of texts."""
    add("--text", metavar="COL", help="column of the texts (default: usual names)")
    add("--encoding", default="utf-8", metavar="E", help="(default: utf-8)")
    what = "character between columns (default: what the first row has: , or ; or | or a tab)"
    add("--sep", type=lambda text: text.replace(r"\t", "\t"), metavar="CHAR", help=what)


def _number(kind: type, *, auto: bool = False) -> Callable[[str], Any]:
    """Return a function that reads a number above 0, or "auto", from an argument."""

    def read(text: str) -> Any:
        if auto and text == "auto":
            return text
        try:
            number = kind(text)
        except ValueError:
            number = 0
        if not 0 < number < float("inf"):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"expected {what} above 0, got {text!r}")
        return number

    return read


def say(text: str, file: IO[str] | None = None, *, styled: bool = False) -> None:
    """Print text, on stdout by default, with its control characters made visible.

    This is the one place that prints: nothing foreign controls the terminal. `styled` text has
    codes of colours that this package has put there, around text that was made visible already.
    """
    parts = _STYLE.split(text) if styled else [text]
    shown = [part if at % 2 else visible(part, keep_lines=True) for at, part in enumerate(parts)]
    print("".join(shown), file=sys.stdout if file is None else file, flush=True)
