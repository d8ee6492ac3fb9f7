"""Nodes that are nodes: a network namespace, an address, a link and a share of CPU for each."""

import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from deploy.lab import LabError

_ALL = IPv4Network("10.77.0.0/16")
# A /24 for each lab.
_SUBNETS = [*_ALL.subnets(new_prefix=24)]
_NAMESPACES = Path("/run/netns")
_DEVICES = Path("/sys/class/net")
_PERIOD_US = 100_000
# What ends at the same time is gone by then; processes in a group need longer.
_GONE_LIMIT_S, _EMPTY_LIMIT_S = 1.0, 10.0
# The last number of an address: the bridge has 1, nodes come from 2 on.
_FIRST_NODE, _FIRST_NIMBUS, _END = 2, 202, 254
# A worker's JVM takes about this much CPU until it runs, and Storm gives up on it after 120 s
# (supervisor.worker.start.timeout.secs). All slots may start at once, with supervisor and agent.
START_CPU_S = 10.0
START_LIMIT_S = 120.0
# One slot needs START_CPU_S / START_LIMIT_S.
LEAST_CORES = 0.084


@dataclass(frozen=True, slots=True)
class Network:
    """Bridge, namespaces, links and cgroups of one lab on paper.

    Attributes
    ----------
    token : str
        What all names begin with.
    subnet : str
        Its first address is the bridge's, in the namespace of this machine.
    nodes : int
        How many namespaces have a bounded link and bounded CPU.
    nimbuses : int
        How many have neither.
    links_bps : tuple of int
        What the link of each node carries in each direction; empty where they have no bound.
    cgroups : str or None
        The folder of the kernel's cpu controller, where `cores` is given.
    """

    token: str
    subnet: str
    nodes: int
    nimbuses: int
    links_bps: tuple[int, ...]
    cores: float | None
    cgroups: str | None

    @property
    def bridge_host(self) -> str:
        """The address that all namespaces and this machine's own reach."""
        return self._host(1)

    @property
    def link_bps(self) -> int | None:
        """What each link carries; None where they have no bound, or are unlike."""
        return self.links_bps[0] if len(set(self.links_bps)) == 1 else None

    @property
    def node_hosts(self) -> tuple[str, ...]:
        """The addresses of the nodes."""
        return tuple(self._host(_FIRST_NODE + i) for i in range(self.nodes))

    @property
    def nimbus_hosts(self) -> tuple[str, ...]:
        """The addresses of the Nimbuses that have a namespace."""
        return tuple(self._host(_FIRST_NIMBUS + i) for i in range(self.nimbuses))

    def name(self, host: str) -> str:
        """Name the namespace of an address, and its device on the bridge, and its cgroup."""
        return f"{self.token}-{host.rpartition('.')[2]}"

    def commands(self, reach: str | None = None) -> list[list[str]]:
        """Give the commands that make bridge, namespaces and links.

        Parameters
        ----------
        reach : str or None
            An address of this machine, other than that of the bridge, that all have to reach.
        """
        bridge = [
            ["ip", "link", "add", self.token, "type", "bridge"],
            ["ip", "addr", "add", f"{self.bridge_host}/24", "dev", self.token],
            ["ip", "link", "set", self.token, "up"],
        ]
        hosts = (*self.node_hosts, *self.nimbus_hosts)
        return bridge + [command for host in hosts for command in self._namespace(host, reach)]

    def _namespace(self, host: str, reach: str | None) -> list[list[str]]:
        name = self.name(host)
        within = ["ip", "-n", name]
        commands = [
            ["ip", "netns", "add", name],
            ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name],
            ["ip", "link", "set", name, "master", self.token, "up"],
            [*within, "addr", "add", f"{host}/24", "dev", "eth0"],
            [*within, "link", "set", "eth0", "up"],
            [*within, "link", "set", "lo", "up"],
        ]
        if reach is not None:
            commands.append([*within, "route", "add", reach, "via", self.bridge_host])
        if self.links_bps and host in self.node_hosts:
            shape = ["root", *tbf(self.links_bps[self.node_hosts.index(host)])]
            commands.append(["tc", "qdisc", "add", "dev", name, *shape])
            commands.append(["tc", "-n", name, "qdisc", "add", "dev", "eth0", *shape])
        return commands

    def inside(self, host: str) -> list[str]:
        """Give what goes before a command to run it at an address; its process id stays."""
        if host not in (*self.node_hosts, *self.nimbus_hosts):
            return []
        # Not `ip netns exec`: it mounts another /sys, and a JVM would not find its cgroup there.
        enter = ["nsenter", f"--net={_NAMESPACES / self.name(host)}", "--"]
        if self.cgroups is None or host not in self.node_hosts:
            return enter
        groups = (folder / self.name(host) for folder in _hierarchies(Path(self.cgroups)))
        joins = " && ".join(
            f"echo $$ > {shlex.quote(str(group / 'cgroup.procs'))}" for group in groups
        )
        return ["sh", "-c", f'{joins} && exec "$0" "$@"', *enter]

    def create(self, reach: str | None = None) -> None:
        """Make everything, or nothing.

        Raises
        ------
        LabError
            The kernel refused a step, or the addresses have been taken since they were chosen.
        """
        remove(self.token)
        if IPv4Network(self.subnet) not in _free(_routed()):
            raise LabError(f"{self.subnet} has a route since it was chosen: start the lab again")
        try:
            for command in self.commands(reach):
                _run(command)
            for host in self.node_hosts:
                self._bound_cpu(host)
        except BaseException:
            remove(self.token)
            raise

    def _bound_cpu(self, host: str) -> None:
        if self.cgroups is None or self.cores is None:
            return
        group = Path(self.cgroups, self.name(host))
        try:
            _make_group(group, self.cores)
        except OSError as error:
            raise LabError(f"the kernel refuses {self.cores} cores in {group}: {error}") from error

    def _host(self, place: int) -> str:
        return str(IPv4Network(self.subnet)[place])


def plan_network(
    run_dir: Path, nodes: int, nimbuses: int, cores: float | None, link: str | None
) -> tuple[Network | None, list[str]]:
    """Lay out the network of a lab as far as this machine can have it; nothing is made yet.

    Parameters
    ----------
    nimbuses : int
        Number of Nimbuses in addition to the one at the bridge.
    link : str or None
        Of each node; a rate as `tc` has it, or one for each node with commas between.

    Returns
    -------
    network : Network or None
        None where this machine can have no namespaces.
    cannot_show : list of str
        What of that this machine cannot show, a line each.

    Raises
    ------
    LabError
        What was asked for makes no sense on any machine, or no addresses are free.
    """
    rates = () if link is None else tuple(map(parse_rate, link.split(",")))
    if len(rates) not in (0, 1, nodes):
        raise LabError(f"--link {link}: one rate for all, or one for each of {nodes} nodes")
    links_bps = rates * nodes if len(rates) == 1 else rates
    if nodes > _FIRST_NIMBUS - _FIRST_NODE or nimbuses > _END - _FIRST_NIMBUS:
        raise LabError(f"a lab has addresses for 200 nodes and 53 Nimbuses, not for {nodes} nodes")
    lacking = _no_namespaces()
    if lacking is not None:
        return None, [f"{lacking}: all nodes share this machine's loopback, its links and cores"]
    cannot_show = []
    if links_bps and (refused := _tried(_TRY_TBF)):
        cannot_show.append(f"no tbf in this kernel ({refused}): links have no bound")
        links_bps = ()
    cgroups = None if cores is None else cpu_cgroups()
    if cores is not None and cgroups is None:
        cannot_show.append("no cgroup (v1) with CPU quotas to write to: nodes share all the cores")
        cores = None
    if cgroups and cores and (refused := _quota_refused(cgroups, run_dir, cores)):
        cannot_show.append(f"no quota of {cores:g} cores ({refused}): nodes share all the cores")
        cgroups = cores = None
    if cores is not None and cores * nodes > machine_cores():
        asked = f"{nodes} nodes of {cores:g} cores on a machine of {machine_cores()}"
        cannot_show.append(f"{asked}: they cannot all use theirs at once")
    routed = _routed()
    free = _free(routed)
    if not free:
        names = ", ".join(str(route) for route in routed if route.overlaps(_ALL))
        raise LabError(
            f"each /24 of {_ALL} has a route on this machine ({names}): end what has them, such as "
            "other labs"
        )
    subnet, folder = str(random.choice(free)), None if cgroups is None else str(cgroups)
    return Network(token(run_dir), subnet, nodes, nimbuses, links_bps, cores, folder), cannot_show


def refuse_cores(cores: float | None, nodes: int, slots: int) -> None:
    """Refuse more than the machine has, and nodes whose workers could not start in time."""
    machine = machine_cores()
    if cores is not None and not LEAST_CORES <= cores <= machine:
        raise LabError(
            f"--cores {cores:g}: a node has at least {LEAST_CORES} and here at most {machine}"
        )
    share = machine / max(nodes, 1)
    usable = share if cores is None else min(cores, share)
    most = int(usable * START_LIMIT_S / START_CPU_S)
    if nodes and slots > most:
        raise LabError(
            f"--slots {slots}: {nodes} nodes on {machine} cores have {usable:.3g} each and carry "
            f"at most {most}, since a worker needs about {START_CPU_S:.0f} s of CPU to start and "
            f"Storm gives it {START_LIMIT_S:.0f} s"
        )


def token(run_dir: Path) -> str:
    """Give what the names of a lab's devices begin with; the kernel takes 15 characters a name."""
    return f"ns-{hashlib.sha256(str(run_dir).encode()).hexdigest()[:8]}"


def parse_rate(text: str) -> int:
    """Read a rate.

    Returns
    -------
    int
        Bits per second.

    Raises
    ------
    LabError
        It is none, or outside of what can be shaped here.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", text.lower())
    if found is None:
        raise LabError(f"--link {text}: not a rate: type a number with kbit, mbit or gbit: 20mbit")
    rate = round(float(found[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[found[2][0]])
    if not 100_000 <= rate <= 10_000_000_000:
        raise LabError(f"--link {text}: a link of the lab carries 100kbit to 10gbit")
    return rate


def tbf(rate_bps: int) -> list[str]:
    """Give the arguments of `tc` for a token bucket: 10 ms of the rate, and a queue of 50 ms."""
    burst = max(32 * 1024, rate_bps // 8 // 100)
    return ["tbf", "rate", f"{rate_bps}bit", "burst", f"{burst}b", "latency", "50ms"]


def cpu_cgroups(mounts: Path = Path("/proc/mounts")) -> Path | None:
    """Find the folder in which CPU quotas of cgroup v1 can be made."""
    for line in mounts.read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            quota = Path(where) / "cpu.cfs_quota_us"
            return Path(where) if quota.exists() and os.access(where, os.W_OK) else None
    return None


def remove(token: str) -> None:
    """Remove whatever there is of a lab's network, with the processes in it.

    Raises
    ------
    LabError
        Something cannot be removed; an object that has gone since is removed.
    """
    cgroups = cpu_cgroups()
    for folder in _hierarchies(cgroups) if cgroups else ():
        for group in folder.glob(f"{token}-*"):
            _remove_group(group)
    spaces = [*_NAMESPACES.glob(f"{token}-*")] if _NAMESPACES.is_dir() else []
    for space in spaces:
        for pid in _run_on(space, ["ip", "netns", "pids", space.name]).split():
            _kill(int(pid))
    # The device first: at the end of a namespace the kernel takes its time over what is in it.
    for device in sorted(_DEVICES.glob(f"{token}*"), reverse=True):
        _run_on(device, ["ip", "link", "del", device.name])
    for space in spaces:
        _run_on(space, ["ip", "netns", "del", space.name])


def _run_on(path: Path, command: Sequence[str]) -> str:
    """Run a command on something that may go at the same time; then it is also done."""
    try:
        return _run(command)
    except LabError:
        deadline = time.monotonic() + _GONE_LIMIT_S
        # The kernel forgets a device's name a moment before its path.
        while path.exists():
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        return ""


def _hierarchies(cgroups: Path) -> list[Path]:
    """Give the folder for quotas, and the one in which CPU is counted where that is apart."""
    used = cgroups.parent / "cpuacct"
    apart = used.is_dir() and not used.samefile(cgroups)
    return [cgroups, used] if apart else [cgroups]


def _make_group(group: Path, cores: float) -> None:
    for folder in _hierarchies(group.parent):
        (folder / group.name).mkdir()
    (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(round(cores * _PERIOD_US)))


def _quota_refused(cgroups: Path, run_dir: Path, cores: float) -> str | None:
    """Try a quota, which one of a group above may forbid; give the reason of a refusal."""
    group = cgroups / f"{token(run_dir)}-try-{os.getpid()}"
    try:
        _make_group(group, cores)
    except OSError as error:
        return error.strerror
    else:
        return None
    finally:
        for folder in _hierarchies(cgroups):
            with suppress(FileNotFoundError):
                (folder / group.name).rmdir()


def _remove_group(group: Path) -> None:
    deadline = time.monotonic() + _EMPTY_LIMIT_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise LabError(f"{group} cannot be removed: {error}") from error
        else:
            return
        with suppress(OSError):  # another process was faster
            for pid in (group / "cgroup.procs").read_text().split():
                _kill(int(pid))
        time.sleep(0.05)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


# Namespaces are mounts in /run, which must not be this machine's.
_TRY_NAMESPACES = (
    "mount -t tmpfs t /run && ip netns add n && ip link add b0 type bridge && "
    "ip link add v0 type veth peer name v1 netns n"
)
_TRY_TBF = f"{_TRY_NAMESPACES} && tc qdisc add dev v0 root tbf rate 1mbit burst 32k latency 50ms"


def _no_namespaces() -> str | None:
    """Give the reason why there can be no namespaces here; None where there can."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("ip", "tc", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            return f"no `{tool}` (Debian's packages iproute2 and util-linux have it)"
    refused = _tried(_TRY_NAMESPACES)
    return None if refused is None else f"no namespaces, veth or bridge here ({refused})"


def _tried(script: str) -> str | None:
    """Try commands in a namespace that ends with them; give the first line of a refusal."""
    command = ["unshare", "--net", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or "refused").splitlines()[0]


def machine_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _routed() -> list[IPv4Network]:
    """List what this machine has a route to, but for the default."""
    rows = json.loads(_run(["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]")
    names = {row["dst"] for row in rows} - {"default"}
    return [IPv4Network(name) for name in names]


def _free(routed: Iterable[IPv4Network]) -> list[IPv4Network]:
    # Those of a VPN or the like may be wider than all that labs have: a lab's own route wins.
    taken = [other for other in routed if other.prefixlen >= _ALL.prefixlen]
    return [subnet for subnet in _SUBNETS if not any(subnet.overlaps(other) for other in taken)]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
