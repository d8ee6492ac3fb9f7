"""Measures how well a run served its input, and how a policy's run compares with Storm's placement.

Figures that are not known are left out: there is no share of an unbounded input, and no room of
what nothing bounds.
"""

import math
from collections.abc import Iterator

import numpy as np

from controller.core.cluster import Floats
from deploy.sim.engine import SimulationResult
from deploy.sim.flow.room import Room
from deploy.sim.scenario import RunSetting

MINUTE_S = 60


def fits(
    setting: RunSetting, result: SimulationResult, alone: SimulationResult
) -> Iterator[tuple[str, float]]:
    """Take the measures of a run, and how they compare with `alone`: Storm's placement, left alone.

    ``share`` is the part of the input that was carried within its minute, in the mean over
    topologies. ``share_min`` is the least of a topology and minute. ``room``, ``room_cpu`` and so
    on are factors at the end (`Room`). What ends in ``_x`` is relative to `alone`: ``carried_x`` is
    the mean over topologies, ``carried_x_worst`` the least of them. ``room_link_x`` compares the
    fullest direction of a link by its bytes, bounded or not.
    """
    warm, window = round(setting.warm_s), round(setting.window_s)
    offered, in_time = _by_minute(result.offered_tps[warm:]), _in_time(result, warm)
    yield "carried_tps", float(result.carried_tps[warm:].sum(axis=1).mean())
    if np.isfinite(offered).all() and offered.sum(axis=0).all():
        yield "offered_tps", float(result.offered_tps[warm:].sum(axis=1).mean())
        yield "share", float((in_time.sum(axis=0) / offered.sum(axis=0)).mean())
        some = offered > 0
        yield "share_min", float((in_time[some] / offered[some]).min())
    yield "pending_max", float(result.pending[warm:].max())
    yield "pending_end", float(result.pending[-window:].mean())
    yield from _rooms(result.room)
    cpu_us, alone_us = _cpu_us(setting, result), _cpu_us(setting, alone)
    if cpu_us is not None:
        yield "cpu_us", cpu_us
    yield "bytes_end", float(result.inter_node_bytes_frac[-window:].mean())
    yield "jvms_dead", float(result.jvms_dead)
    yield from _relative(result, alone, in_time.sum(axis=0), _in_time(alone, warm).sum(axis=0))
    if cpu_us is not None and alone_us:
        yield "cpu_x", cpu_us / alone_us


def _rooms(room: Room) -> Iterator[tuple[str, float]]:
    resources = {"cpu": room.cpu, "thread": room.thread, "link": room.link, "heap": room.heap}
    if room.input is not None:
        yield "room", room.input
    for name, factor in resources.items():
        if factor is not None:
            yield f"room_{name}", factor


def _relative(
    result: SimulationResult, alone: SimulationResult, ours: Floats, theirs: Floats
) -> Iterator[tuple[str, float]]:
    """Compare; `ours` and `theirs` are what each topology carried within its minute, (T,)."""
    if theirs.all():
        yield "carried_x", float((ours / theirs).mean())
        yield "carried_x_worst", float((ours / theirs).min())
    now, before = result.room, alone.room
    if now.input is not None and before.input:
        yield "room_x", now.input / before.input
    if now.cpu is not None and before.cpu:
        yield "room_cpu_x", now.cpu / before.cpu
    if now.fullest_bytes_s:
        yield "room_link_x", before.fullest_bytes_s / now.fullest_bytes_s
    if now.heap is not None and before.heap:
        yield "room_heap_x", now.heap / before.heap


def _in_time(result: SimulationResult, warm: int) -> Floats:
    """Give what each topology carried within its minute, (M, T)."""
    offered, carried = _by_minute(result.offered_tps[warm:]), _by_minute(result.carried_tps[warm:])
    in_time: Floats = np.minimum(offered, carried)
    return in_time


def _by_minute(series: Floats) -> Floats:
    """Add up whole minutes, (M, T); all of a run that is shorter."""
    whole = len(series) // MINUTE_S * MINUTE_S
    rows = series[:whole].reshape(-1, MINUTE_S, series.shape[1]) if whole else series[None]
    sums: Floats = rows.sum(axis=1)
    return sums


def _cpu_us(setting: RunSetting, result: SimulationResult) -> float | None:
    """Compute the processor time for a sentence, within the last window."""
    window = round(setting.window_s)
    cores = setting.hardware.cores / setting.hardware.workers
    done = float(result.throughput_tps[-window:].sum())
    used_s = float(result.cpu_frac[-window:].sum()) * cores
    return used_s / done * 1e6 if done and math.isfinite(done) else None
