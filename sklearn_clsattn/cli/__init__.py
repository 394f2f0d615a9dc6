"""The command line: ``sklearn-clsattn compare``, ``fit`` and ``predict``."""

# Libraries that are slow to load are imported where a command runs: --help must not wait for them.
import argparse
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sklearn_clsattn import __version__

PROGRAM = "sklearn-clsattn"
BAD_INPUT = 2
# What a shell reports of a program that these signals ended.
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13

_FORMATS = "CSV, TSV, JSON lines or Parquet, compressed or not"
_TRUST = (
    "A model file is a pickle: loading one runs whatever code is in it. "
    "Load only files that you trust."
)


class _UsageError(Exception):
    """The arguments cannot be understood."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all our errors are."""

    def error(self, message: str) -> NoReturn:
        """Hand the message to :func:`main`."""
        raise _UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None for those of the process.

    Returns
    -------
    code : int
        0 if all went well, 2 if arguments or files are not as they must be, 130 if interrupted,
        141 if nobody reads the output any more.

    Raises
    ------
    SystemExit
        With code 0, after ``--help`` and ``--version``.

    Examples
    --------
    >>> from sklearn_clsattn.cli import main
    >>> main(["fit", "no_such_file.csv", "-o", "model.joblib"])
    2
    """
    try:
        with _one_line_warnings():
            code = _run(argv)
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except (_UsageError, ValueError, OSError, ImportError) as error:
        with contextlib.suppress(OSError):
            print(f"{PROGRAM}: {_one_line(error)}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            _discard_stdout()
        return BAD_INPUT


def _run(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        # Tokens of any language must be printable where the terminal's encoding is small.
        sys.stdout.reconfigure(errors="backslashreplace")
    from sklearn_clsattn.cli import commands

    handlers = {
        "compare": commands.run_compare,
        "fit": commands.run_fit,
        "predict": commands.run_predict,
    }
    handlers[arguments.command](arguments)
    return 0


def _parser() -> _Parser:
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
    parser.add_argument(
        "--test",
        type=Path,
        metavar="FILE",
        help="texts to measure on, in the same columns; without, 20 %% of DATA is held out",
    )
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


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print warnings as errors are printed, without the line of code that gave them."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"{PROGRAM}: warning: {_one_line(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        # Patched only where warnings are shown at all, so that recording them still works.
        warnings.showwarning = show
        yield


def _one_line(error: BaseException | str) -> str:
    """Return an error's message in one line, in the words of the command line."""
    if isinstance(error, OSError) and error.strerror:
        message = (
            error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
        )
    else:
        message = " ".join(str(error).split()) or type(error).__name__
    # The loader speaks of its parameters, which are options here.
    message = message.replace(", or pass label=False to read texts alone", "")
    message = re.sub(r"\bencoding='([\w-]+)'", r"--encoding \1", message)
    message = re.sub(r"\b(text|label|sep)=(?![\w'\"])", r"--\1", message)
    return re.sub(r"\bmin_df\b", "--min-df", message)


def _discard_stdout() -> None:
    """Let what is still buffered go nowhere, so that the interpreter's end is quiet too."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
