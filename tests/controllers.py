"""Runs controllers of a lab as processes, and asks them."""

import subprocess
import sys
from pathlib import Path

from deploy.lab.cluster import Lab

COMMAND = [sys.executable, "-m", "controller.cli"]


class Running:
    """Controllers as processes, ended with the test."""

    def __init__(self, lab: Lab) -> None:
        self.conf = lab.layout.storm_yaml
        self._log = (lab.layout.run_dir / "controller.log").open("a")
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, mode: str, conf: Path | None = None) -> subprocess.Popen[bytes]:
        command = [*COMMAND, "controller", "--conf", str(conf or self.conf), "--mode", mode]
        process = subprocess.Popen(command, stderr=self._log)
        self._processes.append(process)
        return process

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, *arguments, "--conf", str(self.conf)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
            process.wait(60)
        self._log.close()
