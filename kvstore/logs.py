"""How every process logs."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, Any, TextIO

from kvstore.printable import printable

if TYPE_CHECKING:
    from structlog.typing import EventDict


class LazyLog:
    """Loads structlog with the first line: most commands log none, and it is a sixth of a start.

    Nothing is logged below a level of `logging`. All else is logged as structlog does by default,
    until it is to go to a stream.
    """

    def __init__(self) -> None:
        self.level = logging.NOTSET
        self._stderr: TextIO | None = None
        self._loading = threading.RLock()
        self._loaded: Any = None

    def __getattr__(self, method: str) -> Any:
        level = logging.ERROR if method == "exception" else getattr(logging, method.upper())
        return getattr(self._logger(), method) if level >= self.level else _nothing

    def _logger(self) -> Any:
        with self._loading:  # two threads may log first at the same time
            if self._loaded is None:
                self._loaded = _load(self._stderr)
            return self._loaded

    def to(self, stderr: TextIO | None) -> None:
        """Write what follows to a stream."""
        with self._loading:
            self._stderr, self._loaded = stderr, None


def _load(stderr: TextIO | None) -> Any:
    # It would load rich for tracebacks, which nothing prints. Another thread may want it just then.
    hides = "rich" not in sys.modules and threading.active_count() == 1
    if hides:
        sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: PLC0415
    finally:
        if hides:
            del sys.modules["rich"]
    if stderr is not None:
        plainly = structlog.dev.plain_traceback
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.format_exc_info,
                structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
                _escape,
                structlog.dev.ConsoleRenderer(colors=stderr.isatty(), exception_formatter=plainly),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            logger_factory=structlog.WriteLoggerFactory(file=stderr),  # one write a line
        )
    return structlog.get_logger()


log = LazyLog()


def log_to_stderr(stderr: TextIO | None = None) -> None:
    """Log from INFO on, and to standard error: standard output belongs to the answer alone.

    `stderr` is the stream below, where another one stands for it that escapes what is written.
    """
    log.to(stderr or sys.stderr)
    # kazoo reports every failed attempt at length; ours are reported with the countdown.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)


def _nothing(event: str, **facts: object) -> None:
    pass


def _escape(logger: object, method: str, event: EventDict) -> EventDict:
    """Escape what texts of ZooKeeper and of other processes may contain."""
    return {key: printable(one) if isinstance(one, str) else one for key, one in event.items()}
