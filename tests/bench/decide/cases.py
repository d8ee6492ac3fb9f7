"""Makes clusters with frozen traffic to try policies on: WordCount, keyed pairs, planted groups.

The set-ups are those of 004, section 5.1, and plain random graphs; everything follows from a seed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from migration.model import Component, Edge

VOCABULARY = 6000
WORDS_IN_SENTENCE = 10
SENTENCES_TPS = 1000.0
# In the compute-intensive variant of 004 bolt1 computes harmonic numbers.
SPLITS_SHARE_OF_CPU = 0.83


@dataclass(frozen=True, slots=True)
class Hardware:
    """Nodes with workers of one core each, and how much of it all is in use."""

    nodes: int
    workers: int
    used_frac: float

    @property
    def cores(self) -> float:
        """All cores."""
        return float(self.nodes * self.workers)

    def cluster(self) -> Cluster:
        """Make it.

        Returns
        -------
        Cluster
            Workers ``n<node>:<port>``.
        """
        names = [f"n{n}" for n in range(self.nodes)]
        ports = range(6700, 6700 + self.workers)
        return Cluster.build(names, [(f"{n}:{port}", n, 1.0) for n in names for port in ports])


Case = tuple[Cluster, LoadSnapshot]
Random = np.random.Generator


def word_shares(random: Random, tasks: int) -> Floats:
    """Draw what share of all words each task counts.

    Returns
    -------
    Floats, shape (tasks,)
        Frequencies by Zipf's law with exponent 1, words to tasks at random as by their hash.
    """
    frequency = 1 / np.arange(1, VOCABULARY + 1)
    task = random.integers(0, tasks, VOCABULARY)
    sums = np.bincount(task, frequency / frequency.sum(), tasks)
    return sums.astype(np.float64)


def wordcount_comm(hardware: Hardware, seed: int) -> Case:
    """Make the communication-intensive WordCount: CPU goes with the tuples handled.

    Returns
    -------
    Case
        In Storm's even placement.
    """
    return _wordcount(hardware, np.random.default_rng(seed), computing=False)


def wordcount_comp(hardware: Hardware, seed: int) -> Case:
    """Make the compute-intensive WordCount: most CPU is in bolt1, unevenly.

    Parameters
    ----------
    seed : int
        Of the words' hashes and of the CPU of bolt1 (log-normal, sigma 0.4).

    Returns
    -------
    Case
        In Storm's even placement.
    """
    return _wordcount(hardware, np.random.default_rng(seed), computing=True)


def _wordcount(hardware: Hardware, random: Random, *, computing: bool) -> Case:
    spouts, splits, counts = hardware.nodes, 6 * hardware.nodes, 12 * hardware.nodes
    words = np.tile(word_shares(random, counts), (splits, 1)) / splits
    tuples = _three_layers(np.full((spouts, splits), 1 / spouts / splits), words)
    handled = tuples.sum(axis=0) + tuples.sum(axis=1)
    if computing:
        busy = random.lognormal(0, 0.4, splits)
        middle = slice(spouts, spouts + splits)
        handled[middle] = 0
        handled *= (1 - SPLITS_SHARE_OF_CPU) / handled.sum()
        handled[middle] = SPLITS_SHARE_OF_CPU * busy / busy.sum()
    names = ("spout",) * spouts + ("split",) * splits + ("count",) * counts
    return _case(hardware, names, tuples * SENTENCES_TPS, handled, _even(hardware, len(names)))


def keyed(hardware: Hardware, seed: int) -> Case:
    """Make a WordCount whose two bolts are keyed alike, so that the traffic falls into blocks.

    Returns
    -------
    Case
        Even in numbers, but in random order.
    """
    random = np.random.default_rng(seed)
    spouts, splits, counts = hardware.nodes, 6 * hardware.nodes, 12 * hardware.nodes
    share = word_shares(random, counts)
    block = np.arange(counts) % splits
    words = np.where(np.arange(splits)[:, None] == block, share, 0.0)
    sentences = np.tile(words.sum(axis=1), (spouts, 1)) / spouts
    tuples = _three_layers(sentences, words)
    names = ("spout",) * spouts + ("split",) * splits + ("count",) * counts
    handled = tuples.sum(axis=0) + tuples.sum(axis=1)
    place = random.permutation(_even(hardware, len(names)))
    return _case(hardware, names, tuples * SENTENCES_TPS, handled, place)


def _three_layers(sentences: Floats, words: Floats) -> Floats:
    """Put what spouts send and what splits send into one matrix; ten words a sentence."""
    spouts, splits = sentences.shape
    count = spouts + splits + words.shape[1]
    tuples = np.zeros((count, count))
    tuples[:spouts, spouts : spouts + splits] = sentences
    tuples[spouts : spouts + splits, spouts + splits :] = WORDS_IN_SENTENCE * words
    return tuples


@dataclass(frozen=True, slots=True)
class Groups:
    """A graph of groups whose members send most tuples within their group.

    Attributes
    ----------
    executors, group : int
        How many, and of what size a group is.
    neighbours : int
        With how many an executor talks on average.
    inside_frac : float
        Share of the pairs inside groups.
    """

    executors: int
    group: int = 12
    neighbours: int = 8
    inside_frac: float = 0.8


def planted(hardware: Hardware, seed: int, groups: Groups) -> Case:
    """Make a graph of groups, dealt out at random; rates and CPU are log-normal.

    Returns
    -------
    Case
        Even in numbers, but in random order.
    """
    random, count = np.random.default_rng(seed), groups.executors
    pairs = count * groups.neighbours // 2
    source = random.integers(0, count, pairs)
    target = random.integers(0, count, pairs)
    inside = random.random(pairs) < groups.inside_frac
    start = source // groups.group * groups.group
    size = np.minimum(groups.group, count - start)
    target = np.where(inside, start + random.integers(0, size), target)
    traffic = Traffic.build(source, target, random.lognormal(1, 1, pairs))
    place = random.permutation(_even(hardware, count))
    return _placed(hardware, ("bolt",) * count, traffic, random.lognormal(0, 0.5, count), place)


def _even(hardware: Hardware, executors: int) -> Ints:
    """Deal executors out like Storm: to one worker of each node in turn."""
    workers = np.arange(hardware.nodes * hardware.workers)
    slots = workers.reshape(hardware.nodes, hardware.workers).T.ravel()
    return slots[np.arange(executors) % len(slots)]


def _case(
    hardware: Hardware, names: tuple[str, ...], tuples: Floats, cpu: Floats, place: Ints
) -> Case:
    source, target = np.nonzero(tuples)
    traffic = Traffic.build(source, target, tuples[source, target])
    return _placed(hardware, names, traffic, cpu, place)


def _placed(
    hardware: Hardware, names: tuple[str, ...], traffic: Traffic, cpu: Floats, place: Ints
) -> Case:
    """Scale the CPU to what is in use."""
    count = len(names)
    components = tuple(
        Component(name, "spout" if name == "spout" else "bolt", names.count(name))
        for name in dict.fromkeys(names)
    )
    edges = tuple(Edge(a.id, b.id, "default", "fields") for a, b in pairwise(components))
    return hardware.cluster(), LoadSnapshot(
        topology="case",
        time_s=0.0,
        components=components,
        edges=edges,
        executors=tuple(f"{e}-{e}" for e in range(1, count + 1)),
        component_of=names,
        place=place,
        cpu_cores=cpu * (hardware.used_frac * hardware.cores / cpu.sum()),
        queue=np.zeros(count),
        pinned=(None,) * count,
        traffic=traffic,
    )


def crowd(executors: int) -> Case:
    """Make the graph that decisions are timed on: about 30 neighbours an executor, none too hot.

    Parameters
    ----------
    executors : int
        How many, ten on each node, as on the large clusters that Storm's users name.
    """
    # Drawn pairs that fall together are one.
    groups = Groups(executors, group=40, neighbours=34)
    return planted(Hardware(max(executors // 10, 2), 1, 0.5), 1, groups)


SMALL = Hardware(nodes=2, workers=4, used_frac=0.5)

# By name, each made of a seed.
CASES: Mapping[str, Callable[[int], Case]] = MappingProxyType(
    {
        "wordcount-comm 2x4": lambda seed: wordcount_comm(SMALL, seed),
        "wordcount-comp 2x4": lambda seed: wordcount_comp(SMALL, seed),
        "keyed 2x4": lambda seed: keyed(SMALL, seed),
    }
)
