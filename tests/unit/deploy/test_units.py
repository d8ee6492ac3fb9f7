"""The services as systemd would run them."""

import configparser
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from kvstore.pulse import HANGS_AFTER_S
from tests.scraping import free_port

ROOT = Path(__file__).parents[3]
UNITS = ("nstorm-agent", "nstorm-controller")
EVERY = (*UNITS, "nstorm-page")


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


def test_the_service_of_the_page_runs_without_zookeeper_until_it_is_ended(tmp_path: Path) -> None:
    conf = tmp_path / "storm.yaml"
    conf.write_text(f"storm.zookeeper.port: 1\nstorm.local.dir: {tmp_path}\n")
    program, *arguments = unit("nstorm-page")["ExecStart"].split()
    arguments[-1], address = str(conf), f"127.0.0.1:{free_port()}"
    with subprocess.Popen(
        [Path(sys.executable).with_name(Path(program).name), *arguments, "--listen", address],
        stderr=subprocess.PIPE,
        text=True,
    ) as page:
        assert page.stderr is not None
        assert page.stderr.readline().startswith(f"the page is at http://{address}/")
        # It writes that a moment before it serves, and what ends it before then is the signal.
        for _ in range(600):
            with suppress(OSError), urlopen(f"http://{address}/page.css", timeout=60) as answer:
                assert answer.status == 200
                break
            time.sleep(0.1)
        page.terminate()
    assert page.returncode == 0
    assert unit("nstorm-page")["SuccessExitStatus"] == "143"


def test_the_controller_gets_cpu_soon_within_its_service_and_between_services() -> None:
    service = unit("nstorm-controller")
    assert (int(service["Nice"]), int(service["CPUWeight"])) == (-10, 1000)


@pytest.mark.parametrize("name", EVERY)
def test_a_service_has_no_rights_that_it_does_not_need_and_comes_back(name: str) -> None:
    service = unit(name)
    for key in ("NoNewPrivileges", "RestrictSUIDSGID", "RestrictNamespaces", "LockPersonality"):
        assert service[key] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert service["ProtectSystem"] in ("full", "strict")
    # Five starts within ten seconds, systemd's own limit, would end it for ever.
    text = (ROOT / "deploy" / "systemd" / f"{name}.service").read_text("utf-8")
    assert "StartLimitIntervalSec=0\n" in text.partition("[Service]")[0]
    assert (service["Restart"], float(service["RestartSec"])) == ("always", 5.0)


def test_a_trial_of_notices_has_the_rights_of_the_service() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    (line,) = [line for line in page.splitlines() if "systemd-run" in line]
    trial = dict(one.split("=") for one in re.findall(r"-p (\S+)", line))
    service = unit("nstorm-controller")
    assert {key: service[key] for key in trial} == trial
    assert trial.keys() >= {"User", "NoNewPrivileges", "ProtectSystem"}


@pytest.mark.parametrize("name", EVERY)
def test_systemd_understands_each_line_of_a_service(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here")
    path = tmp_path / f"{name}.service"
    text = (ROOT / "deploy" / "systemd" / path.name).read_text("utf-8")
    path.write_text(text.replace("/opt/nstorm/bin/", f"{Path(sys.executable).parent}/"))
    command = ["systemd-analyze", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Unknown key" not in done.stderr and "Failed to parse" not in done.stderr
