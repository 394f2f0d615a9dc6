"""The command line: ``sklearn-clsattn compare``, ``fit``, ``predict``, ``explain``, ``report``."""

# Libraries that are slow to load are imported when a command runs, so that --help is fast.
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from sklearn_clsattn.cli.arguments import PROGRAM, UsageError, parser

BAD_INPUT = 2
# Exit codes of a shell for programs ended by these signals.
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13

# Modules of the commands.
_HOME = {"explain": "explaining", "report": "reporting"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Returns 0 on success, 2 if arguments or files are not valid, 130 if interrupted, and 141 if the
    output's reader has closed it; raises SystemExit after ``--help`` and ``--version``.
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
    except (UsageError, ValueError, OSError, ImportError) as error:
        with contextlib.suppress(OSError):
            print(f"{PROGRAM}: {_one_line(error)}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            _discard_stdout()
        return BAD_INPUT


def _run(argv: Sequence[str] | None) -> int:
    arguments = parser().parse_args(argv)
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        # Tokens of any language must be printable in any terminal's encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    command = arguments.command
    home = import_module(f"sklearn_clsattn.cli.{_HOME.get(command, 'commands')}")
    getattr(home, f"run_{command}")(arguments)
    return 0


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print warnings as errors are printed, without the line of code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"{PROGRAM}: warning: {_one_line(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        # Called only for warnings that are shown: filters and recording still work.
        warnings.showwarning = show
        yield


def _one_line(error: BaseException | str) -> str:
    """Return an error's message in one line, with parameters named as options."""
    if isinstance(error, OSError) and error.strerror:
        message = (
            error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
        )
    else:
        message = " ".join(str(error).split()) or type(error).__name__
    # Parameters of the loader are options here.
    message = message.replace(", or pass label=False to read texts alone", "")
    message = re.sub(r"\bencoding='([\w-]+)'", r"--encoding \1", message)
    message = re.sub(r"\b(text|label|sep)=(?![\w'\"])", r"--\1", message)
    return re.sub(r"\bmin_df\b", "--min-df", message)


def _discard_stdout() -> None:
    """Discard buffered output, so that the interpreter exits without an error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
