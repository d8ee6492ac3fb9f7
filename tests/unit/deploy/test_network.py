"""The network of a lab: planned, refused, fallen back from, made or undone; without a kernel."""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from deploy.lab import LabError, network
from deploy.lab.network import Network, parse_rate, plan_network, refuse_cores, remove, token

PLANNED = Network("ns-0123abcd", "10.77.9.0/24", 2, 1, (20_000_000,) * 2, 0.7, "/cgroup/cpu")


class Kernel:
    """Devices and namespaces as files, and the commands that make and remove them."""

    def __init__(self, root: Path) -> None:
        self.devices, self.namespaces = root / "devices", root / "namespaces"
        self.said: list[str] = []
        self.fails_at = -1
        self.others_are_faster = False
        for folder in (self.devices, self.namespaces):
            folder.mkdir()

    def run(self, command: Sequence[str]) -> str:
        self.said.append(" ".join(command))
        if len(self.said) - 1 == self.fails_at:
            raise LabError(f"{self.said[-1]}: refused")
        match command:
            case ["ip", "link", "add", name, *_]:
                (self.devices / name).touch(exist_ok=False)
            case ["ip", "netns", "add", name]:
                (self.namespaces / name).touch(exist_ok=False)
            case ["ip", "link", "del", name]:
                (self.devices / name).unlink()
            case ["ip", "netns", "del", name]:
                (self.namespaces / name).unlink(missing_ok=self.others_are_faster)
            case ["ip", "netns", "pids", name] if self.others_are_faster:
                (self.namespaces / name).unlink()
            case ["ip", "-j", *_]:
                return '[{"dst": "default"}, {"dst": "192.0.2.0/24"}]'
        if self.others_are_faster and {"del", "pids"} & {*command}:
            raise LabError(f"{self.said[-1]}: Cannot find device")
        return ""

    def left(self) -> list[str]:
        return sorted(file.name for file in (*self.devices.iterdir(), *self.namespaces.iterdir()))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr(network, "_DEVICES", made.devices)
    monkeypatch.setattr(network, "_NAMESPACES", made.namespaces)
    monkeypatch.setattr(network, "_run", made.run)
    monkeypatch.setattr(network, "cpu_cgroups", lambda: None)
    return made


@pytest.fixture
def capable(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    """A machine that can do everything; calling it takes something away."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(shutil, "which", lambda tool: f"/sbin/{tool}")
    monkeypatch.setattr(network, "_tried", lambda script: None)
    monkeypatch.setattr(network, "cpu_cgroups", lambda: Path("/cgroup/cpu"))
    monkeypatch.setattr(network, "_quota_refused", lambda *_: None)
    return monkeypatch.setattr


@pytest.mark.parametrize(
    ("text", "bps"), [("20mbit", 20_000_000), ("0.5Mbit", 500_000), ("1gbit", 1_000_000_000)]
)
def test_a_rate_is_read(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize("text", ["20", "fast", "20mbit/s", "-5mbit", "20MB", "1e3kbit", ""])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="not a rate: type a number with kbit, mbit or gbit"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["0mbit", "99kbit", "11gbit"])
def test_a_rate_that_cannot_be_shaped_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="carries 100kbit to 10gbit"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("cores", "nodes", "most"),
    [(0.7, 2, 8), (0.7, 3, 8), (0.7, 4, 6), (None, 2, 12), (None, 1, 24), (0.084, 1, 1)],
)
def test_slots_are_refused_that_could_not_start_in_time(
    cores: float | None, nodes: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    refuse_cores(cores, nodes, most)
    with pytest.raises(LabError, match=rf"--slots {most + 1}: .* carry at most {most}, since"):
        refuse_cores(cores, nodes, most + 1)


def test_a_lab_without_nodes_has_no_slots_to_refuse() -> None:
    refuse_cores(None, 0, 1000)


@pytest.mark.parametrize("cores", [0.0, -1.0, 0.083, 2.5, float("nan")])
def test_cores_that_the_machine_has_not_are_refused(
    cores: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(LabError, match=r"a node has at least 0\.084 and here at most 2"):
        refuse_cores(cores, 1, 1)


def test_addresses_and_names() -> None:
    assert PLANNED.bridge_host == "10.77.9.1"
    assert PLANNED.node_hosts == ("10.77.9.2", "10.77.9.3")
    assert PLANNED.nimbus_hosts == ("10.77.9.202",)
    assert PLANNED.name("10.77.9.202") == "ns-0123abcd-202"
    assert len(PLANNED.name("10.77.9.202")) <= 15  # the kernel's limit
    one, other = token(Path("/a/build/lab/lab")), token(Path("/b/build/lab/lab"))
    assert one != other
    assert one == token(Path("/a/build/lab/lab"))
    assert len(f"{one}-254") <= 15


def test_a_nodes_link_is_bounded_at_both_ends_and_a_nimbus_link_at_none() -> None:
    shaped = [command for command in PLANNED.commands() if command[0] == "tc"]
    tbf = "root tbf rate 20000000bit burst 32768b latency 50ms"
    assert [" ".join(command) for command in shaped] == [
        f"tc qdisc add dev ns-0123abcd-2 {tbf}",
        f"tc -n ns-0123abcd-2 qdisc add dev eth0 {tbf}",
        f"tc qdisc add dev ns-0123abcd-3 {tbf}",
        f"tc -n ns-0123abcd-3 qdisc add dev eth0 {tbf}",
    ]
    assert not any(c[0] == "tc" for c in replace(PLANNED, links_bps=()).commands())


def test_links_may_have_unlike_rates(capable: object, tmp_path: Path) -> None:
    planned, _ = plan_network(tmp_path, 2, 1, None, "20mbit,5mbit")
    assert planned is not None
    assert (planned.links_bps, planned.link_bps) == ((20_000_000, 5_000_000), None)
    inside = [one for one in planned.commands() if one[:2] == ["tc", "-n"]]
    rates = [one[one.index("rate") + 1] for one in inside]
    assert rates == ["20000000bit", "5000000bit"]
    with pytest.raises(LabError, match="--link 1mbit,2mbit: one rate for all, or one for each of"):
        plan_network(tmp_path, 3, 1, None, "1mbit,2mbit")


def test_the_bucket_of_a_fast_link_holds_ten_milliseconds() -> None:
    assert "burst 1250000b" in " ".join(network.tbf(1_000_000_000))


def test_another_labs_zookeeper_is_reached_by_a_route() -> None:
    said = [" ".join(command) for command in PLANNED.commands("10.77.4.1")]
    routes = [line for line in said if " route " in line]
    assert routes == [
        f"ip -n ns-0123abcd-{place} route add 10.77.4.1 via 10.77.9.1" for place in (2, 3, 202)
    ]
    assert not any("route" in command for command in PLANNED.commands())


def test_what_runs_at_a_node_is_in_its_cgroup_and_namespace() -> None:
    *shell, enter, space, end = PLANNED.inside("10.77.9.3")
    joins = "echo $$ > /cgroup/cpu/ns-0123abcd-3/cgroup.procs"
    assert shell == ["sh", "-c", f'{joins} && exec "$0" "$@"']
    assert [enter, space, end] == ["nsenter", "--net=/run/netns/ns-0123abcd-3", "--"]
    assert PLANNED.inside("10.77.9.202") == ["nsenter", "--net=/run/netns/ns-0123abcd-202", "--"]
    assert PLANNED.inside("10.77.9.1") == []
    unbounded = replace(PLANNED, cores=None, cgroups=None)
    assert unbounded.inside("10.77.9.3") == [enter, space, end]


def test_whoever_has_all_gets_all(capable: object, tmp_path: Path) -> None:
    planned, cannot_show = plan_network(tmp_path, 2, 1, 0.7, "20mbit")
    assert planned is not None
    assert cannot_show == []
    assert (planned.link_bps, planned.cores, planned.cgroups) == (20_000_000, 0.7, "/cgroup/cpu")
    assert (planned.nodes, planned.nimbuses, planned.token) == (2, 1, token(tmp_path))


def test_without_root_all_is_on_loopback(
    capable: Callable[[str, object], None], tmp_path: Path
) -> None:
    capable("os.geteuid", lambda: 1000)
    planned, cannot_show = plan_network(tmp_path, 2, 0, 0.7, "20mbit")
    assert planned is None
    assert cannot_show == ["not root: all nodes share this machine's loopback, its links and cores"]
    with pytest.raises(LabError, match="not a rate"):  # also refused here
        plan_network(tmp_path, 2, 0, 0.7, "fast")


def test_without_a_tool_or_the_kernels_leave_all_is_on_loopback(
    capable: Callable[[str, object], None], tmp_path: Path
) -> None:
    capable("deploy.lab.network._tried", lambda script: "Operation not permitted")
    planned, (line,) = plan_network(tmp_path, 2, 0, None, "20mbit")
    assert planned is None
    assert line.startswith("no namespaces, veth or bridge here (Operation not permitted)")
    capable("shutil.which", lambda tool: None if tool == "tc" else tool)
    planned, (line,) = plan_network(tmp_path, 2, 0, None, "20mbit")
    assert planned is None
    assert line.startswith("no `tc` (Debian's packages iproute2 and util-linux have it)")


def test_without_tbf_links_have_no_bound(
    capable: Callable[[str, object], None], tmp_path: Path
) -> None:
    capable("deploy.lab.network._tried", lambda script: "Unknown" if "tbf" in script else None)
    planned, cannot_show = plan_network(tmp_path, 2, 0, 0.7, "20mbit")
    assert planned is not None
    assert (planned.link_bps, planned.cores) == (None, 0.7)
    assert cannot_show == ["no tbf in this kernel (Unknown): links have no bound"]


def test_without_a_cgroup_nodes_share_the_cores(
    capable: Callable[[str, object], None], tmp_path: Path
) -> None:
    capable("deploy.lab.network.cpu_cgroups", lambda: None)
    planned, (line,) = plan_network(tmp_path, 2, 0, 0.7, "20mbit")
    assert planned is not None
    assert (planned.link_bps, planned.cores, planned.cgroups) == (20_000_000, None, None)
    assert line.startswith("no cgroup (v1) with CPU quotas to write to")


def test_a_quota_that_the_kernel_refuses_is_found_before_the_start(
    capable: Callable[[str, object], None], tmp_path: Path
) -> None:
    capable("deploy.lab.network._quota_refused", lambda *_: "Invalid argument")
    planned, (line,) = plan_network(tmp_path, 2, 0, 0.7, None)
    assert planned is not None
    assert (planned.cores, planned.cgroups) == (None, None)
    assert line == "no quota of 0.7 cores (Invalid argument): nodes share all the cores"


def test_a_refused_quota_leaves_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, text: str) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(Path, "write_text", refuse)
    assert network._quota_refused(tmp_path, tmp_path, 0.7) == "Invalid argument"
    assert [*tmp_path.iterdir()] == []
    assert network._quota_refused(tmp_path / "gone", tmp_path, 0.7) == "No such file or directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root")
def test_what_is_tried_leaves_nothing() -> None:
    before = [*Path("/run/netns").glob("n")]
    if refused := network._tried(network._TRY_NAMESPACES):
        pytest.skip(refused)
    assert network._tried(f"{network._TRY_NAMESPACES} && ip -n n link show v1") is None
    assert [*Path("/run/netns").glob("n")] == before
    assert not Path("/sys/class/net/b0").exists()


def test_more_cores_together_than_there_are_is_said(capable: object, tmp_path: Path) -> None:
    planned, (line,) = plan_network(tmp_path, 3, 0, 0.7, None)
    assert planned is not None
    assert planned.cores == 0.7
    assert line == "3 nodes of 0.7 cores on a machine of 2: they cannot all use theirs at once"


def test_more_nodes_than_addresses_are_refused(capable: object, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="a lab has addresses for 200 nodes"):
        plan_network(tmp_path, 201, 0, 0.7, None)


def test_no_subnet_is_taken_that_has_a_route() -> None:
    routed = [IPv4Network(name) for name in ("10.77.128.0/17", "10.77.5.0/24", "10.77.6.7/32")]
    free = {subnet.network_address.packed[2] for subnet in network._free(routed)}
    assert free == {*range(128)} - {5, 6}


def test_a_route_wider_than_all_labs_takes_nothing() -> None:
    assert len(network._free([IPv4Network("10.0.0.0/8")])) == 256


def test_the_routes_that_take_all_are_named(
    capable: Callable[[str, object], None], tmp_path: Path
) -> None:
    routed = [IPv4Network("10.77.0.0/16"), IPv4Network("192.0.2.0/24")]
    capable("deploy.lab.network._routed", lambda: routed)
    with pytest.raises(LabError, match=r"has a route on this machine \(10\.77\.0\.0/16\): end"):
        plan_network(tmp_path, 2, 0, None, None)


def test_the_cgroup_is_where_the_machine_has_the_cpu_controller(tmp_path: Path) -> None:
    mounts, group = tmp_path / "mounts", tmp_path / "cpu,cpuacct"
    group.mkdir()
    mounts.write_text(
        f"cgroup2 {tmp_path}/unified cgroup2 rw 0 0\n"
        f"cgroup {tmp_path}/cpuset cgroup rw,cpuset 0 0\n"
        f"cgroup {group} cgroup rw,relatime,cpu,cpuacct 0 0\n"
    )
    assert network.cpu_cgroups(mounts) is None  # a kernel without quotas
    (group / "cpu.cfs_quota_us").touch()
    assert network.cpu_cgroups(mounts) == group
    mounts.write_text(f"cgroup2 {tmp_path}/unified cgroup2 rw 0 0\n")
    assert network.cpu_cgroups(mounts) is None


def test_a_node_is_also_in_the_group_that_counts_its_cpu_where_that_is_apart(
    tmp_path: Path,
) -> None:
    cpu, counted = tmp_path / "cpu", tmp_path / "cpuacct"
    cpu.mkdir()
    counted.symlink_to(cpu)
    planned = replace(PLANNED, cgroups=str(cpu))
    assert " ".join(planned.inside("10.77.9.3")).count("cgroup.procs") == 1
    counted.unlink()
    counted.mkdir()
    script = planned.inside("10.77.9.3")[2]
    for group in (cpu, counted):
        assert f"echo $$ > {group}/ns-0123abcd-3/cgroup.procs && " in script


def test_quotas_are_written(kernel: Kernel, tmp_path: Path) -> None:
    replace(PLANNED, cgroups=str(tmp_path)).create()
    for name in ("ns-0123abcd-2", "ns-0123abcd-3"):
        assert (tmp_path / name / "cpu.cfs_quota_us").read_text() == "70000"
        assert (tmp_path / name / "cpu.cfs_period_us").read_text() == "100000"
    assert not (tmp_path / "ns-0123abcd-202").exists()


def test_a_step_that_fails_undoes_all_before_it(kernel: Kernel) -> None:
    planned = replace(PLANNED, cores=None, cgroups=None)
    planned.create()
    steps = len(kernel.said)
    assert len(kernel.left()) == 7  # a bridge; three devices; three namespaces
    remove(planned.token)
    for step in range(1, steps):
        kernel.said, kernel.fails_at = [], step
        with pytest.raises(LabError, match="refused"):
            planned.create()
        assert kernel.left() == [], kernel.said[step]


def test_whatever_a_dead_owner_left_is_removed_and_nothing_else(kernel: Kernel) -> None:
    other = replace(PLANNED, token="ns-ffffffff")
    for command in other.commands():
        kernel.run(command)
    others = kernel.left()
    commands = PLANNED.commands()
    for steps in range(len(commands) + 1):
        for command in commands[:steps]:
            kernel.run(command)
        remove(PLANNED.token)
        assert kernel.left() == others
    kernel.said = []
    remove(PLANNED.token)
    assert kernel.said == []


def test_what_somebody_else_removes_meanwhile_is_removed(kernel: Kernel) -> None:
    for command in PLANNED.commands():
        kernel.run(command)
    kernel.others_are_faster = True
    remove(PLANNED.token)
    assert kernel.left() == []


def test_what_cannot_be_removed_is_said(kernel: Kernel) -> None:
    for command in PLANNED.commands():
        kernel.run(command)
    kernel.said, kernel.fails_at = [], 3
    with pytest.raises(LabError, match="ip link del ns-0123abcd-3: refused"):
        remove(PLANNED.token)


def test_a_cgroup_that_somebody_else_removes_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "ns-0123abcd-2"
    network._remove_group(group)
    group.mkdir()
    (group / "cgroup.procs").touch()
    read = Path.read_text

    def gone(path: Path) -> str:
        shutil.rmtree(group)
        return read(path)

    monkeypatch.setattr(Path, "read_text", gone)
    network._remove_group(group)
    assert not group.exists()


def test_addresses_that_somebody_else_has_taken_since_are_refused(kernel: Kernel) -> None:
    with pytest.raises(LabError, match=r"192\.0\.2\.0/24 has a route since it was chosen"):
        replace(PLANNED, subnet="192.0.2.0/24").create()
    assert kernel.left() == []
