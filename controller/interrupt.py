"""What Ctrl-C does to a command: one line and exit code 130, at any moment."""

import os
import signal
from typing import Any, NoReturn

ENDED = 128 + signal.SIGINT
_goes_on = ""


def message() -> str:
    """Write that it has ended, and what goes on without it."""
    return f"nstorm: ended by Ctrl-C{goes_on()}\n"


def goes_on() -> str:
    """Name what goes on without the command, as the end of a sentence; empty: nothing."""
    return _goes_on and f"; {_goes_on}"


def does_not_end(what: str) -> None:
    """Name what goes on after Ctrl-C from now on; empty: nothing."""
    global _goes_on  # noqa: PLW0603  # as the handler of a signal is
    _goes_on = what


def end_at_once(*_: Any) -> NoReturn:
    """End where nothing has begun yet, or all of it is cleaned up."""
    os.write(2, message().encode())
    os._exit(ENDED)


def while_loading() -> None:
    """Let Ctrl-C end the process at once: an import that it broke off would raise other errors."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody ignores it
        signal.signal(signal.SIGINT, end_at_once)


def while_working() -> None:
    """Let Ctrl-C raise, so that what the command has begun is cleaned up."""
    if signal.getsignal(signal.SIGINT) is end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def while_ending() -> None:
    """Ignore Ctrl-C: the answer is there, and is still to be written."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
