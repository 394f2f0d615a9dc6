"""The command line: ``sklearn-clsattn`` with its six commands."""

import os
import sys
import warnings
from collections.abc import Sequence

from .arguments import PROGRAM, parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Return 0 on success, 2 if arguments or files are invalid, 130 if interrupted, and 141 if the
    reader of the output closed it. Raise SystemExit after ``--help`` and ``--version``.
    """
    try:
        arguments = parser().parse_args(argv)
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
    print(visible(f"{PROGRAM}: {line}"), file=sys.stderr)
