"""What a node's agent reads of its machine."""

import os
from pathlib import Path

import pytest

from agent.machine import MachineMeters

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
STAT = "cpu  10 20 30 4000 500 6 7 80 9 0\ncpu0 1 2 3 4\ncpu1 1 2 3 4\ncpu2 1 2\nintr 5\n"
V1, V2 = "4:cpu,cpuacct:{}\n3:memory:/else\n", "0::{}\n"


def machine(tmp_path: Path, files: dict[str, str]) -> MachineMeters:
    for name, text in ({"proc/stat": STAT, "proc/self/cgroup": ""} | files).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return MachineMeters(tmp_path)


def v1(folder: str, quota_us: int, usage_ns: int) -> dict[str, str]:
    group = f"sys/fs/cgroup/cpu,cpuacct/{folder}"
    return {
        f"{group}/cpu.cfs_quota_us": f"{quota_us}\n",
        f"{group}/cpu.cfs_period_us": "100000\n",
        f"{group}/cpuacct.usage": f"{usage_ns}\n",
    }


def v2(folder: str, most: str, usage_us: int) -> dict[str, str]:
    group = f"sys/fs/cgroup/{folder}"
    return {
        f"{group}/cpu.max": f"{most}\n",
        f"{group}/cpu.stat": f"usage_usec {usage_us}\nuser_usec 1\n",
    }


WHOLE = {"machine_cpu_ns": (10 + 20 + 30 + 6 + 7) * TICK_NS, "machine_cores": 3}


@pytest.mark.parametrize(
    ("files", "read"),
    [
        # Not what was idle, what other machines took, or what guests used, which is there already.
        ({}, WHOLE),
        # A cgroup without a quota has all of the machine.
        ({"proc/self/cgroup": V1.format("/node"), **v1("node", -1, 5)}, WHOLE),
        ({"proc/self/cgroup": V2.format("/node"), **v2("node", "max 100000", 5)}, WHOLE),
        (
            {"proc/self/cgroup": V1.format("/node"), **v1("node", 90_000, 55)},
            {"machine_cpu_ns": 55, "machine_cores": 0.9},
        ),
        (
            {"proc/self/cgroup": V2.format("/node"), **v2("node", "150000 100000", 7)},
            {"machine_cpu_ns": 7000, "machine_cores": 1.5},
        ),
        # The quota may be of a cgroup around it, and the least one counts.
        (
            {"proc/self/cgroup": V2.format("/a/b/c"), **v2("a/b/c", "max 100000", 1)}
            | v2("a/b", "400000 100000", 3)
            | v2("a", "200000 100000", 2),
            {"machine_cpu_ns": 2000, "machine_cores": 2.0},
        ),
        # In a container the path is that of the host, and the mount is the container's own.
        (
            {"proc/self/cgroup": V1.format("/docker/4711"), **v1("", 200_000, 8)},
            {"machine_cpu_ns": 8, "machine_cores": 2.0},
        ),
    ],
)
def test_the_cpu_of_the_machine_or_of_the_part_that_a_quota_makes(
    tmp_path: Path, files: dict[str, str], read: dict[str, float]
) -> None:
    assert machine(tmp_path, files).read() == read


@pytest.mark.parametrize(
    "files",
    [
        {"proc/stat": "intr 5\n"},
        {"proc/stat": "cpu  10 x\n"},
        {"proc/stat": "cpu  10\n"},
        {"proc/self/cgroup": V2.format("/node"), **v2("node", "150000 0", 7)},
        {"proc/self/cgroup": V2.format("/node"), **v2("node", "150000 100000", 7)}
        | {"sys/fs/cgroup/node/cpu.stat": "user_usec 1\n"},
    ],
)
def test_what_cannot_be_read_is_left_out(tmp_path: Path, files: dict[str, str]) -> None:
    assert machine(tmp_path, files).read() == {}


def test_a_machine_without_these_files_has_no_meters(tmp_path: Path) -> None:
    assert MachineMeters(tmp_path).read() == {}


def test_this_machine_has_cores() -> None:
    assert MachineMeters().read()["machine_cores"] > 0
