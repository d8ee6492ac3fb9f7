"""Takes the figures of a topology over some seconds: throughput, and what a sentence costs."""

import math
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil

from controller.core.capacity import Capacity
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.distance import inter_node_tps
from controller.core.figures import PRIOR_DEVIATION
from controller.core.fit import SURE
from controller.core.hops import lab_hop_cores
from controller.core.layout import layout_of, opened_by
from controller.core.learnt import times_at_rest
from controller.core.metrics import Rates, observe_each
from controller.core.topology import TopologyView
from controller.storm.collect import LiveCluster
from deploy.lab import LabError
from deploy.lab.cluster import Lab
from deploy.lab.ledger import WRITE_DELAY_S, LedgerWindow, latency_ms
from deploy.lab.operator import places, published
from kvstore.zookeeper import Session

# Of a node's network devices: what stays on the node, and its link.
_WITHIN, _LINK = "lo", "eth0"
_PERF_MAGIC = b"\xca\xfe\xc0\xc0"


@dataclass(frozen=True, slots=True)
class Figures:
    """What some seconds have shown; None where a figure could not be taken.

    Attributes
    ----------
    cpu_us_per_sentence : float or None
        CPU time of all workers that have executors, user and system.
    link_bytes_per_sentence : float or None
        All that went over the links of the nodes, each byte counted where it left.
    fullest_link_bytes_per_sentence : float or None
        What went over that direction of a link that carried most.
    ack_p50_ms, ack_p99_ms : float or None
        From the emission of a sentence to its ack, at most 6 per cent too high.
    inter_node_byte_frac : float or None
        Share of the bytes that went to another node, of those that went through a socket. Tuples
        within a worker have none.
    gc_frac : float or None
        Share of the time in which a worker stood still for its collector, mean over the workers.
    fullest_link_frac : float or None
        How much of its rate the fullest direction of a link carried.
    fullest_link : str or None
        The node, and "out" or "in".
    fullest_worker : str
        Host and port of the worker that used most.
    machine_busy_frac : float
        Share of the whole machine's CPU that was not idle, other work included.
    """

    acked_tps: float
    cpu_us_per_sentence: float | None
    link_bytes_per_sentence: float | None
    fullest_link_bytes_per_sentence: float | None
    ack_p50_ms: float | None
    ack_p99_ms: float | None
    inter_node_tuple_frac: float | None
    inter_node_byte_frac: float | None
    gc_frac: float | None
    fullest_link_frac: float | None
    fullest_link: str | None
    worker_cores_mean: float
    worker_cores_max: float
    fullest_worker: str
    machine_busy_frac: float


@dataclass(frozen=True, slots=True)
class Counters:
    """What only grows, as it is at one moment.

    Attributes
    ----------
    cpu_s, gc_s : mapping of str to float
        By host and port of a worker: CPU time; time stood still for the collector, where the JVM
        reports it.
    link_bytes : mapping of (str, str) to int
        By node and "out" or "in". Empty where nodes have no links of their own.
    within_bytes : mapping of str to int
        By node, what went from a worker to another of the same node.
    """

    time_s: float
    pids: Mapping[str, int]
    cpu_s: Mapping[str, float]
    gc_s: Mapping[str, float]
    link_bytes: Mapping[tuple[str, str], int]
    within_bytes: Mapping[str, int]
    busy_s: float
    idle_s: float


class Tuples:
    """Follows the tuples that the workers of one topology count."""

    def __init__(self, session: Session, topology: str, link_bps: int | None = None) -> None:
        self._topology = topology
        self._link_bps = link_bps
        self.view = LiveCluster.of_session(session)

    def found(self) -> TopologyView:
        """Look at the topology now."""
        return published(self.view, self._topology)

    def mark(self, before: Rates | None = None) -> Rates:
        """Take down the workers' totals, and what they have sent since an earlier mark."""
        # Weight 1: nothing of what was before that mark, no smoothing.
        view, loads = self.found(), self.view.loads()
        known = {view.id: Rates() if before is None else before}
        return observe_each(known, loads, [view], now_s=time.monotonic(), ewma=1.0)[view.id]

    def picture(
        self, rates: Rates, worker_cores: float | None = None
    ) -> tuple[Cluster, LoadSnapshot] | None:
        """Put the rates since a mark over where executors are now; nothing moved in between.

        Parameters
        ----------
        worker_cores : float or None
            Capacity of a worker; None divides a node's CPU by its slots.

        Returns
        -------
        tuple of (Cluster, LoadSnapshot) or None
            None if a worker was not heard of twice.
        """
        view = self.found()
        layout = layout_of(view, Capacity(worker_cores), None, opened_by([view])).fitted(rates)
        if not rates.known.all() or not layout.worker.keys() <= set(rates.slots):
            return None
        cluster, snapshot = layout.cluster, layout.snapshot(rates, time_s=time.time())
        if self._link_bps is not None and cluster.node_cores is not None:
            carries = np.full((2, len(cluster.nodes)), self._link_bps / 8)
            cluster = replace(cluster, link_bytes_s=carries)
        hops = float(lab_hop_cores(snapshot.traffic, snapshot.place, cluster.node_of).sum())
        times = times_at_rest(rates, hops) or 1.0
        return replace(cluster, hop_times=times, hop_doubt=SURE * PRIOR_DEVIATION), snapshot

    def inter_node_frac(self, rates: Rates) -> float | None:
        """Give the share of the tuples of `rates` that crossed between nodes."""
        picture = self.picture(rates)
        if picture is None or not picture[1].traffic.total_tps:
            return None
        return inter_node_tps(*picture) / picture[1].traffic.total_tps


class Meter:
    """Takes the figures of one topology.

    Parameters
    ----------
    topology : str
        Its name; it runs alone in the lab.
    """

    def __init__(self, lab: Lab, session: Session, topology: str) -> None:
        self._lab = lab
        self._link_bps = lab.layout.options.link_bps
        self._tuples = Tuples(session, topology, self._link_bps)
        self._ledger = lab.ledger(topology)

    def take(self, length_s: int, wait: Callable[[float], object] = time.sleep) -> Figures:
        """Take the figures of the next whole seconds.

        Raises
        ------
        LabError
            When a worker was restarted in between.
        """
        from_s = math.ceil(time.time())
        wait(max(from_s - time.time(), 0.0))
        before, mark = self._counters(), self._tuples.mark()
        to_s = from_s + length_s
        wait(max(to_s - time.time(), 0.0))
        after, rates = self._counters(), self._tuples.mark(mark)
        wait(2 * WRITE_DELAY_S)  # a busy machine writes late
        seconds = self._ledger.windows(from_s, to_s)
        return figures(before, after, seconds, self._tuples.inter_node_frac(rates), self._link_bps)

    def _counters(self) -> Counters:
        # A worker that was emptied ends when nothing is left to forward.
        used = {str(slot) for slot in places(self._tuples.found()).values()}
        pids = {self._place(s): pid for s, pid in self._lab.worker_pids().items() if s in used}
        times = {slot: psutil.Process(pid).cpu_times() for slot, pid in pids.items()}
        link_bytes: dict[tuple[str, str], int] = {}
        within_bytes: dict[str, int] = {}
        if self._lab.layout.options.network is not None:
            for slot, pid in pids.items():
                host = slot.rpartition(":")[0]
                received, sent = device_bytes(pid, _LINK)
                link_bytes |= {(host, "in"): received, (host, "out"): sent}
                within_bytes[host] = device_bytes(pid, _WITHIN)[0]
        paused = {slot: gc_pause_s(pid) for slot, pid in pids.items()}
        machine = psutil.cpu_times()
        idle_s = machine.idle + machine.iowait
        # What is counted for guests is also counted as user.
        kinds = (machine.user, machine.nice, machine.system, machine.irq, machine.softirq)
        return Counters(
            time_s=time.time(),
            pids=pids,
            cpu_s={slot: spent.user + spent.system for slot, spent in times.items()},
            gc_s={slot: spent_s for slot, spent_s in paused.items() if spent_s is not None},
            link_bytes=link_bytes,
            within_bytes=within_bytes,
            busy_s=sum(kinds) + machine.steal,
            idle_s=idle_s,
        )

    def _place(self, slot: str) -> str:
        """Put the node's host for the long id that its supervisor gives itself."""
        supervisor_id, _, port = slot.rpartition(":")
        return f"{self._lab.node(supervisor_id).host}:{port}"


def figures(
    before: Counters,
    after: Counters,
    seconds: list[LedgerWindow],
    inter_node_tuple_frac: float | None,
    link_bps: int | None,
) -> Figures:
    """Work the figures out of what was counted at both ends.

    Returns
    -------
    Figures
        Per sentence where anything was acked.
    """
    if after.pids != before.pids:
        changed = sorted(dict(after.pids.items() ^ before.pids.items()))
        raise LabError(f"restarted while figures were taken: the workers in {changed}")
    span_s = after.time_s - before.time_s
    tps = sum(second.acked for second in seconds) / len(seconds)
    acked = tps * span_s
    cores = {slot: (cpu_s - before.cpu_s[slot]) / span_s for slot, cpu_s in after.cpu_s.items()}
    links = {key: count - before.link_bytes[key] for key, count in after.link_bytes.items()}
    crossed = sum(count for (_, direction), count in links.items() if direction == "out")
    within = sum(count - before.within_bytes[host] for host, count in after.within_bytes.items())
    fullest = max(links, key=lambda key: links[key]) if links else None
    paused_s = [spent_s - before.gc_s[slot] for slot, spent_s in after.gc_s.items()]
    busy_s, idle_s = after.busy_s - before.busy_s, after.idle_s - before.idle_s
    p50_ms, p99_ms = latency_ms(seconds, 0.5), latency_ms(seconds, 0.99)
    return Figures(
        acked_tps=tps,
        cpu_us_per_sentence=1e6 * sum(cores.values()) * span_s / acked if acked else None,
        link_bytes_per_sentence=crossed / acked if acked and links else None,
        fullest_link_bytes_per_sentence=links[fullest] / acked if acked and fullest else None,
        ack_p50_ms=p50_ms if math.isfinite(p50_ms) else None,
        ack_p99_ms=p99_ms if math.isfinite(p99_ms) else None,
        inter_node_tuple_frac=inter_node_tuple_frac,
        inter_node_byte_frac=crossed / (crossed + within) if crossed + within else None,
        gc_frac=sum(paused_s) / len(paused_s) / span_s if len(paused_s) == len(cores) else None,
        fullest_link_frac=8 * links[fullest] / span_s / link_bps if fullest and link_bps else None,
        fullest_link=" ".join(fullest) if fullest else None,
        worker_cores_mean=sum(cores.values()) / len(cores),
        worker_cores_max=max(cores.values()),
        fullest_worker=max(cores, key=lambda slot: cores[slot]),
        machine_busy_frac=busy_s / (busy_s + idle_s),
    )


def device_bytes(pid: int, device: str, proc: Path = Path("/proc")) -> tuple[int, int]:
    """Read what a network device of a process has carried since it was made.

    Parameters
    ----------
    pid : int
        A process in the device's namespace.

    Returns
    -------
    tuple of (int, int)
        Bytes received and sent.
    """
    for line in (proc / str(pid) / "net" / "dev").read_text().splitlines():
        name, colon, counts = line.partition(":")
        if colon and name.strip() == device:
            fields = counts.split()
            return int(fields[0]), int(fields[8])
    raise LabError(f"process {pid} has no network device {device}: is the lab in namespaces?")


def gc_pause_s(pid: int, folder: Path = Path("/tmp")) -> float | None:
    """Read how long a JVM has stood still for its collectors.

    Returns
    -------
    float or None
        Seconds since it started; None where it leaves no counters that can be read.
    """
    for file in folder.glob(f"hsperfdata_*/{pid}"):
        counters = _perf_longs(file.read_bytes())
        ticks = [
            value
            for name, value in counters.items()
            if name.startswith("sun.gc.collector.") and name.endswith(".time")
        ]
        if ticks and counters.get("sun.os.hrt.frequency"):
            return sum(ticks) / counters["sun.os.hrt.frequency"]
    return None


def _perf_longs(data: bytes) -> dict[str, int]:
    """Read the numbers of a file of HotSpot's counters, version 2 of jdk.internal.perf."""
    if data[:4] != _PERF_MAGIC or len(data) < 32:
        return {}
    order = "<" if data[4] else ">"
    at, entries = struct.unpack_from(order + "ii", data, 24)
    found = {}
    for _ in range(entries):
        length, name_at, elements, kind, _, _, _, value_at = struct.unpack_from(
            order + "iiiBBBBi", data, at
        )
        if kind == ord("J") and elements == 0:
            name = data[at + name_at : data.index(b"\0", at + name_at)].decode()
            found[name] = struct.unpack_from(order + "q", data, at + value_at)[0]
        at += length
    return found
