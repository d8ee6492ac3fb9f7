"""By what factor the input of all topologies may still grow where they are (004, equation 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.cluster import Floats
from deploy.sim.flow.world import World


@dataclass(frozen=True, slots=True)
class Room:
    """The factor for each resource; None where nothing bounds it, or nothing uses it.

    `heap` is how often the fullest worker's heap fits into its limit, with all its state: that does
    not grow with the input.
    """

    cpu: float | None
    thread: float | None  # of the executor that is next to using a whole core
    link: float | None
    heap: float | None
    fullest_bytes_s: float  # of all directions of links, bounded or not

    @property
    def input(self) -> float | None:
        """The factor of what the input fills."""
        found = (self.cpu, self.thread, self.link)
        return min((one for one in found if one is not None), default=None)


def room(worlds: Sequence[World], rates_tps: Sequence[float]) -> Room:
    """Compute the room there is at an input, in sentences per second of each topology.

    By the true costs, over groups that share processors, over threads, which have a core each at
    most, and over each direction of each link.
    """
    nodes, now_s = worlds[0].nodes, worlds[0].now_s
    pairs = list(zip(worlds, rates_tps, strict=True))
    have = nodes.cores_left(now_s)
    used = sum((nodes.used(w.place, tps * w.cpu_of_one_s) for w, tps in pairs), np.zeros(len(have)))
    sent = sum((tps * w.bytes_of_one for w, tps in pairs), np.zeros((nodes.hardware.nodes,) * 2))
    bytes_s = np.concatenate([sent.sum(axis=0), sent.sum(axis=1)])
    tuples = sum((tps * w.tuples_of_one for w, tps in pairs), np.zeros_like(sent))
    links = [
        _least(np.full(len(bytes_s), nodes.hardware.link_bytes_s), bytes_s),
        _least(np.full(tuples.size, nodes.hardware.link_tps), tuples.ravel()),
    ]
    threads = np.concatenate([tps * world.cpu_of_one_s for world, tps in pairs])
    heap_mb = np.concatenate([world.heaps.full_mb(world.place) for world in worlds])
    return Room(
        cpu=_least(have, used),
        thread=_least(np.ones(len(threads)), threads),
        link=min((one for one in links if one is not None), default=None),
        heap=_least(np.full(len(heap_mb), nodes.hardware.heap_mb), heap_mb),
        fullest_bytes_s=float(bytes_s.max()),
    )


def _least(have: Floats, used: Floats) -> float | None:
    bound = (used > 0) & np.isfinite(have)
    return float((have[bound] / used[bound]).min()) if bound.any() else None
