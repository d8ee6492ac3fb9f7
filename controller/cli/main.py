"""Puts the commands together, and turns errors into one line and an exit code."""

import logging
import sys

import structlog
import typer

from controller.cli.decide import decide
from controller.errors import ControllerError

app = typer.Typer(
    name="nstorm",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(decide)


@app.callback()
def _root() -> None:
    """Adapts a running Apache Storm cluster: moves single executors between live workers."""


def main() -> None:
    """Run the command line; errors a user can mend end in one line and exit code 2."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # Standard output belongs to the answer alone.
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    try:
        app()
    except ControllerError as error:
        print(f"nstorm: {error}", file=sys.stderr)
        sys.exit(2)
