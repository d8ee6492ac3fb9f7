"""Asks the PromQL queries of guards over HTTP, in a thread that holds no cycle up."""

import json
import math
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable

from controller.core.guards import Answers, Guard, GuardAnswer

EVERY_S = 5.0
LIMIT_S = 5.0
# An older answer is none of now.
OLD_S = 30.0
_MOST_BYTES = 1 << 20


class Queries:
    """Keeps the newest answer to each query."""

    def __init__(self, guards: Iterable[Guard]) -> None:
        asked = ((guard.url, guard.query) for guard in guards)
        self._asked = sorted({(url, query) for url, query in asked if url and query})
        self._answers: dict[tuple[str, str], tuple[float, GuardAnswer]] = {}
        self._stop = threading.Event()
        if self._asked:
            threading.Thread(target=self._run, name="guards", daemon=True).start()

    def answers(self) -> Answers:
        """Give the newest answers; what is old or was never answered has the reason."""
        return tuple((url, query, self._newest(url, query)) for url, query in self._asked)

    def close(self) -> None:
        """End the thread; a query under way ends within its time."""
        self._stop.set()

    def _newest(self, url: str, query: str) -> GuardAnswer:
        at_s, answer = self._answers.get((url, query), (-math.inf, GuardAnswer()))
        if time.monotonic() - at_s > OLD_S:
            return GuardAnswer(problem=f"{url} has not answered within {OLD_S:.0f} s")
        return answer

    def _run(self) -> None:
        while not self._stop.is_set():
            for url, query in self._asked:
                answer = asked(url, query)
                self._answers[url, query] = time.monotonic(), answer
            self._stop.wait(EVERY_S)


def asked(url: str, query: str) -> GuardAnswer:
    """Ask a server for the value of a query now; what is no one number is a problem."""
    full = f"{url.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(full, timeout=LIMIT_S) as answer:
            text = answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            return GuardAnswer(
                problem=f"{url} answers {error.code}: {_why(error.read(_MOST_BYTES))}"
            )
    except (OSError, ValueError, urllib.error.URLError) as error:
        return GuardAnswer(problem=f"{url}: {getattr(error, 'reason', error)}")
    except Exception as error:  # a server may answer anything, and the thread must go on
        return GuardAnswer(problem=f"{url}: {error!r}")
    return number_of(text)


def number_of(text: bytes) -> GuardAnswer:
    """Read the number in the JSON of an answer."""
    try:
        data = json.loads(text)["data"]
        kind, result = data["resultType"], data["result"]
        if kind == "scalar":
            value = float(result[1])
        elif kind == "vector" and len(result) == 1:
            value = float(result[0]["value"][1])
        else:
            count = len(result) if kind == "vector" else f"a {kind}"
            return GuardAnswer(problem=f"the answer has {count} series, and must have one")
    except (ValueError, LookupError, TypeError, RecursionError):
        return GuardAnswer(problem="the answer is none of PromQL")
    if not math.isfinite(value):
        return GuardAnswer(problem=f"the answer is {value}, which is no number")
    return GuardAnswer(value)


def _why(text: bytes) -> str:
    """Name the error in the JSON of a refusal, else nothing."""
    try:
        return str(json.loads(text)["error"])[:200]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "without a reason"
