"""Makes fresh random worlds: small and large, roomy and tight, nodes uneven, executors unlike."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.limits import Limits
from migration.model import Component
from tests.bench.decide.cases import Case

TIGHT, ROOMY = 0.78, 0.5


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of world.

    Attributes
    ----------
    used_frac : float
        Share of all CPU in use.
    is_uneven : bool
        Whether nodes differ in workers and capacity.
    """

    executors: int | None
    used_frac: float
    is_uneven: bool
    pinned_frac: float
    is_alike: bool

    @property
    def name(self) -> str:
        """Describe it in a few words."""
        words = (
            str(self.executors or "small"),
            "tight" if self.used_frac == TIGHT else "roomy",
            "uneven" if self.is_uneven else "even",
            "pinned" if self.pinned_frac else "free",
            "alike" if self.is_alike else "unlike",
        )
        return " ".join(words)


def kinds(executors: int | None) -> Iterator[Kind]:
    """List all kinds of one size.

    Parameters
    ----------
    executors : int or None
        None for small ones.
    """
    for used, uneven, pinned, alike in product(
        (ROOMY, TIGHT), (False, True), (0.0, 0.15), (True, False)
    ):
        yield Kind(executors, used, uneven, pinned, alike)


def world(kind: Kind, seed: int) -> Case:
    """Make one world; no worker is above the default limit in it.

    Returns
    -------
    Case
        Executors in random order, each on a worker with room for it.
    """
    random = np.random.default_rng([seed, *kind.name.encode()])
    count = kind.executors or int(random.integers(8, 41))
    nodes = int(random.integers(2, 5)) if count <= 40 else count // 40
    per_node = random.integers(1, 5, nodes) if kind.is_uneven else np.full(nodes, 2)
    if count > 40:
        per_node = random.integers(2, 7, nodes) if kind.is_uneven else np.full(nodes, 4)
    while per_node.sum() * 2 > count:
        per_node[per_node.argmax()] -= 1
    per_node = np.maximum(per_node, 1)
    names = [f"n{n}" for n in range(nodes)]
    cores = random.uniform(0.6, 1.6, nodes) if kind.is_uneven else np.ones(nodes)
    cluster = Cluster.build(
        names,
        [
            (f"{name}:{port}", name, float(size))
            for name, count_of, size in zip(names, per_node, cores, strict=True)
            for port in range(count_of)
        ],
    )
    weight = np.ones(count) if kind.is_alike else random.lognormal(0, 0.6, count)
    use = weight * kind.used_frac * cluster.capacity_cores.sum() / weight.sum()
    while (place := _packed(cluster, use, random)) is None:
        use = 0.97 * use
    pinned = random.random(count) < kind.pinned_frac
    return cluster, LoadSnapshot(
        topology="world",
        time_s=0.0,
        components=(Component("bolt", "bolt", count),),
        edges=(),
        executors=tuple(f"{e}-{e}" for e in range(1, count + 1)),
        component_of=("bolt",) * count,
        place=place,
        cpu_cores=use,
        queue=np.zeros(count),
        pinned=tuple("spout" if one else None for one in pinned),
        traffic=_traffic(count, random),
    )


def _packed(cluster: Cluster, use: Floats, random: np.random.Generator) -> Ints | None:
    """Deal executors out at random, the largest first; None if one does not fit any more."""
    left = Limits().high_frac * cluster.capacity_cores
    place = np.zeros(len(use), dtype=np.int64)
    for e in np.argsort(-use, kind="stable"):
        fits = np.flatnonzero(left >= use[e])
        if not fits.size:
            return None
        w = int(random.choice(fits))
        place[e], left[w] = w, left[w] - use[e]
    return place


def _traffic(count: int, random: np.random.Generator) -> Traffic:
    """Let groups of a random size talk among themselves, and some pairs at random."""
    group, neighbours = int(random.integers(2, 13)), int(random.integers(3, 9))
    pairs = count * neighbours // 2
    source = random.integers(0, count, pairs)
    other = random.integers(0, count, pairs)
    start = source // group * group
    inside = random.random(pairs) < random.uniform(0.5, 1.0)
    near = start + random.integers(0, np.minimum(group, count - start))
    target = np.where(inside, near, other)
    apart = source != target
    return Traffic.build(source[apart], target[apart], random.lognormal(1, 1, apart.sum()))
