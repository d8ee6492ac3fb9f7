"""Reports errors that nobody expected: a loop meets the same one in each of its turns."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable

from kvstore.logs import log

_AGAIN_S = 60.0
_MOST_KINDS = 100


class Surprises:
    """Logs an error with its traceback when it is new, and then once a minute in one line.

    One that was raised by another line of code is another one.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        # How often each was met since it was last reported, and when that was.
        self._met: dict[tuple[type[BaseException], str, int | None], tuple[int, float]] = {}

    def report(self, event: str, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        where = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
        key, now_s = (type(error), *where), self._now_s()
        count, said_s = self._met.get(key, (0, -1.0))
        if key not in self._met:
            if len(self._met) >= _MOST_KINDS:
                self._met.clear()
            log.error(event, exc_info=error)
        elif now_s - said_s < _AGAIN_S:
            self._met[key] = count + 1, said_s
            return
        else:
            log.error(event, reason=repr(error), times=count + 1)
        self._met[key] = 0, now_s
