"""Makes random worlds: nodes with cores of their own, links, heaps, and some topologies.

Their load is chosen by what Storm's own placement bears: a share of it, or more than that.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from msgspec import structs

from controller.config import Config, Mode
from deploy.sim.engine import placed
from deploy.sim.flow.feed import Burst, Day, Feed
from deploy.sim.flow.load import Metering
from deploy.sim.flow.nodes import Hardware, Neighbour
from deploy.sim.flow.room import room
from deploy.sim.flow.workload import Link, Part, SimulatedTopology, acked
from deploy.sim.restart_cost import Delays, System
from deploy.sim.scenario import FIRST, RunSetting, SharedTopology

SECONDS, WARM_S, WINDOW_S, STEP_S = 1800.0, 600.0, 60.0, 1.0
# Of what Storm's placement bears without bursts; a peak is at most this of it.
PEAK_FRAC = 0.95
# As measured between two JVMs (docs/measurements/policies.md), half at either end.
COSTLY = Hardware(worker_us=1.05, node_us=1.45, byte_us=0.0041, shared_by="node")
Shape = Literal["calm", "bursts", "day", "saturated"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class RandomWorld:
    """A run without a controller, and what it is like."""

    setting: RunSetting
    shape: Shape
    used_frac: float  # of what Storm's placement bears, without bursts and day


def random_world(seed: int, number: int) -> RandomWorld:
    """Make a world; the same numbers give the same one."""
    random = np.random.default_rng([seed, number])
    shape = SHAPES[int(random.integers(len(SHAPES)))]
    nodes, workers = int(random.integers(2, 7)), int(random.integers(2, 5))
    cores = float(random.choice([0.5, 1.0, 2.0]))
    hardware = structs.replace(COSTLY, nodes=nodes, workers=workers, cores=cores)
    topologies = _topologies(random, hardware)
    setting = _setting(hardware, topologies, _neighbours(random, hardware, SECONDS))
    setting = _bounded(random, setting)
    used_frac = float(
        random.uniform(1.05, 1.5) if shape == "saturated" else random.uniform(0.1, 0.7)
    )
    return RandomWorld(_fed(random, setting, shape, used_frac), shape, used_frac)


def decided_by(setting: RunSetting, config: Config) -> RunSetting:
    """Let a policy decide in a world."""
    decides = replace(config, mode=Mode.AUTO)
    return replace(setting, name="policy", system=System.NSTORM, controller=decides)


def _setting(
    hardware: Hardware, topologies: list[SharedTopology], neighbours: tuple[Neighbour, ...]
) -> RunSetting:
    first, *others = topologies
    return RunSetting(
        name="still",
        topology=first.topology,
        seconds=SECONDS,
        step_s=STEP_S,
        warm_s=WARM_S,
        window_s=WINDOW_S,
        begin_s=5.0,
        system=System.NONE,
        hardware=hardware,
        feed=first.feed,
        metering=Metering(),
        delays=Delays(),
        redeploy=None,
        controller=None,
        happenings=(),
        slots=first.slots,
        others=tuple(others),
        neighbours=neighbours,
    )


def _topologies(random: np.random.Generator, hardware: Hardware) -> list[SharedTopology]:
    """Draw one to three topologies that find slots; some slots stay free more often than not."""
    slots = hardware.nodes * hardware.workers
    count = min(int(random.integers(1, 4)), slots)
    found = []
    for number in range(count):
        topology = _topology(random)
        executors = sum(part.executors for part in topology.parts)
        most = min(slots // count, executors, 8)
        given = int(random.integers(min(2, most), most + 1))
        feed = Feed(rate_tps=float(random.uniform(0.3, 1.0)))
        found.append(SharedTopology((FIRST, "second", "third")[number], topology, feed, given))
    return found


def _topology(random: np.random.Generator) -> SimulatedTopology:
    """Draw a spout and one to four bolts behind it, each fed by one or two before it."""
    bolts = int(random.integers(1, 5))
    size_bytes = np.exp(random.normal(5.0, 1.5, bolts + 1)).round()
    parts = [Part("c0", "spout", int(random.integers(1, 4)), _cost_us(random))]
    links = []
    for bolt in range(1, bolts + 1):
        state_mb = float(random.uniform(5, 80)) if random.random() < 0.3 else 0.0
        executors = int(random.integers(1, 9))
        uneven = 0.3 if random.random() < 0.3 else 0.0
        parts.append(
            Part(f"c{bolt}", "bolt", executors, _cost_us(random), uneven=uneven, state_mb=state_mb)
        )
        sources = {bolt - 1} | ({int(random.integers(bolt))} if random.random() < 0.3 else set())
        links += [
            _link(random, source, bolt, float(size_bytes[source])) for source in sorted(sources)
        ]
    return acked(SimulatedTopology(tuple(parts), tuple(links)), int(random.integers(3)), 2.0)


def _link(random: np.random.Generator, source: int, target: int, size_bytes: float) -> Link:
    groupings: tuple[Literal["shuffle", "near", "fields"], ...] = ("shuffle", "near", "fields")
    return Link(
        f"c{source}",
        f"c{target}",
        groupings[int(random.choice(3, p=[0.5, 0.15, 0.35]))],
        selectivity=float(random.choice([0.2, 1.0, 1.0, 1.0, 3.0])),
        zipf=float(random.choice([0.0, 0.5, 1.0])),
        keys=1000,
        size_bytes=size_bytes,
    )


def _cost_us(random: np.random.Generator) -> float:
    return float(np.exp(random.normal(3.0, 0.8)).round(1))


def _neighbours(
    random: np.random.Generator, hardware: Hardware, seconds: float
) -> tuple[Neighbour, ...]:
    if random.random() > 0.25:
        return ()
    node, cores = int(random.integers(hardware.nodes)), hardware.cores * random.uniform(0.1, 0.4)
    at_s, for_s = random.uniform(0, seconds / 2), random.uniform(120, seconds / 2)
    return (Neighbour(at_s=at_s, for_s=for_s, node=f"n{node}", cores=float(cores)),)


def _bounded(random: np.random.Generator, setting: RunSetting) -> RunSetting:
    """Bound links and heaps near to what Storm's placement needs, or not at all."""
    hardware = structs.replace(setting.hardware, link_bytes_s=1.0, heap_mb=1.0)
    worlds = placed(replace(setting, hardware=hardware), 1)
    found = room(worlds, [world.rate_tps for world in worlds])
    assert found.cpu is not None
    assert found.heap is not None
    link_bytes_s = math.inf
    if found.link is not None and random.random() < 0.6:
        link_bytes_s = found.cpu / found.link * float(np.exp(random.normal(0.2, 0.5)))
    heap_mb = float(random.uniform(1.4, 4.0)) / found.heap if random.random() < 0.6 else math.inf
    return replace(
        setting, hardware=structs.replace(hardware, link_bytes_s=link_bytes_s, heap_mb=heap_mb)
    )


def _fed(
    random: np.random.Generator, setting: RunSetting, shape: Shape, used_frac: float
) -> RunSetting:
    """Scale all inputs together to the share of what Storm's placement bears."""
    worlds = placed(setting, 1)
    bears = room(worlds, [world.rate_tps for world in worlds]).input
    assert bears is not None
    noise, most = float(random.choice([0.0, 0.05, 0.2])), PEAK_FRAC / used_frac
    times = float(random.uniform(min(1.5, most), most)) if most > 1 else 1.0
    every_s = float(random.uniform(500, 900))
    at_s, for_s = float(random.uniform(200, 600)), float(random.uniform(60, 240))

    def fed(feed: Feed) -> Feed:
        rate_tps = feed.rate_tps * bears * used_frac
        bursts = (Burst(at_s=at_s, for_s=for_s, times=times, every_s=every_s),)
        return Feed(
            rate_tps=rate_tps,
            pending=math.ceil(5 * rate_tps * times) + 1000,
            bursts=bursts if shape == "bursts" else (),
            day=Day(15.0, times) if shape == "day" else None,
            noise=noise,
        )

    return replace(
        setting,
        feed=fed(setting.feed),
        others=tuple(replace(one, feed=fed(one.feed)) for one in setting.others),
        metering=Metering(noise=float(random.choice([0.0, 0.05, 0.2]))),
    )
