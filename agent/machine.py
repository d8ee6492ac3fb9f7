"""Reads the meters of this node: its CPU and its network, with all that uses them."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from migration.meters import BYTES_PER_MBIT
from migration.model import Meters

_NS_PER_S = 1_000_000_000
_NS_PER_US = 1_000
# Of a line of /proc/stat: what runs is counted first to third, and as sixth and seventh. Fourth and
# fifth are idle times, the eighth is what other machines took, and guests are counted as user too.
_RUNNING = (1, 2, 3, 6, 7)
# Of a line of /proc/net/dev, after its name.
_RECEIVED, _SENT = 0, 8


@dataclass(frozen=True, slots=True)
class _Group:
    """A cgroup with a quota: how long it has run, and on how many cores it may."""

    used_ns: int
    cores: float


class MachineMeters:
    """The machine that this process runs on, or the part of it that a cgroup with a quota is."""

    def __init__(self, root: Path = Path("/"), link_mbit: float | None = None) -> None:
        self._link_mbit = link_mbit
        self._proc = root / "proc"
        self._groups = root / "sys/fs/cgroup"
        self._interfaces = root / "sys/class/net"
        self._of_storm: dict[str, str] | None = None  # the supervisor's cgroups, as last seen

    def read(self, supervisor_pid: int | None) -> Meters:
        """Read the meters; those that cannot be read are left out.

        A quota that the agent alone has is none of the node: the supervisor shows that.
        """
        if supervisor_pid is not None:
            with suppress(OSError, ValueError):
                self._of_storm = self._cgroups(str(supervisor_pid))
        found: Meters = {}
        for read in (self._cpu, self._network):
            with suppress(OSError, ValueError, LookupError, ArithmeticError):
                found |= read()
        return found

    def _cpu(self) -> Meters:
        own = self._cgroups("self")
        groups = self._with_quota(own, own if self._of_storm is None else self._of_storm)
        if not groups:
            return self._whole()
        if self._of_storm is None:  # whether a quota is of the node is not known yet
            return {}
        group = min(groups, key=lambda group: group.cores)
        return {"machine_cpu_ns": group.used_ns, "machine_cores": group.cores}

    def _network(self) -> Meters:
        lines = (self._proc / "self/net/dev").read_text().splitlines()
        rows = (line.partition(":") for line in lines)
        counts = {name.strip(): text.split() for name, colon, text in rows if colon}
        counts.pop("lo", None)
        # Bridges, bonds and tunnels would count what goes through devices once more.
        devices = [name for name in counts if (self._interfaces / name / "device").exists()]
        names = devices or list(counts)
        if not names:
            return {}
        found: Meters = {
            "net_sent_bytes": sum(int(counts[name][_SENT]) for name in names),
            "net_received_bytes": sum(int(counts[name][_RECEIVED]) for name in names),
        }
        speed_mbit = sum(speed for name in names if (speed := self._speed_mbit(name)) > 0)
        if known := [mbit for mbit in (speed_mbit, self._link_mbit) if mbit]:
            found["link_bytes_per_s"] = min(known) * BYTES_PER_MBIT
        return found

    def _speed_mbit(self, name: str) -> int:
        """Read the speed of an interface that is up; -1 where none is known, as Linux has it."""
        try:
            is_up = (self._interfaces / name / "operstate").read_text().strip() == "up"
            return int((self._interfaces / name / "speed").read_text()) if is_up else -1
        except (OSError, ValueError):
            return -1

    def _whole(self) -> Meters:
        lines = [line.split() for line in (self._proc / "stat").read_text().splitlines()]
        (total,) = (line for line in lines if line and line[0] == "cpu")
        ticks = sum(int(total[column]) for column in _RUNNING)
        cores = sum(bool(line) and line[0][:3] == "cpu" and line[0] != "cpu" for line in lines)
        return {
            "machine_cpu_ns": ticks * _NS_PER_S // os.sysconf("SC_CLK_TCK"),
            "machine_cores": cores,
        }

    def _cgroups(self, process: str) -> dict[str, str]:
        """Give the cgroup of a process in each hierarchy, by the controllers of that."""
        lines = (self._proc / process / "cgroup").read_text().splitlines()
        return {controllers: path for _, controllers, path in (one.split(":", 2) for one in lines)}

    def _with_quota(self, own: dict[str, str], of_storm: dict[str, str]) -> list[_Group]:
        """Read the cgroups with a quota that this process and Storm's have in common."""
        found: list[_Group] = []
        v1: dict[str, str] = {}  # the hierarchy of each controller
        for controllers, path in own.items():
            if not controllers:
                folders = _common(self._groups, path, of_storm.get(""))
                found += filter(None, map(_of_v2, folders))
            v1 |= dict.fromkeys(controllers.split(","), controllers)
        if {"cpu", "cpuacct"} <= v1.keys():
            cpu, used = v1["cpu"], v1["cpuacct"]
            # Quota and use may be in two hierarchies. Those of two groups do not belong together.
            if own[cpu] == own[used]:
                mount = self._groups / cpu
                for folder in _common(mount, own[cpu], of_storm.get(cpu)):
                    group = _of_v1(folder, self._groups / used / folder.relative_to(mount))
                    found += [group] if group is not None else []
        return found


def _common(mount: Path, own: str, other: str | None) -> list[Path]:
    """Name the folders of a cgroup and of those around it that another process is in as well.

    In a container the mount may be its own cgroup, under which its path is not there. What is
    outside of a container's namespace has a path that begins with `..`.
    """
    parts, theirs = Path(own).parts, Path(other or "..").parts
    if ".." in theirs:
        return []
    depths = [n for n in range(1, len(parts) + 1) if parts[:n] == theirs[:n]]
    if mount.joinpath(*parts[1:]).is_dir():
        return [mount.joinpath(*parts[1:n]) for n in depths]
    return [mount] if len(parts) in depths else []


def _of_v1(folder: Path, used: Path) -> _Group | None:
    quota = folder / "cpu.cfs_quota_us"
    quota_us = int(quota.read_text()) if quota.exists() else -1
    if quota_us <= 0 or not used.is_dir():
        return None
    period_us = int((folder / "cpu.cfs_period_us").read_text())
    return _Group(int((used / "cpuacct.usage").read_text()), quota_us / period_us)


def _of_v2(folder: Path) -> _Group | None:
    most = folder / "cpu.max"
    quota_us, period_us = most.read_text().split() if most.exists() else ("max", "")
    if quota_us == "max":
        return None
    stat = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    return _Group(int(stat["usage_usec"]) * _NS_PER_US, int(quota_us) / int(period_us))
