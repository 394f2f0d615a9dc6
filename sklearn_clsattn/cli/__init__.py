"""The command line: ``sklearn-clsattn compare``, ``fit``, ``predict``, ``explain``, ``report``."""

# Libraries that are slow to load are imported when a command runs, so that --help is fast.
import contextlib
import os
import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from sklearn_clsattn.cli.arguments import PROGRAM, STDIN, UsageError, parser
from sklearn_clsattn.cli.saying import say

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
        with _streams() as closed, _terminated_cleanly(), _one_line_warnings():
            code = _run(argv, stdout_closed=closed)
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            _complain("interrupted")
        return INTERRUPTED
    except _Terminated as signal_number:
        return 128 + signal_number.args[0]
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except (UsageError, ValueError, OSError, ImportError) as error:
        with contextlib.suppress(OSError):
            _complain(_one_line(error))
        try:
            sys.stdout.flush()
        except (OSError, AttributeError):  # closed, or none at all
            _discard_stdout()
        return BAD_INPUT


def _complain(message: str) -> None:
    """Print a line on stderr."""
    if sys.stderr is not None:
        say(f"{PROGRAM}: {message}", sys.stderr)


class _Terminated(BaseException):
    """The process is asked to end: files that are being written are removed first."""


@contextlib.contextmanager
def _terminated_cleanly() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, in the main thread, where signals arrive."""

    def end(number: int, _: Any) -> None:
        raise _Terminated(number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        names = []
    before = {name: signal.signal(getattr(signal, name), end) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@contextlib.contextmanager
def _streams() -> Iterator[bool]:
    """Put a file that discards all for streams that are closed; yield whether stdout is."""
    closed = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    with contextlib.ExitStack() as stack:
        for name in closed:
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.callback(setattr, sys, name, None)
            setattr(sys, name, nowhere)
        yield "stdout" in closed


def _run(argv: Sequence[str] | None, *, stdout_closed: bool) -> int:
    arguments = parser().parse_args(argv)
    if stdout_closed and not getattr(arguments, "output", True):
        raise ValueError("standard output is closed; name a file to write with -o")
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        # Tokens of any language must be printable in any terminal's encoding.
        sys.stdout.reconfigure(errors="backslashreplace")
    for name in ("data", "test"):  # before what takes long
        given = getattr(arguments, name, None)
        if given is None:
            break
        for path in given if isinstance(given, list) else [given]:
            if str(path) != STDIN and not path.expanduser().exists():
                raise UsageError(f"there is no file {path}; expected a file of texts")
    command = arguments.command
    home = import_module(f"sklearn_clsattn.cli.{_HOME.get(command, 'commands')}")
    getattr(home, f"run_{command}")(arguments)
    return 0


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print warnings as errors are printed, without the line of code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _complain(f"warning: {_one_line(message)}")

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
    message = re.sub(
        r"\b(encoding|sep)='([^']+)'", lambda it: f"--{it[1]} {shlex.quote(it[2])}", message
    )
    message = re.sub(r"\b(text|label|sep)=(?![\w'\"])", r"--\1", message)
    return re.sub(r"\bmin_df\b", "--min-df", message)


def _discard_stdout() -> None:
    """Discard buffered output, so that the interpreter exits without an error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
