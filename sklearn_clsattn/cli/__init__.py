"""The command line: ``sklearn-clsattn compare``, ``fit``, ``predict``, ``explain``, ``report``."""

# Libraries that are slow to load are imported when a command runs, so that --help is fast.
import contextlib
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn_clsattn.cli.arguments import PROGRAM, STDIN, parser, say


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Return 0 on success, 2 if arguments or files are invalid, 130 if interrupted, and 141 if the
    reader of the output closed it. Raise SystemExit after ``--help`` and ``--version``.
    """
    try:
        with warnings.catch_warnings():
            # In one line, as errors; called only for those that are shown.
            warnings.showwarning = lambda message, *_, **__: _complain(f"warning: {_line(message)}")
            _run(sys.argv[1:] if argv is None else list(argv))
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        _complain("interrupted")
        return 128 + 2  # SIGINT, as shells report programs that a signal has ended
    except BrokenPipeError:
        # What is left in the buffer goes nowhere, so that the interpreter exits without an error.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        return 128 + 13  # SIGPIPE
    except (ValueError, OSError, ImportError) as error:
        _complain(_line(error))
        return 2


def _run(argv: list[str]) -> None:
    """Run the command that arguments name."""
    # 1) signals and standard output
    with contextlib.suppress(ValueError):  # signals can only be handled in the main thread
        # Files that are being written are removed on the way out.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if hasattr(sys.stdout, "reconfigure"):
        # Tokens of any language must be printable in any terminal's encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    # 2) the arguments
    arguments = parser().parse_args(argv)
    for name in ("data", "test", "unlabeled"):  # before what takes long
        path = getattr(arguments, name, None)
        if path is not None and str(path) != STDIN and not path.expanduser().exists():
            raise ValueError(f"there is no file {path}; expected a file of texts")
    # 3) the command
    from sklearn_clsattn.cli import commands

    arguments.argv = argv
    getattr(commands, f"run_{arguments.command}")(arguments)


def _complain(message: str) -> None:
    """Print a line on stderr, if it is there."""
    with contextlib.suppress(OSError):
        say(f"{PROGRAM}: {message}", sys.stderr)


def _line(error: Any) -> str:
    """Return an error's message in one line, with parameters named as options."""
    # 1) the message, of the system's errors without their numbers
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: " if error.filename is not None else ""
        message += error.strerror
    # 2) parameters as options: encoding='latin-1' is --encoding latin-1, and label= is --label
    message = re.sub(
        r"\b(encoding|sep)='([^']+)'", lambda it: f"--{it[1]} {shlex.quote(it[2])}", message
    )
    message = re.sub(r"\b(text|label|sep)=(?![\w'\"])", r"--\1", message)
    return re.sub(r"\bmin_df\b", "--min-df", message)
