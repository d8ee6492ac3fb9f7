"""Reads the meters of this node: its CPU and its network, with all that uses them."""

from __future__ import annotations

import os
from collections.abc import Callable
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

    def __init__(self, root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._groups = root / "sys/fs/cgroup"
        self._interfaces = root / "sys/class/net"

    def read(self) -> Meters:
        """Read the meters; those that cannot be read are left out."""
        found: Meters = {}
        for read in (self._cpu, self._network):
            with suppress(OSError, ValueError, LookupError, ArithmeticError):
                found |= read()
        return found

    def _cpu(self) -> Meters:
        group = self._narrowest()
        if group is not None:
            return {"machine_cpu_ns": group.used_ns, "machine_cores": group.cores}
        return self._whole()

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
        speeds_mbit = [speed for name in names if (speed := self._speed_mbit(name)) > 0]
        if speeds_mbit:
            found["link_bytes_per_s"] = sum(speeds_mbit) * BYTES_PER_MBIT
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

    def _narrowest(self) -> _Group | None:
        """Give the cgroup of this process, or the one around it, that has the least quota."""
        found: list[_Group] = []
        v1: dict[str, tuple[Path, str]] = {}
        for line in (self._proc / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                found += _with_quota(self._groups, path, _of_v2)
                continue
            v1 |= dict.fromkeys(controllers.split(","), (self._groups / controllers, path))
        if {"cpu", "cpuacct"} <= v1.keys():
            (mount, path), (used, used_path) = v1["cpu"], v1["cpuacct"]
            # Quota and use may be in two hierarchies. Those of two groups do not belong together.
            if path == used_path:
                found += _with_quota(
                    mount, path, lambda folder: _of_v1(folder, used / folder.relative_to(mount))
                )
        return min(found, key=lambda group: group.cores, default=None)


def _with_quota(mount: Path, path: str, read: Callable[[Path], _Group | None]) -> list[_Group]:
    """Read a cgroup and those around it.

    In a container the mount may be its own cgroup, under which its path is not there.
    """
    inner = mount / path.strip("/")
    folders = [inner, *inner.parents][: len(inner.parts) - len(mount.parts) + 1]
    groups = (read(folder) for folder in folders if folder.is_dir())
    return [group for group in groups if group is not None]


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
