"""The services as systemd would run them."""

import configparser
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kvstore.pulse import HANGS_AFTER_S

ROOT = Path(__file__).parents[3]
UNITS = ("nstorm-agent", "nstorm-controller")


def unit(name: str) -> configparser.SectionProxy:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read(ROOT / "deploy" / "systemd" / f"{name}.service")
    return found["Service"]


@pytest.mark.parametrize("name", UNITS)
def test_a_service_tells_systemd_that_it_has_started_and_for_what_it_waits(
    name: str, tmp_path: Path
) -> None:
    service = unit(name)
    assert service["Type"] == "notify"
    assert float(service["WatchdogSec"]) > HANGS_AFTER_S
    conf = tmp_path / "storm.yaml"
    conf.write_text(f"storm.zookeeper.port: 1\nstorm.local.dir: {tmp_path}\n")
    program, *arguments = service["ExecStart"].split()
    arguments[-1] = str(conf)
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(60)
        daemon = subprocess.Popen(
            [Path(sys.executable).with_name(Path(program).name), *arguments],
            env={**os.environ, "NOTIFY_SOCKET": address},
            stderr=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(4096) == b"WATCHDOG=1\nREADY=1\nSTATUS=waits for ZooKeeper"
        finally:
            daemon.terminate()
            assert daemon.wait(60) == 0


def test_the_controller_gets_cpu_soon_within_its_service_and_between_services() -> None:
    service = unit("nstorm-controller")
    assert (int(service["Nice"]), int(service["CPUWeight"])) == (-10, 1000)
