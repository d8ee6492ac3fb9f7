"""The networks that are measured: swept after a kill, ended in any case, refused in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.lab import LabError, cluster
from deploy.lab.network import Network
from tests.bench import network

NAMES = [f"bench-{kind}-{os.getpid()}" for kind in ("bridge", "bridge-and-tbf")]


def planned(run_dir: Path, *_: object) -> tuple[Network | None, list[str]]:
    return Network(run_dir.name, "10.77.9.0/24", 2, 0, None, None, None), []


def test_a_network_has_an_owner_before_it_is_made_and_none_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def create(self: Network) -> None:
        assert (tmp_path / self.token / "owner").exists()
        made.append(self.token)

    monkeypatch.setattr(network, "RUNS_DIR", tmp_path)
    monkeypatch.setattr(cluster, "RUNS_DIR", tmp_path)
    monkeypatch.setattr(network, "plan_network", planned)
    monkeypatch.setattr(Network, "create", create)
    monkeypatch.setattr(network, "transfer", lambda *_: (2.0, 1.0))
    same = {"time_ratio": 1.0, "cpu_ratio": 1.0}
    assert network.run_network() == {"bridge": same, "bridge-and-tbf": same}
    assert made == NAMES
    assert not [*tmp_path.glob("bench-*")]
    monkeypatch.setattr(network, "plan_network", lambda *_: (None, ["not root: all share"]))
    with pytest.raises(LabError, match="not root: all share"):
        network.run_network()
    assert not [*tmp_path.glob("bench-*")]


def test_a_receiver_ends_though_nobody_comes() -> None:
    quick = network._RECEIVER.replace("settimeout(60)", "settimeout(0.1)")
    command = [sys.executable, "-c", quick, "127.0.0.9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert "TimeoutError" in done.stderr
