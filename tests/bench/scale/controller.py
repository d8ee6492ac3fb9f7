"""Runs the real controller and reports what each of its cycles has cost.

``python -m tests.bench.scale.controller``, started by `run`.
"""

import json
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from controller.config import Config, JournalBounds, Mode
from controller.cycle import cycle
from controller.report import TopologyReport
from controller.storm import live
from controller.storm.live import LiveController
from kvstore.logs import log_to_stderr
from kvstore.service import ended_by_signals
from kvstore.zookeeper import Session

_MIB = 1024 * 1024
# What a cycle consists of, and what goes on between two of them.
_PARTS = {"_drive": "steps", "_log": "log"}


class Meter:
    """Adds up the CPU time of all threads while the main thread does this or that."""

    def __init__(self) -> None:
        self.cpu_s: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()

    def metered(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Measure each call of a function."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            began_s = time.process_time()
            try:
                return work(*args, **kwargs)
            finally:
                self.cpu_s[name] += time.process_time() - began_s
                self.calls[name] += 1

        return measured


def run(hosts: str, journal: Path | None) -> None:
    """Lead until a signal ends it, and print a line of JSON after each cycle.

    Parameters
    ----------
    hosts : str
        Address of ZooKeeper with Storm's root.
    """
    log_to_stderr()
    meter, process = Meter(), psutil.Process()

    def tell(reports: tuple[TopologyReport, ...]) -> None:
        told = {
            "at_s": time.monotonic(),
            "cpu_s": time.process_time(),
            "rss_mb": process.memory_info().rss / _MIB,
            "parts_s": dict(meter.cpu_s),
            "steps": meter.calls["steps"],
            "outcomes": Counter(report.outcome.value for report in reports),
            "reason": reports[0].reason[:200],
        }
        print(json.dumps(told), flush=True)

    config = Config(mode=Mode.ADVISE, journal=JournalBounds(journal))
    with Session(hosts) as session, ended_by_signals() as stop:
        if not session.connect(stop=stop):
            return
        controller = LiveController(session, config, name="scale")
        for method, name in _PARTS.items():
            setattr(controller, method, meter.metered(name, getattr(controller, method)))
        publisher: Any = controller._publisher
        publish = meter.metered("status", publisher.publish)

        def publish_and_tell(reports: tuple[TopologyReport, ...], *of: Any, **more: Any) -> None:
            publish(reports, *of, **more)
            tell(reports)

        publisher.publish = publish_and_tell
        look: Any = controller._look
        look.seen = meter.metered("look", look.seen)
        recorder: Any = controller._recorder
        recorder.record = meter.metered("journal", recorder.record)
        setattr(live, "cycle", meter.metered("decide", cycle))  # noqa: B010
        controller.run(stop)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        run(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(5.0)
