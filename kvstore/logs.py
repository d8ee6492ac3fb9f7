"""How every process logs."""

from __future__ import annotations

import logging
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from kvstore.printable import printable

if TYPE_CHECKING:
    from structlog.typing import EventDict


class LazyLog:
    """Loads structlog with the first line: most commands log none, and it is a sixth of a start.

    Nothing is logged below a level of `logging`. Until `stderr` is set all else is logged as
    structlog does by default.
    """

    def __init__(self) -> None:
        self.stderr: TextIO | None = None
        self.level = logging.NOTSET

    def __getattr__(self, method: str) -> Any:
        level = logging.ERROR if method == "exception" else getattr(logging, method.upper())
        return getattr(self._logger, method) if level >= self.level else _nothing

    @cached_property
    def _logger(self) -> Any:
        # It would load rich for tracebacks, which nothing prints.
        usual = sys.modules.get("rich")
        sys.modules["rich"] = None  # type: ignore[assignment]
        import structlog  # noqa: PLC0415

        del sys.modules["rich"]
        if usual:
            sys.modules["rich"] = usual
        if self.stderr is not None:
            plainly = structlog.dev.plain_traceback
            colors = self.stderr.isatty()
            structlog.configure(
                processors=[
                    structlog.processors.add_log_level,
                    structlog.processors.format_exc_info,
                    structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
                    _escape,
                    structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plainly),
                ],
                wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
                logger_factory=structlog.WriteLoggerFactory(file=self.stderr),  # one write a line
            )
        return structlog.get_logger()


log = LazyLog()


def log_to_stderr(stderr: TextIO | None = None) -> None:
    """Log from INFO on, and to standard error: standard output belongs to the answer alone.

    `stderr` is the stream below, where another one stands for it that escapes what is written.
    """
    log.stderr = stderr or sys.stderr
    log.__dict__.pop("_logger", None)
    # kazoo reports every failed attempt at length; ours are reported with the countdown.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)


def _nothing(event: str, **facts: object) -> None:
    pass


def _escape(logger: object, method: str, event: EventDict) -> EventDict:
    """Escape what texts of ZooKeeper and of other processes may contain."""
    return {key: printable(one) if isinstance(one, str) else one for key, one in event.items()}
