"""Runs a command line, and turns errors into one line and an exit code."""

import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from controller import interrupt
from controller.errors import ControllerError
from controller.output import SectionedGroup
from kvstore.errors import StoreError
from kvstore.logs import log_to_stderr
from kvstore.printable import PrintableStream
from migration import ConfigError

MOST_ECHOED = 80  # characters
_ENDS = (signal.SIGHUP, signal.SIGTERM)  # a terminal that is gone, and `kill`
Conf = Annotated[
    Path,
    typer.Option(
        "--conf", envvar="NSTORM_CONF", help="The storm.yaml of this node, with its nstorm.* keys."
    ),
]


def new_app(
    group: type[SectionedGroup] = SectionedGroup, *, completes: bool = False
) -> typer.Typer:
    return typer.Typer(
        cls=group,
        no_args_is_help=True,
        add_completion=completes,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


class _CutStream(PrintableStream):
    """Cuts what was typed where it is repeated: a refusal shall not fill the terminal."""

    def write(self, text: str) -> int:
        shown = text
        for word in sys.argv:
            if len(word) > MOST_ECHOED:
                shown = shown.replace(word, f"{word[:MOST_ECHOED]}…")
        super().write(shown)
        return len(text)


def _end(number: int, _: Any) -> NoReturn:
    """End once: the next signal, such as the shell's own, shall not break off what cleans up."""
    for one in _ENDS:
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)


def run(app: typer.Typer, name: str) -> None:
    """Run a command line; errors a user can mend end in one line and exit code 2."""
    usual_streams = sys.stdout, sys.stderr
    if isinstance(sys.stdout, TextIOWrapper):
        # A letter that a locale lacks is a question mark, and JSON stays JSON.
        sys.stdout.reconfigure(errors="replace")
    sys.stdout, sys.stderr = PrintableStream(sys.stdout), _CutStream(sys.stderr)
    # So that what was begun is cleaned up; daemons and the lab put handlers of their own instead.
    # What is ignored, as by nohup, stays so.
    heard = [one for one in _ENDS if signal.getsignal(one) is not signal.SIG_IGN]
    usual = {one: signal.signal(one, _end) for one in heard}
    interrupt.does_not_end("")
    log_to_stderr(usual_streams[1])
    try:
        app(prog_name=name)
    except (ConfigError, ControllerError) as error:
        print(f"nstorm: {error}", file=sys.stderr)
        sys.exit(2)
    except StoreError as error:  # at any moment, so something may have begun
        print(f"nstorm: {error}{interrupt.goes_on()}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise
        # What was named cannot be looked at: its name is too long, or a folder of it is closed.
        print(f"nstorm: {error.filename}: {error.strerror}{interrupt.goes_on()}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as ended:
        if ended.code == interrupt.ENDED:
            sys.stderr.write(interrupt.message())
        raise
    finally:
        for one, handler in usual.items():
            signal.signal(one, handler)
        sys.stdout, sys.stderr = usual_streams
