"""The arguments of the command line: what each command can be told."""

# As for all of the command line: no library that is slow to load.
import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from sklearn_clsattn import __version__

PROGRAM = "sklearn-clsattn"

_FORMATS = "CSV, TSV, JSON lines or Parquet, compressed or not"
_TRUST = (
    "A model file is a pickle: loading one runs whatever code is in it. "
    "Load only files that you trust."
)


class UsageError(Exception):
    """The arguments cannot be understood."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all our errors are."""

    def error(self, message: str) -> NoReturn:
        """Hand the message to :func:`~sklearn_clsattn.cli.main`."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Returns
    -------
    parser : ArgumentParser
        It raises :class:`UsageError` rather than ending the program.
    """
    parser = _Parser(
        prog=PROGRAM,
        description="Interpretable text classification with one <cls> attention layer.",
        allow_abbrev=False,
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
        "how fast each does, and the tokens by which ours tells the classes.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "data",
        nargs="?",
        type=Path,
        metavar="DATA",
        help=f"labelled texts ({_FORMATS}); without, reviews are generated",
    )
    _add_reading(parser, label=True)
    _add_test(parser)
    _add_tokens(parser)
    parser.add_argument(
        "--tune",
        action="store_true",
        help="tune every model alike first (5 values, 3-fold cross-validation)",
    )
    _add_top(parser)
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write all of it as JSON")
    _add_quiet(parser)


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="fit a model and save it",
        description="Fit a pipeline of CountVectorizer and ClsAttentionClassifier on labelled "
        f"texts and save it with joblib. {_TRUST}",
        allow_abbrev=False,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help=f"labelled texts ({_FORMATS})")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="MODEL", help="file for the model"
    )
    parser.add_argument("--force", action="store_true", help="overwrite MODEL if it is there")
    _add_reading(parser, label=True)
    _add_tokens(parser)
    parser.add_argument(
        "--C",
        type=_positive_float,
        default=None,
        metavar="C",
        help="inverse strength of the penalty on token values (default: the classifier's)",
    )
    parser.add_argument(
        "--attention-C",
        type=_positive_float,
        default=None,
        metavar="C",
        help="the same for attention scores (default: the classifier's)",
    )
    _add_top(parser)
    _add_quiet(parser)


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="classify texts with a saved model",
        description="Write a CSV with the predicted class of each text and the probability of "
        f"every class. {_TRUST}",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="a file that 'fit' has saved, which you trust"
    )
    parser.add_argument("data", type=Path, metavar="DATA", help=f"texts ({_FORMATS})")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="CSV file to write (default: to stdout)"
    )
    _add_reading(parser, label=False)


def _add_explain(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="explain what a saved model says of texts",
        description="Show what every word of a text adds to the decision, exactly: as text in the "
        f"terminal, or as a page of HTML. {_TRUST}",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="a file that 'fit' has saved, which you trust"
    )
    parser.add_argument("data", nargs="?", type=Path, metavar="DATA", help=f"texts ({_FORMATS})")
    parser.add_argument(
        "--say",
        action="append",
        metavar="TEXT",
        help="explain this text rather than a file's; may be given several times",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="HTML file to write (default: to stdout)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")
    parser.add_argument(
        "--target",
        metavar="CLASS",
        help="the class to explain (default: the predicted one, or the second of two)",
    )
    _add_reading(parser, label=False)
    parser.add_argument(
        "--label", metavar="COL", help="column of the true classes (default: none are shown)"
    )
    parser.add_argument(
        "--limit",
        type=_positive_int,
        default=10,
        metavar="N",
        help="explain the first N texts of DATA (default: 10)",
    )
    parser.add_argument(
        "--top",
        type=_natural,
        default=8,
        metavar="N",
        help="list N tokens for and N against each decision (default: 8)",
    )


def _add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="write a page on what a model reaches, goes by, and gets wrong",
        description="Fit our classifier and logistic regressions on the same texts and write one "
        "page of HTML: test measures, calibration, confusions, the tokens it goes by, its worst "
        "mistakes and where the models disagree, word by word.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "data",
        nargs="?",
        type=Path,
        metavar="DATA",
        help=f"labelled texts ({_FORMATS}); without, reviews are generated",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="OUT",
        help="HTML file to write (default: report.html)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")
    _add_reading(parser, label=True)
    _add_test(parser)
    _add_tokens(parser)
    _add_top(parser)
    parser.add_argument(
        "--mistakes",
        type=_natural,
        default=10,
        metavar="N",
        help="show the N worst mistakes, and half as many texts where only one of both models is "
        "right, of either kind (default: 10)",
    )
    _add_quiet(parser)


def _add_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--test",
        type=Path,
        metavar="FILE",
        help="texts to measure on, in the same columns; without, 20 %% of DATA is held out",
    )


def _add_reading(parser: argparse.ArgumentParser, *, label: bool) -> None:
    parser.add_argument("--text", metavar="COL", help="column of the texts (default: usual names)")
    if label:
        parser.add_argument(
            "--label", metavar="COL", help="column of the labels (default: usual names)"
        )
    parser.add_argument("--encoding", default="utf-8", metavar="E", help="(default: utf-8)")
    parser.add_argument(
        "--sep", metavar="CHAR", help="character between columns (default: by the file's name)"
    )


def _add_tokens(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ngrams",
        type=_positive_int,
        default=1,
        metavar="N",
        help="tokens are sequences of 1 to N words (default: 1)",
    )
    parser.add_argument(
        "--min-df",
        type=_positive_int,
        default=2,
        metavar="N",
        help="leave out tokens in fewer than N training texts (default: 2)",
    )


def _add_top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--top",
        type=_natural,
        default=10,
        metavar="N",
        help="show N tokens of each class (default: 10)",
    )


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _natural(text: str) -> int:
    return _number(text, int, 0)


def _positive_int(text: str) -> int:
    return _number(text, int, 1)


def _positive_float(text: str) -> float:
    return _number(text, float, sys.float_info.min)


def _number(text: str, kind: type, least: float) -> Any:
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is None or not least <= number < float("inf"):
        bound = "of 0 or more" if least == 0 else "above 0"
        what = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"expected {what} {bound}, got {text!r}")
    return number
