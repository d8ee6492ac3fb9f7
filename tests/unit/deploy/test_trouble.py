"""Bursts and days of a lab's input, and who burns CPU on its nodes."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from deploy.lab import LabError
from deploy.lab.cluster import plan_lab
from deploy.lab.ledger import Ledger
from deploy.lab.network import Network
from deploy.lab.trouble import Shape, Waves, burn, burning, feed


def test_a_burst_comes_at_the_end_of_its_time() -> None:
    waves = Waves(Shape.BURST, 100.0, 3.0, 180.0, 1200.0)

    assert [waves.at(at_s) for at_s in (0, 1019, 1020, 1199, 1200)] == [100, 100, 300, 300, 100]


def test_a_day_begins_with_its_night() -> None:
    waves = Waves(Shape.DAY, 100.0, 3.0, 0.0, 600.0)

    rates = [waves.at(at_s) for at_s in (0, 150, 300, 450, 600)]

    assert rates == pytest.approx([100, 200, 300, 200, 100])


def test_a_topology_has_the_rate_again_that_it_had(tmp_path: Path) -> None:
    ledger, asked = Ledger(tmp_path), []
    ledger.set_rate(7.0)

    def rate(at_s: float) -> float:
        asked.append(ledger.rate())
        return 50.0 + at_s

    feed(ledger, rate, 0.01)

    assert asked[0] == 7.0
    assert ledger.rate() == 7.0


def test_cpu_is_burnt_within_the_group_of_a_node() -> None:
    layout = plan_lab("trouble", nodes=1, slots=1).layout
    host = layout.nodes[0].host
    network = Network("ns-x", "10.77.9.0/24", 1, 0, (), 0.5, "/cgroup")
    inside = replace(
        layout,
        options=replace(layout.options, network=network),
        nodes=(replace(layout.nodes[0], host="10.77.9.2"),),
    )

    two = burning(inside, "10.77.9.2", 1.25, 5.0)

    assert [command[-2:] for command in two] == [["1.0", "5.0"], ["0.25", "5.0"]]
    assert all("/cgroup/ns-x-2/cgroup.procs" in command[2] for command in two)
    assert burning(layout, host, 0.5, 5.0)[0][0] == sys.executable
    with pytest.raises(LabError, match=f"no node has the address n9: there are {host}"):
        burning(layout, "n9", 0.5, 5.0)


def test_what_burns_ends_with_its_time() -> None:
    layout = plan_lab("trouble", nodes=1, slots=1).layout

    began_s = time.monotonic()

    burn(burning(layout, layout.nodes[0].host, 0.5, 0.05))

    assert time.monotonic() - began_s >= 0.05


def test_what_does_not_burn_is_no_success() -> None:
    with pytest.raises(LabError, match="what burns CPU has failed, exit code 1"):
        burn([[sys.executable, "-c", "exit(1)"], [sys.executable, "-c", ""]])


def test_what_burns_ends_where_the_next_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Mock()
    monkeypatch.setattr(
        "deploy.lab.trouble.subprocess.Popen", Mock(side_effect=[first, FileNotFoundError])
    )

    with pytest.raises(FileNotFoundError):
        burn([["one"], ["two"]])

    first.kill.assert_called_once()


def test_a_topology_that_is_not_there_is_not_fed(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no topology 'wrod'"):
        feed(Ledger(tmp_path / "wrod"), lambda _: 500.0, 0.01)

    assert list(tmp_path.iterdir()) == []


def test_what_burns_ends_with_whoever_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    running = []

    class Interrupted:
        def __init__(self, command: list[str]) -> None:
            self.command, self.is_killed = command, False
            running.append(self)

        def wait(self) -> None:
            if not self.is_killed:
                raise KeyboardInterrupt

        def kill(self) -> None:
            self.is_killed = True

    monkeypatch.setattr("deploy.lab.trouble.subprocess.Popen", Interrupted)

    with pytest.raises(KeyboardInterrupt):
        burn([["one"], ["two"]])

    assert [one.is_killed for one in running] == [True, True]
