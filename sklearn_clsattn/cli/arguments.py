"""The arguments of the commands, and the function that prints their output."""

# No slow imports, so that --help is fast.
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

# Control codes for colours, as rich writes them.
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


def say(text: str, file: IO[str] | None = None, *, styled: bool = False) -> None:
    """Print text, on stdout by default, with its control characters made visible.

    This is the only place that prints, so no foreign text can control the terminal. `styled` text
    has colour codes from this package, around text that was made visible already.
    """
    shown = []
    for part in _STYLE.split(text) if styled else [text]:
        is_style = styled and _STYLE.fullmatch(part) is not None
        shown.append(part if is_style else visible(part, keep_lines=True))
    print("".join(shown), file=sys.stdout if file is None else file, flush=True)


class _Parser(argparse.ArgumentParser):
    """A parser that raises errors for `main` to print in one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def _number(kind: type, *, auto: bool = False) -> Callable[[str], Any]:
    """Return a function that reads a number above 0, or "auto", from an argument."""

    def read(text: str) -> Any:
        if auto and text == "auto":
            return text
        try:
            number = kind(text)
        except ValueError:
            number = 0  # refused below
        if not 0 < number < float("inf"):
            what = "a whole number" if kind is int else "a number"
            what += ' above 0 or "auto"' if auto else " above 0"
            raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
        return number

    return read


# Phrases of several help texts.
_TRUST = (
    "A model file named *.skops is safe to load, whoever made it. Any other file is a pickle: "
    "loading it runs the code in it. Load only files that you trust."
)
_COMPARED = "Fit this package's classifier and others on the same texts, and"
_FORMATS = "(CSV, TSV, JSON lines or Parquet, compressed or not; - is standard input)"
_REPORT = Path("report.html")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, which raises ValueError on errors."""
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
    """Add the command that compares models."""
    parser = commands.add_parser(
        "compare",
        help="compare classifiers on labelled texts",
        description=f"{_COMPARED} print the accuracy and speed of each, and the most important "
        "tokens of each class.",
    )
    _add_labelled(parser)


def _add_fit(commands: Any) -> None:
    """Add the command that fits a model."""
    parser = commands.add_parser(
        "fit",
        help="fit a model and save it",
        description=f"Fit a TextClassifier on labelled texts and save it. {_TRUST}",
    )
    _add_data(parser, f"labelled texts {_FORMATS}")
    _add_output(parser, "MODEL", "file for the model; *.skops is the safe format", required=True)
    _add_fitting(parser)
    parser.add_argument(
        "--C",
        help='inverse strength of the penalty on token values, or "auto" (default: auto)',
        type=_number(float, auto=True),
    )
    parser.add_argument(
        "--unlabeled",
        help="texts without labels, to learn similarities of words from; one per line in a *.txt "
        "file",
        type=Path,
        metavar="FILE",
    )
    parser.add_argument(
        "--teacher-columns",
        help="columns of the --unlabeled FILE with another model's probability of each class, to "
        "learn as well; columns have the classes' names, or are given as CLASS=COLUMN",
        metavar="NAME,NAME,...",
    )


def _add_predict(commands: Any) -> None:
    """Add the command that classifies texts."""
    parser = commands.add_parser(
        "predict",
        help="classify texts with a saved model",
        description="Write a CSV file with the columns of DATA, the predicted class of each text "
        f"and the probability of each class. {_TRUST}",
    )
    _add_model(parser)
    _add_data(parser, f"texts {_FORMATS}, or one a line in a *.txt")
    _add_output(parser, "OUT", "CSV file to write (default: to stdout)")
    _add_reading(parser)


def _add_explain(commands: Any) -> None:
    """Add the command that explains predictions."""
    parser = commands.add_parser(
        "explain",
        help="explain a saved model's predictions for texts",
        description="Show exactly what each word of a text adds to the decision, as text in the "
        f"terminal or as an HTML page. {_TRUST}",
    )
    _add_model(parser)
    _add_data(parser, f"texts {_FORMATS}, or one a line in a *.txt", nargs="?")
    parser.add_argument(
        "--say",
        help="explain this text instead of a file; may be repeated",
        action="append",
        metavar="TEXT",
    )
    _add_output(parser, "OUT", "HTML file to write (default: text, to stdout)")
    parser.add_argument(
        "--target",
        help="the class to explain (default: the predicted one, or the second of two), or to reach",
        metavar="CLASS",
    )
    parser.add_argument(
        "--counterfactual",
        help="show the fewest words (default) to delete from each text, or the fewest counts of "
        "tokens to set to 0, so that its prediction changes (words, tokens)",
        nargs="?",
        const="words",
        choices=["words", "tokens"],
        metavar="CHANGE",
    )
    _add_reading(parser)
    parser.add_argument(
        "--limit",
        help="explain the first N texts of DATA (default: 10)",
        type=_number(int),
        default=10,
        metavar="N",
    )


def _add_report(commands: Any) -> None:
    """Add the command that writes a report."""
    parser = commands.add_parser(
        "report",
        help="write a page on a model's accuracy, tokens and mistakes",
        description=f"{_COMPARED} write one HTML page: test measures, calibration, confusions, the "
        "most important tokens, and the worst mistakes explained word by word.",
    )
    _add_output(parser, "OUT", f"HTML file to write (default: {_REPORT})", default=_REPORT)
    _add_labelled(parser)


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a saved model."""
    parser.add_argument(
        "model",
        help="a file saved by 'fit'; unless it is a *.skops file, you must trust it",
        type=Path,
        metavar="MODEL",
    )


def _add_data(parser: argparse.ArgumentParser, help: str, **settings: Any) -> None:
    """Add the argument that names a file of texts."""
    parser.add_argument("data", help=help, type=Path, metavar="DATA", **settings)


def _add_output(parser: argparse.ArgumentParser, name: str, help: str, **settings: Any) -> None:
    """Add the options of the file to write."""
    parser.add_argument("-o", "--output", help=help, type=Path, metavar=name, **settings)
    parser.add_argument("--force", help=f"overwrite {name} if it exists", action="store_true")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a file of texts."""
    parser.add_argument("--text", help="column of the texts (default: common names)", metavar="COL")
    parser.add_argument("--encoding", help="(default: utf-8)", default="utf-8", metavar="E")
    parser.add_argument(
        "--sep",
        help="character between columns (default: detected; one of , ; | and tab)",
        metavar="CHAR",
        type=lambda text: text.replace(r"\t", "\t"),
    )


def _add_fitting(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that fit models on labelled texts."""
    _add_reading(parser)
    parser.add_argument(
        "--label", help="column of the labels (default: common names)", metavar="COL"
    )
    parser.add_argument(
        "--min-df",
        help="ignore words and word pairs in fewer than N training texts (default: auto)",
        type=_number(int, auto=True),
        default="auto",
        metavar="N",
    )
    parser.add_argument("--quiet", help="do not show progress", action="store_true")


def _add_labelled(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that fit models and measure them on test texts."""
    _add_data(parser, f"labelled texts {_FORMATS} (default: generated reviews)", nargs="?")
    parser.add_argument(
        "--test",
        help="test texts, in the same columns (default: 20 %% of DATA is held out)",
        type=Path,
        metavar="FILE",
    )
    _add_fitting(parser)
