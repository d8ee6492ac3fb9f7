"""The controller on a real Storm cluster: it moves executors and no tuple notices."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from controller.storm.leader_status import read
from controller.storm.move_record import MoveRecord
from deploy.lab import LabError
from deploy.lab.cluster import Lab
from kvstore.zookeeper import Session
from tests.controllers import Running
from tests.scraping import (
    dashboard_queries,
    free_port,
    metrics_asked_for,
    need_prometheus,
    scraping,
)

pytestmark = pytest.mark.cluster

NAME = "auto-test"


@pytest.fixture(scope="module")
def wordcount(lab: Lab) -> Iterator[str]:
    if lab.layout.hooks_jar is None:
        pytest.skip("the jar with the hooks is not built: make setup")
    for node in lab.nodes:
        if lab.daemon(f"agent-{node.host}") is None:
            lab.start_agent(node)
    lab.submit(NAME, rate_tps=300)
    lab.wait_ready(NAME, limit_s=300)
    yield NAME
    lab.kill_topology(NAME)


@pytest.fixture
def session(lab: Lab) -> Iterator[Session]:
    with Session(lab.storm_zookeeper) as session:
        assert session.connect()
        yield session


@pytest.fixture
def controllers(lab: Lab) -> Iterator[Running]:
    running = Running(lab)
    yield running
    running.close()


def test_every_query_of_dashboard_and_alerts_finds_what_a_running_cluster_serves(
    lab: Lab, wordcount: str, controllers: Running, tmp_path: Path
) -> None:
    need_prometheus()
    ports = {"nstorm-controller": free_port(), "nstorm-agent": free_port()}
    conf, node = tmp_path / "storm.yaml", lab.nodes[0]
    served = f"nstorm.metrics.port: {ports['nstorm-controller']}\n"
    conf.write_text(f"{controllers.conf.read_text()}{served}nstorm.link.capacity.mbit: 1000\n")
    with (node.conf_dir / "storm.yaml").open("a") as file:
        file.write(f"nstorm.agent.metrics.port: {ports['nstorm-agent']}\n")
    lab.kill_daemon(f"agent-{node.host}")
    lab.start_agent(node)
    controller = controllers.start("auto", conf)
    missing = {*dashboard_queries(), *metrics_asked_for()}
    with scraping(tmp_path, ports) as prometheus:

        def found_all() -> bool:
            missing.difference_update([query for query in missing if prometheus.query(query)])
            return not missing

        with suppress(LabError):  # the assertion shows more
            lab.wait_until("an answer to each query", found_all, limit_s=300)
        assert missing == set()
        (group,) = prometheus.get("rules")["groups"]
        assert {(rule["health"], rule.get("lastError", "")) for rule in group["rules"]} == {
            ("ok", "")
        }
        assert not [a for a in prometheus.get("alerts")["alerts"] if a["state"] == "firing"]
    controller.terminate()
    controller.wait(60)


def shown_by(controllers: Running) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ask for the status; gives it, and the part about the topology of these tests."""
    status = json.loads(controllers.ask("status", "-o", "json").stdout)
    (topology,) = [t for t in status["topologies"] if t["name"] == NAME]
    return status, topology


def test_it_moves_by_itself_and_nothing_is_lost(
    lab: Lab, wordcount: str, session: Session, controllers: Running
) -> None:
    pids = lab.worker_pids()

    def ended() -> list[MoveRecord]:
        return [move for move in read(session).ended_moves if move.topology.startswith(NAME)]

    first = controllers.start("auto")
    lab.wait_until("three moves have ended", lambda: len(ended()) >= 3, limit_s=420)
    assert {move.outcome for move in ended()} == {"MOVED"}
    status, topology = shown_by(controllers)
    assert all(worker["hooks"] for worker in topology["workers"])

    def all_may_move() -> bool:
        """Look at spouts and ackers; what one that has just moved keeps is read in its new JVM."""
        _, topology = shown_by(controllers)
        stays = {row["component"]: row["pinned"] for row in topology["executors"] if row["pinned"]}
        return not stays.keys() & {"spout", "__acker"}

    lab.wait_until("spouts and ackers may move", all_may_move, limit_s=60)

    # A leader that dies in the middle of its work is followed by another.
    epoch = status["epoch"]
    first.kill()
    first.wait()
    controllers.start("advise")
    lab.wait_until(
        "the next leader",
        lambda: read(session).epoch == epoch + 1,
        limit_s=240,
    )
    # It knows who moved what under the one before, and answers from its own pictures.
    history = json.loads(controllers.ask("history", NAME, "-o", "json").stdout)
    assert {move["asked_by"] for move in history} == {"policy gather"}
    # A spout comes through QUIET, a bolt through SWITCH and DRAIN.
    assert set(history[0]["phase_s"]) >= {"PREPARE", "STOP", "SETTLE"}
    lab.wait_until(
        "the way from here", lambda: controllers.ask("plan", NAME).returncode == 0, limit_s=120
    )
    moved = history[0]["executor"]
    (why,) = json.loads(controllers.ask("explain", moved, "-o", "json").stdout)
    assert (why["mode"], why["executors"][0]["executor"]) == ("advise", moved)
    refused = controllers.ask("move", NAME, "99-99", topology["workers"][0]["slot"])
    assert refused.returncode == 2
    assert "has no executor 99-99" in refused.stderr

    # A worker that everything has left may have ended; none was restarted.
    assert lab.worker_pids().items() <= pids.items()
    totals = lab.ledger(wordcount).drain(limit_s=120)
    assert totals.emitted == totals.acked > 1000
    assert (totals.failed, totals.double_acked) == (0, 0)
    assert totals.words_counted == totals.words_emitted
