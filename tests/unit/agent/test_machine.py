"""What a node's agent reads of its machine."""

import os
from pathlib import Path

import pytest

from agent.machine import MachineMeters

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
STAT = "cpu  10 20 30 4000 500 6 7 80 9 0\ncpu0 1 2 3 4\ncpu1 1 2 3 4\ncpu2 1 2\nintr 5\n"
APART = "1:cpu:{0}\n2:cpuacct:{1}\n"
V1, V2 = "4:cpu,cpuacct:{}\n3:memory:/else\n", "0::{}\n"


def machine(tmp_path: Path, files: dict[str, str]) -> MachineMeters:
    """Make a machine whose supervisor has process 7, in the cgroups of the agent if not given."""
    files = {"proc/stat": STAT, "proc/self/cgroup": ""} | files
    for name, text in ({"proc/7/cgroup": files["proc/self/cgroup"]} | files).items():
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


def apart(folder: str, quota_us: int, usage_ns: int) -> dict[str, str]:
    """Give the files of one group where each controller has a hierarchy."""
    return {
        path.replace("cpu,cpuacct", "cpuacct" if path.endswith("usage") else "cpu"): text
        for path, text in v1(folder, quota_us, usage_ns).items()
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
        # Quota and use may be in two hierarchies, but must be of one group.
        (
            {"proc/self/cgroup": APART.format("/node", "/node"), **apart("node", 90_000, 55)},
            {"machine_cpu_ns": 55, "machine_cores": 0.9},
        ),
        ({"proc/self/cgroup": APART.format("/node", "/"), **apart("node", 90_000, 55)}, WHOLE),
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
    assert machine(tmp_path, files).read(7) == read


@pytest.mark.parametrize(
    ("own", "of_storm", "files", "read"),
    [
        # A side-car: a container sees itself at the root, and what is outside above it.
        (V2.format("/"), V2.format("/../4711"), v2("", "20000 100000", 7), WHOLE),
        # The same without a namespace: the mount is the container's own.
        (V1.format("/pod/4712"), V1.format("/pod/4711"), v1("", 20_000, 7), WHOLE),
        # Each in a unit of its own, and that of the agent has a quota.
        (
            V2.format("/system.slice/agent.service"),
            V2.format("/system.slice/storm.service"),
            v2("system.slice/agent.service", "20000 100000", 7),
            WHOLE,
        ),
        # What is around both counts, as does a quota around a supervisor that has a part of it.
        (
            V2.format("/a/agent"),
            V2.format("/a/storm"),
            v2("a/agent", "20000 100000", 7) | v2("a", "200000 100000", 9),
            {"machine_cpu_ns": 9000, "machine_cores": 2.0},
        ),
        (
            APART.format("/a/agent", "/a/agent"),
            APART.format("/a/storm", "/a/storm"),
            apart("a/agent", 20_000, 7) | apart("a", 200_000, 9),
            {"machine_cpu_ns": 9, "machine_cores": 2.0},
        ),
        (
            V2.format("/"),
            V2.format("/storm"),
            v2("", "200000 100000", 9),
            {"machine_cpu_ns": 9000, "machine_cores": 2.0},
        ),
    ],
)
def test_a_quota_that_the_agent_alone_has_is_none_of_the_node(
    tmp_path: Path, own: str, of_storm: str, files: dict[str, str], read: dict[str, float]
) -> None:
    files = {"proc/self/cgroup": own, "proc/7/cgroup": of_storm} | files
    assert machine(tmp_path, files).read(7) == read


def test_a_quota_counts_once_the_supervisor_was_seen_and_while_it_is_away(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": V2.format("/node"), **v2("node", "150000 100000", 7)}
    meters = machine(tmp_path, files)
    assert meters.read(None) == {}
    assert meters.read(8) == {}  # its process has ended
    found = meters.read(7)
    assert found == {"machine_cpu_ns": 7000, "machine_cores": 1.5}
    assert meters.read(None) == meters.read(8) == found


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
    assert machine(tmp_path, files).read(7) == {}


def test_a_machine_without_these_files_has_no_meters(tmp_path: Path) -> None:
    assert MachineMeters(tmp_path).read(7) == {}


def test_this_machine_has_cores() -> None:
    assert MachineMeters().read(os.getpid())["machine_cores"] > 0


DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:     7       1    0    0    0     0          0         0        7       1    0
  eth0:   100       2    0    0    0     0          0         0       30       3    0
  eth1:  2000       2    0    0    0     0          0         0      400       3    0
   br0: 90000       9    0    0    0     0          0         0    80000       9    0
"""


def interface(name: str, speed: str | None = None, *, state: str = "up") -> dict[str, str]:
    folder = f"sys/class/net/{name}"
    return {f"{folder}/operstate": f"{state}\n"} | (
        {} if speed is None else {f"{folder}/speed": f"{speed}\n"}
    )


def device(name: str, speed: str | None = None, *, state: str = "up") -> dict[str, str]:
    made = interface(name, speed, state=state)
    return made | {f"sys/class/net/{name}/device/vendor": "0x1af4\n"}


@pytest.mark.parametrize(
    ("files", "received", "sent", "link"),
    [
        # As in a network namespace of a lab: no interface is a device.
        ({}, 92100, 80430, None),
        (interface("br0", "10"), 92100, 80430, 1_250_000),
        (interface("lo", "10") | interface("eth0", "1000"), 92100, 80430, 125_000_000),
        # What passes a bridge has gone through a device.
        (device("eth0", "1000") | interface("br0", "10000"), 100, 30, 125_000_000),
        (device("eth0", "1000") | device("eth1", "2500"), 2100, 430, 437_500_000),
        (device("eth0", "1000") | device("eth1", "2500", state="down"), 2100, 430, 125_000_000),
        (device("eth0", "-1") | device("eth1", "x"), 2100, 430, None),
        (device("eth0"), 100, 30, None),
    ],
)
def test_the_network_counts_without_what_passes_twice(
    tmp_path: Path, files: dict[str, str], received: int, sent: int, link: int | None
) -> None:
    found = machine(tmp_path, {"proc/self/net/dev": DEV} | files).read(7)
    wanted = {"net_sent_bytes": sent, "net_received_bytes": received}
    assert found == WHOLE | wanted | ({} if link is None else {"link_bytes_per_s": link})


@pytest.mark.parametrize(("speed", "key_mbit"), [("1000", 5.5), ("-1", 5.5), ("3", 100.0)])
def test_a_key_bounds_the_link_of_its_node(tmp_path: Path, speed: str, key_mbit: float) -> None:
    machine(tmp_path, {"proc/self/net/dev": DEV} | device("eth0", speed))
    found = MachineMeters(tmp_path, key_mbit).read(7)
    assert found["link_bytes_per_s"] == 125_000 * min(key_mbit, 3 if speed == "3" else 1000)


@pytest.mark.parametrize("text", ["", "  lo: 1 2 3 4 5 6 7 8 9\n", "  eth0: 1 2\n", "eth0: x\n"])
def test_without_a_network_its_cpu_is_known_still(tmp_path: Path, text: str) -> None:
    assert machine(tmp_path, {"proc/self/net/dev": text}).read(7) == WHOLE


def test_without_its_cpu_the_network_is_known_still(tmp_path: Path) -> None:
    files = {"proc/stat": "cpu  10 x\n", "proc/self/net/dev": DEV}
    assert machine(tmp_path, files).read(7).keys() == {"net_sent_bytes", "net_received_bytes"}
