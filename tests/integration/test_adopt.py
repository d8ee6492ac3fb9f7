"""Workers that have started without hooks get them, one after the other, while tuples flow."""

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import yaml

from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep
from deploy.lab.ledger import WRITE_DELAY_S, throughput_tps
from tests.clusters import CALM

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NAME = "adopt-test"
RATE_TPS = 200
WORKERS = 3
OPTIONS = "-Xmx192m -XX:+UseSerialGC"
CONF = {**CALM, "worker.childopts": OPTIONS, "topology.message.timeout.secs": 20}


@pytest.fixture(scope="module")
def stock() -> Iterator[Lab]:
    """A cluster in which the daemons have the hooks, and the workers of a fed topology do not."""
    sweep()
    with plan_lab(f"adopt-{os.getpid()}", hooks_jar=HOOKS_JAR, conf=CONF) as lab:
        lab.submit(NAME, {"topology.workers": WORKERS}, rate_tps=RATE_TPS)
        lab.wait_ready(NAME)
        for node in lab.nodes:
            file = node.conf_dir / "storm.yaml"
            document = yaml.safe_load(file.read_text())
            document["worker.childopts"] = f"{OPTIONS} -javaagent:{HOOKS_JAR}"
            file.write_text(yaml.safe_dump(document))
            lab.kill_daemon(node.host)
            lab.start_daemon(node.host)
        yield lab


class Watch:
    """Looks all the time at which workers run."""

    def __init__(self, lab: Lab) -> None:
        self.least = WORKERS
        self.pids: dict[str, list[int]] = {}
        self._lab, self._stop = lab, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            now = self._lab.worker_pids()
            self.least = min(self.least, len(now))
            for slot, pid in now.items():
                found = self.pids.setdefault(slot, [])
                if pid not in found:
                    found.append(pid)


def adopt(lab: Lab, *more: str) -> tuple[int, str]:
    """Give the exit code and what was printed; it stays in a log if the test is ended."""
    conf = str(lab.layout.storm_yaml)
    command = [sys.executable, "-m", "controller.cli", "adopt", NAME, "--conf", conf]
    limits = ["--within", "5m"]
    log = lab.layout.run_dir / "adopt.log"
    with log.open("w") as file:
        done = subprocess.run([*command, *limits, *more], stdout=file, check=False, timeout=900)
    return done.returncode, log.read_text()


def planned(lab: Lab) -> int:
    return adopt(lab, "--run", "true", "--dry-run")[1].count("\n- ")


def test_each_worker_is_restarted_once_and_never_two_at_a_time(stock: Lab) -> None:
    stock.start_agents()
    stock.start_controller("observe")
    stock.wait_until("no worker may be starting", lambda: planned(stock) == WORKERS)
    before, failed = stock.worker_pids(), stock.ledger(NAME).totals().failed
    # Storm's directory is in a worker's command line, for other labs may have the same ports.
    pattern = f"[=]{stock.layout.run_dir}/.*worker.port=$NSTORM_PORT "
    client = shlex.join(stock.layout.client_command())
    rest = f"""printf '["%s","%s"]' "$NSTORM_DO" "$NSTORM_TOPOLOGY" | {client}"""
    with Watch(stock) as watch:
        code, said = adopt(stock, "--run", f'pkill -f -- "{pattern}"', "--rest", rest)
    stock.stop_controller()
    assert code == 0, said
    assert sorted(watch.pids) == sorted(before)
    assert [len(pids) for pids in watch.pids.values()] == [2] * WORKERS, said
    assert watch.least == WORKERS - 1
    assert "every worker has the hooks" in adopt(stock, "--run", "true")[1]
    ledger, ended_s = stock.ledger(NAME), time.time() - 2 * WRITE_DELAY_S
    acked_tps = throughput_tps(ledger.windows(ended_s - 10, ended_s))
    assert acked_tps > RATE_TPS / 2, said
    assert ledger.totals().failed == failed, said
