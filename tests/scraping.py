"""A real Prometheus, Debian's, that scrapes what a test serves."""

import json
import re
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROMETHEUS = ROOT / "build" / "prometheus" / "usr" / "bin"
RULES = ROOT / "deploy" / "prometheus" / "nstorm-rules.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "nstorm.json"


def need_prometheus() -> None:
    if not (PROMETHEUS / "prometheus").exists():
        pytest.skip("Debian's Prometheus is not there: make build/prometheus")


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Prometheus:
    """A server that runs, and what may be asked of it."""

    def __init__(self, port: int) -> None:
        self._at = f"http://localhost:{port}/api/v1"

    def get(self, path: str, **arguments: str) -> Any:
        url = f"{self._at}/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found


@contextmanager
def scraping(folder: Path, ports: Mapping[str, int]) -> Iterator[Prometheus]:
    """Run a Prometheus with nstorm's rules over jobs of one target each."""
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [f"localhost:{at}"]}]}
            for job, at in ports.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [
        str(PROMETHEUS / "prometheus"),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=localhost:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            found = Prometheus(port)
            _await(found, process)
            yield found
        finally:
            process.terminate()
            process.wait(60)


def _await(prometheus: Prometheus, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + 60
    while True:
        try:
            prometheus.query("vector(1)")
            return
        except OSError:
            assert process.poll() is None, "prometheus has ended; see its log"
            assert time.monotonic() < until_s, "prometheus does not answer"
            time.sleep(0.1)


def dashboard_queries() -> list[str]:
    """Give the query of each panel, for all topologies."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [t["expr"].replace("$topology", ".*") for panel in panels for t in panel["targets"]]


def metrics_asked_for() -> set[str]:
    """Name the metrics that the dashboard and the rules ask for."""
    text = DASHBOARD.read_text() + RULES.read_text()
    return set(re.findall(r"\bnstorm_[a-z_]+", text))


def alerts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    return found
