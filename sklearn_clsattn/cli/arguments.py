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
    parts = _STYLE.split(text) if styled else [text]
    shown = [part if at % 2 else visible(part, keep_lines=True) for at, part in enumerate(parts)]
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
            number = 0
        if not 0 < number < float("inf"):
            what = "a whole number" if kind is int else "a number"
            what += ' above 0 or "auto"' if auto else " above 0"
            raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
        return number

    return read


def _option(*names: str, help: str, **settings: Any) -> tuple[Any, ...]:
    return names, {"help": help, **settings}


def _output(name: str, help: str, **settings: Any) -> list[Any]:
    return [
        _option("-o", "--output", help=help, type=Path, metavar=name, **settings),
        _option("--force", help=f"overwrite {name} if it exists", action="store_true"),
    ]


def _data(what: str, **settings: Any) -> Any:
    formats = "(CSV, TSV, JSON lines or Parquet, compressed or not; - is standard input)"
    return _option("data", help=what.format(formats), type=Path, metavar="DATA", **settings)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, which raises ValueError on errors."""
    parser = _Parser(
        prog=PROGRAM,
        description="Interpretable text classification with one <cls> attention layer.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, help: str, description: str, *options: Any) -> None:
        added = commands.add_parser(name, help=help, description=description)
        for names, settings in options:
            added.add_argument(*names, **settings)

    trust = (
        "A model file named *.skops is safe to load, whoever made it. Any other file is a pickle: "
        "loading it runs the code in it. Load only files that you trust."
    )
    compared = "Fit this package's classifier and others on the same texts, and"
    what = "a file saved by 'fit'; unless it is a *.skops file, you must trust it"
    model = _option("model", help=what, type=Path, metavar="MODEL")
    what = "character between columns (default: detected; one of , ; | and tab)"
    reading = [
        _option("--text", help="column of the texts (default: common names)", metavar="COL"),
        _option("--encoding", help="(default: utf-8)", default="utf-8", metavar="E"),
        _option("--sep", help=what, metavar="CHAR", type=lambda text: text.replace(r"\t", "\t")),
    ]
    what = "ignore words and word pairs in fewer than N training texts (default: auto)"
    min_df = {"type": _number(int, auto=True), "default": "auto", "metavar": "N"}
    fitting = [
        *reading,
        _option("--label", help="column of the labels (default: common names)", metavar="COL"),
        _option("--min-df", help=what, **min_df),
        _option("--quiet", help="do not show progress", action="store_true"),
    ]
    what = "test texts, in the same columns (default: 20 %% of DATA is held out)"
    labelled = [
        _data("labelled texts {} (default: generated reviews)", nargs="?"),
        _option("--test", help=what, type=Path, metavar="FILE"),
        *fitting,
    ]
    command(
        "compare",
        "compare classifiers on labelled texts",
        f"{compared} print the accuracy and speed of each, and the most important tokens of each "
        "class.",
        *labelled,
    )
    more = "texts without labels, to learn similarities of words from; one per line in a *.txt file"
    taught = (
        "columns of the --unlabeled FILE with another model's probability of each class, to learn "
        "as well; columns have the classes' names, or are given as CLASS=COLUMN"
    )
    saved = "file for the model; *.skops is the safe format"
    what = 'inverse strength of the penalty on token values, or "auto" (default: auto)'
    forms = "Unicode normalization form of the texts, so that texts that look the same are the "
    forms += "same; none leaves them as they are (NFKC, NFC or none; default: NFKC)"
    normalize = {"choices": ["NFKC", "NFC", "none"], "metavar": "FORM"}
    command(
        "fit",
        "fit a model and save it",
        f"Fit the pipeline of make_text_classifier on labelled texts and save it. {trust}",
        _data("labelled texts {}"),
        *_output("MODEL", saved, required=True),
        *fitting,
        _option("--C", help=what, type=_number(float, auto=True)),
        _option("--normalize", help=forms, **normalize),
        _option("--unlabeled", help=more, type=Path, metavar="FILE"),
        _option("--teacher-columns", help=taught, metavar="NAME,NAME,..."),
    )
    command(
        "predict",
        "classify texts with a saved model",
        "Write a CSV file with the columns of DATA, the predicted class of each text and the "
        f"probability of each class. {trust}",
        model,
        _data("texts {}, or one a line in a *.txt"),
        *_output("OUT", "CSV file to write (default: to stdout)"),
        *reading,
    )
    what = "explain this text instead of a file; may be repeated"
    target = "the class to explain (default: the predicted one, or the second of two), or to reach"
    change = "show the fewest words (default) to delete from each text, or the fewest counts of "
    change += "tokens to set to 0, so that its prediction changes (words, tokens)"
    changes = {"nargs": "?", "const": "words", "choices": ["words", "tokens"]}
    limit = {"type": _number(int), "default": 10, "metavar": "N"}
    command(
        "explain",
        "explain a saved model's predictions for texts",
        "Show exactly what each word of a text adds to the decision, as text in the terminal or "
        f"as an HTML page. {trust}",
        model,
        _data("texts {}, or one a line in a *.txt", nargs="?"),
        _option("--say", help=what, action="append", metavar="TEXT"),
        *_output("OUT", "HTML file to write (default: text, to stdout)"),
        _option("--target", help=target, metavar="CLASS"),
        _option("--counterfactual", help=change, metavar="CHANGE", **changes),
        *reading,
        _option("--limit", help="explain the first N texts of DATA (default: 10)", **limit),
    )
    usual = Path("report.html")
    command(
        "report",
        "write a page on a model's accuracy, tokens and mistakes",
        f"{compared} write one HTML page: test measures, calibration, confusions, the most "
        "important tokens, and the worst mistakes explained word by word.",
        *_output("OUT", f"HTML file to write (default: {usual})", default=usual),
        *labelled,
    )
    return parser
