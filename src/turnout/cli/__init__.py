"""The command line: one file a command, and one place where anything that goes wrong becomes a sentence.

Exit codes: 0 done; 1 the command found something wrong (a failed check, rows without a decision); 2 it could not be
done as asked (usage, configuration, query, file); 70 a bug; 130 interrupted; 141 whoever read the output went away.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Sequence

BUG, INTERRUPTED, PIPE_CLOSED = 70, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""

    def run() -> int:
        from .app import run_command

        return run_command(sys.argv[1:] if argv is None else argv)

    return guarded(run)


def guarded(action: Callable[[], int]) -> int:
    """The action's exit code; whatever it raises is said in a sentence on stderr, never in a traceback."""
    from turnout.config.champion import IdleModelWarning
    from turnout.core.errors import TurnoutError

    from .draw.screen import abandon_stdout, complain, make_printable

    make_printable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", IdleModelWarning)
            warnings.showwarning = lambda message, *_: complain(str(message))
            code = action()
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        return PIPE_CLOSED
    except SystemExit as ending:  # what Rich, which draws our screens and Cyclopts' help, makes of a closed pipe
        if not isinstance(ending.__context__, BrokenPipeError):
            raise
        abandon_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except TurnoutError as error:
        complain(str(error))
        return 2
    except OSError as error:
        if error.filename is None:  # no file of the user's: the output itself cannot be written
            abandon_stdout()
        said = "stdout is closed" if error.errno == errno.EBADF else error.strerror or error
        complain(f"{error.filename or 'output'}: {said}")
        return 2
    except Exception as error:  # a bug of ours must not look like a mistake of the user's
        if os.environ.get("TURNOUT_DEBUG"):
            raise
        complain(f"this is a bug in Turnout: {type(error).__name__}: {error} (TURNOUT_DEBUG=1 shows where)")
        return BUG
    return code


__all__ = ["guarded", "main"]
