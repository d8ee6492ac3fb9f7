"""How every process logs."""

import logging
import sys
from typing import TextIO

import structlog
from structlog.processors import format_exc_info
from structlog.typing import EventDict

from kvstore.printable import printable


def log_to_stderr(stderr: TextIO | None = None) -> None:
    """Log from INFO on, and to standard error: standard output belongs to the answer alone.

    `stderr` is the stream below, where another one stands for it that escapes what is written.
    """
    stderr = stderr or sys.stderr
    colors = stderr.isatty()
    plainly = structlog.dev.plain_traceback
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            format_exc_info,
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
            _escape,
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plainly),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=stderr),  # one write a line
    )
    # kazoo reports every failed attempt at length; ours are reported with the countdown.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)


def _escape(logger: object, method: str, event: EventDict) -> EventDict:
    """Escape what texts of ZooKeeper and of other processes may contain."""
    return {key: printable(one) if isinstance(one, str) else one for key, one in event.items()}
