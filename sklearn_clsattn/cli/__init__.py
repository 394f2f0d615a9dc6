"""The command line: ``sklearn-clsattn`` with its six commands, and their arguments."""

# No slow imports, so that --help is fast.
import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__

_PROGRAM = "sklearn-clsattn"

_TRUST = (
    "A model file named *.skops is safe to load, whoever made it. Any other file is a pickle: "
    "loading it runs the code in it. Load only files that you trust."
)
_FORMATS = "(.csv, .tsv, .jsonl or .parquet, compressed or not)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Return 0 on success, 2 if arguments or files are invalid, 130 if interrupted, and 141 if the
    reader of the output closed it. Raise SystemExit after ``--help`` and ``--version``.
    """
    try:
        arguments = _new_parser().parse_args(argv)
        from . import commands  # libraries are slow to load, and --help needs none

        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: _complain(f"warning: {message}")
            getattr(commands, f"run_{arguments.command}")(arguments)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:  # what is left in the buffer goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # libraries have many for files that are not valid
        _complain(str(error) or type(error).__name__)
        return 2


def _complain(message: str) -> None:
    """Print a message in one line on standard error."""
    from .._writing import visible

    line = " ".join(message.split())
    print(visible(f"{_PROGRAM}: {line}"), file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """A parser that raises errors for `main` to print in one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def _new_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, which raises ValueError on errors."""
    parser = _Parser(
        prog=_PROGRAM,
        description="Interpretable text classification with one <cls> attention layer.",
    )
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_compare(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_report(commands)
    _add_page(commands)
    return parser


def _add_compare(commands: Any) -> None:
    """Add the command that compares models."""
    command = commands.add_parser(
        "compare",
        help="compare classifiers on labelled texts",
        description="Fit this package's classifier and others on the same texts, and print the "
        "accuracy and speed of each.",
    )
    _add_labelled_data(command)


def _add_fit(commands: Any) -> None:
    """Add the command that fits a model."""
    command = commands.add_parser(
        "fit",
        help="fit a model and save it",
        description=f"Fit a TextClassifier on labelled texts and save it. {_TRUST}",
    )
    # 1) the texts
    command.add_argument("data", help=f"labelled texts {_FORMATS}", type=Path, metavar="DATA")
    _add_label(command)
    _add_columns(command)
    command.add_argument(
        "--unlabeled",
        help="texts without labels, to learn similarities of words from",
        type=Path,
        metavar="FILE",
    )
    # 2) the model
    command.add_argument(
        "--C",
        help="inverse strength of the penalty on token values (default: chosen)",
        type=float,
    )
    command.add_argument(
        "--min-df",
        help="drop words and word pairs in fewer texts (default: 1, or 2 for 5,000 texts or more)",
        type=int,
        metavar="N",
    )
    command.add_argument(
        "--ignore",
        help="words that the model must not use, one a line",
        type=Path,
        metavar="FILE",
    )
    _add_output(command, "MODEL", "file for the model; *.skops is the safe format", required=True)


def _add_predict(commands: Any) -> None:
    """Add the command that classifies texts."""
    command = commands.add_parser(
        "predict",
        help="classify texts with a saved model",
        description="Write a CSV file with the columns of DATA, the predicted class of each text "
        f"and the probability of each class. {_TRUST}",
    )
    _add_model(command)
    command.add_argument("data", help=f"texts {_FORMATS}", type=Path, metavar="DATA")
    _add_columns(command)
    _add_output(command, "OUT", "CSV file to write (default: to standard output)")


def _add_explain(commands: Any) -> None:
    """Add the command that explains predictions."""
    command = commands.add_parser(
        "explain",
        help="explain a saved model's predictions for texts",
        description="Show exactly what each word of a text adds to the decision, as text in the "
        f"terminal or as an HTML page. {_TRUST}",
    )
    # 1) the model and the texts
    _add_model(command)
    texts = command.add_mutually_exclusive_group(required=True)
    texts.add_argument("data", help=f"texts {_FORMATS}", nargs="?", type=Path, metavar="DATA")
    texts.add_argument(
        "--say",
        help="explain this text instead of a file; may be repeated",
        action="append",
        metavar="TEXT",
    )
    _add_columns(command)
    # 2) the question
    command.add_argument(
        "--target",
        help="the class to explain (default: the predicted one, or the second of two), or to reach",
        metavar="CLASS",
    )
    command.add_argument(
        "--counterfactual",
        help="show the fewest words to delete from each text so that its prediction changes",
        action="store_true",
    )
    # 3) the output
    command.add_argument(
        "--limit",
        help="explain the first N texts of DATA (default: 10)",
        type=int,
        default=10,
        metavar="N",
    )
    _add_output(command, "OUT", "HTML file to write (default: text, to standard output)")


def _add_report(commands: Any) -> None:
    """Add the command that writes a report."""
    command = commands.add_parser(
        "report",
        help="write a page on a model's accuracy, tokens and mistakes",
        description="Fit this package's classifier and others on the same texts, and write one "
        "HTML page: test measures, calibration, confusions, the most important tokens, and the "
        "worst mistakes explained word by word.",
    )
    _add_labelled_data(command)
    page = Path("report.html")
    _add_output(command, "OUT", f"HTML file to write (default: {page})", default=page)


def _add_page(commands: Any) -> None:
    """Add the command that writes a page of a model."""
    command = commands.add_parser(
        "page",
        help="write a saved model as a page that classifies and explains in any browser",
        description="Write one HTML file that classifies texts and tables, and shows the reasons, "
        f"offline. {_TRUST}",
    )
    _add_model(command)
    command.add_argument("--title", help="title of the page", default="Text classifier")
    command.add_argument(
        "--examples",
        help=f"texts {_FORMATS}, of which the page offers the first five to try",
        type=Path,
        metavar="FILE",
    )
    _add_columns(command)
    page = Path("page.html")
    _add_output(command, "OUT", f"HTML file to write (default: {page})", default=page)


def _add_labelled_data(command: argparse.ArgumentParser) -> None:
    """Add the arguments that name training and test texts."""
    command.add_argument(
        "data",
        help=f"labelled texts {_FORMATS} (default: generated customer messages)",
        nargs="?",
        type=Path,
        metavar="DATA",
    )
    command.add_argument(
        "--test",
        help="labelled texts to measure on (default: a fifth of DATA, drawn at random)",
        type=Path,
        metavar="FILE",
    )
    _add_label(command)
    _add_columns(command)


def _add_model(command: argparse.ArgumentParser) -> None:
    """Add the argument that names a saved model."""
    command.add_argument(
        "model",
        help="a file saved by 'fit'; unless it is a *.skops file, you must trust it",
        type=Path,
        metavar="MODEL",
    )


def _add_label(command: argparse.ArgumentParser) -> None:
    """Add the option that names the column of labels."""
    command.add_argument(
        "--label", help="column of the labels (default: label)", default="label", metavar="COLUMN"
    )


def _add_columns(command: argparse.ArgumentParser) -> None:
    """Add the options that say how to read a file of texts."""
    command.add_argument(
        "--text", help="column of the texts (default: text)", default="text", metavar="COLUMN"
    )
    command.add_argument("--sep", help="sign between the columns (default: , or tab)")
    command.add_argument("--encoding", help="(default: utf-8)", default="utf-8")


def _add_output(command: argparse.ArgumentParser, name: str, help: str, **settings: Any) -> None:
    """Add the options of the file to write."""
    command.add_argument("-o", "--output", help=help, type=Path, metavar=name, **settings)
    command.add_argument("--force", help=f"overwrite {name} if it exists", action="store_true")
