"""The demo's WordCount leaves Storm's even placement, whatever the words.

Two spouts, six splits, eight counts and two ackers on two nodes of two workers. The even placement
is a saddle where no executor gains between nodes. The traffic follows the placement.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from controller.core.choose import decide
from controller.core.cluster import Cluster, Floats, LoadSnapshot, Traffic
from controller.core.decision import Decision, Outcome, Veto, Vetoes, first_of
from controller.core.distance import inter_node_tps
from controller.core.excluded import Excluded
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.core.policy import Case, Policy, Searching, Stateless
from controller.core.veto import placement_vetoes
from controller.policies.gather.policy import Gather
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from controller.policies.otd import otd
from migration.model import Edge

# Task ids follow the components' names, and the even scheduler deals them out like cards.
COMPONENTS = ("__acker",) * 2 + ("count",) * 8 + ("split",) * 6 + ("spout",) * 2
ACKERS, COUNTS, SPLITS, SPOUTS = range(2), range(2, 10), range(10, 16), range(16, 18)
EDGES = (
    Edge("spout", "split", "default", "shuffle"),
    Edge("split", "count", "default", "fields"),
)
SLOTS = ("n0:6700", "n1:6700", "n0:6701", "n1:6701")
CLUSTER = Cluster.build(["n0", "n1"], [(slot, slot[:2], 1.0) for slot in SLOTS])
SENTENCES_TPS, WORDS, VOCABULARY, SENTENCES = 500.0, 10, 2000, 4096
SEEDS = range(20)

Shares = NDArray[np.float64]


def word_shares(seed: int) -> Shares:
    """Draw what share of each spout's words every count gets: (spout, count), Zipf words."""
    random = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, VOCABULARY + 1)
    count_of_word = random.integers(0, len(COUNTS), VOCABULARY)
    drawn = [random.multinomial(SENTENCES * WORDS, zipf / zipf.sum()) for _ in SPOUTS]
    return np.array([np.bincount(count_of_word, n, len(COUNTS)) / n.sum() for n in drawn])


@dataclass(frozen=True)
class WordCount:
    """The topology as a traffic model.

    With `prefers_local`, a spout feeds the splits of its worker, else of its node, else all.
    Storm's load-aware shuffle does so while the queues are short.
    """

    shares: Shares
    prefers_local: bool
    cores_per_tps: float = 1.0

    def split_of(self, spout: int, place: NDArray[np.int64]) -> list[int]:
        node = CLUSTER.node_of[place]
        near = [s for s in SPLITS if place[s] == place[spout]]
        near = near or [s for s in SPLITS if node[s] == node[spout]]
        return near if self.prefers_local and near else list(SPLITS)

    def traffic(self, place: NDArray[np.int64]) -> Traffic:
        rows: list[tuple[int, int, float]] = []
        for i, spout in enumerate(SPOUTS):
            splits = self.split_of(spout, place)
            share = SENTENCES_TPS / len(splits)
            for acker in ACKERS:  # a tree is begun and completed at the acker of its root id
                rows += [(spout, acker, SENTENCES_TPS / 2), (acker, spout, SENTENCES_TPS / 2)]
            for split in splits:
                rows.append((spout, split, share))
                rows += [(split, acker, share / 2) for acker in ACKERS]
                for k, count in enumerate(COUNTS):
                    words = share * WORDS * self.shares[i, k]
                    rows.append((split, count, words))
                    rows += [(count, acker, words / 2) for acker in ACKERS]
        table = np.array(rows)
        ends = table[:, :2].astype(np.int64)
        return Traffic.build(ends[:, 0], ends[:, 1], table[:, 2])

    def snapshot(self, place: NDArray[np.int64]) -> LoadSnapshot:
        traffic = self.traffic(place)
        count = len(COMPONENTS)
        tuples: Floats = np.bincount(traffic.source, traffic.tps, count).astype(float)
        tuples += np.bincount(traffic.target, traffic.tps, count)
        return LoadSnapshot(
            topology="wc",
            time_s=0.0,
            components=(),
            edges=EDGES,
            executors=tuple(f"{i}-{i}" for i in range(1, count + 1)),
            component_of=COMPONENTS,
            place=place,
            cpu_cores=tuples * self.cores_per_tps,
            queue=np.zeros(count),
            pinned=tuple(None if c in {"split", "count"} else c for c in COMPONENTS),
            traffic=traffic,
        )


def even() -> NDArray[np.int64]:
    slots = [CLUSTER.workers.index(SLOTS[i % 4]) for i in range(len(COMPONENTS))]
    return np.array(slots, dtype=np.int64)


def at_40_percent(shares: Shares, *, prefers_local: bool) -> WordCount:
    """Saturation is where the busiest worker of the even placement has all its CPU in use."""
    plain = WordCount(shares, prefers_local)
    busiest = Fit.of(CLUSTER, plain.snapshot(even())).used.max()
    return replace(plain, cores_per_tps=0.4 / busiest)


def ratio(snapshot: LoadSnapshot) -> float:
    return inter_node_tps(CLUSTER, snapshot) / snapshot.traffic.total_tps


GREEDY = Stateless(greedy)


def run(
    model: WordCount, most: int = 60, policy: Policy[Any] = GREEDY
) -> tuple[list[LoadSnapshot], Decision]:
    path, memory = [model.snapshot(even())], None
    for _ in range(most):
        vetoes = placement_vetoes(CLUSTER, path[-1], Excluded())
        case = Case(CLUSTER, path[-1], Limits())
        decided = decide(policy, case, vetoes, memory)
        decision, memory = decided.decision, decided.memory
        if not decision.moves:
            return path, decision
        place = path[-1].place.copy()
        executor = path[-1].executors.index(decision.moves[0].executor)
        place[executor] = CLUSTER.workers.index(decision.moves[0].target)
        path.append(model.snapshot(place))
    raise AssertionError(f"still moving after {most} moves")


def test_ackers_handle_about_half_of_all_tuples() -> None:
    traffic = at_40_percent(word_shares(0), prefers_local=False).traffic(even())
    at_acker = np.isin(traffic.source, ACKERS) | np.isin(traffic.target, ACKERS)
    assert traffic.tps[at_acker].sum() / traffic.total_tps == pytest.approx(0.5, abs=0.05)


def test_even_placement_leaves_little_for_moves_between_nodes() -> None:
    model = at_40_percent(word_shares(0), prefers_local=False)
    start = model.snapshot(even())
    assert ratio(start) == pytest.approx(0.5)
    decision = otd(CLUSTER, start, Limits())
    gain = decision.moves[0].asc_tps if decision.moves else 0.0
    assert gain < 0.06 * start.traffic.total_tps


@pytest.mark.parametrize("prefers_local", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_it_leaves_the_saddle(seed: int, prefers_local: bool) -> None:
    model = at_40_percent(word_shares(seed), prefers_local=prefers_local)
    path, end = run(model)
    if (seed, prefers_local) == (6, False):
        # Here no single move gains any more at 0.44; a search knows better.
        assert ratio(path[-1]) > 0.4
        path, end = run(model, policy=Searching(Gather(TargetOptions())))
    assert len(path) > 5
    assert ratio(path[-1]) == pytest.approx(0.3, abs=0.05)
    assert Fit.of(CLUSTER, path[-1]).used.max() <= 0.85 + 1e-9
    assert end.outcome in {Outcome.NOTHING_TO_GAIN, Outcome.BELOW_THRESHOLD}


class Noisy:
    """What is measured: counts over two seconds, CPU that jitters by a tenth, both smoothed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tps: NDArray[np.float64] | None = None
        self.cpu_cores: NDArray[np.float64] | None = None

    def measure(self, true: LoadSnapshot) -> LoadSnapshot:
        tps = np.zeros((len(COMPONENTS), len(COMPONENTS)))
        tps[true.traffic.source, true.traffic.target] = true.traffic.tps
        tps = self.random.poisson(tps * 2) / 2
        cpu = true.cpu_cores * self.random.lognormal(0, 0.1, len(COMPONENTS))
        self.tps = tps if self.tps is None else 0.3 * tps + 0.7 * self.tps
        self.cpu_cores = cpu if self.cpu_cores is None else 0.3 * cpu + 0.7 * self.cpu_cores
        source, target = np.nonzero(self.tps)
        traffic = Traffic.build(source, target, self.tps[source, target])
        return replace(true, cpu_cores=self.cpu_cores, traffic=traffic)


@pytest.mark.parametrize("prefers_local", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_noise_does_not_keep_it_moving(seed: int, prefers_local: bool) -> None:
    """200 cycles of 2 s, with the cool-down of 60 s."""
    model, noisy = at_40_percent(word_shares(seed), prefers_local=prefers_local), Noisy(seed)
    place = even()
    rested_at: dict[str, int] = {}
    moved_at: list[int] = []
    for cycle in range(200):
        seen = noisy.measure(model.snapshot(place))
        resting = {
            e: Veto(Outcome.COOLDOWN, "rests") for e, at in rested_at.items() if cycle - at < 30
        }
        vetoes = first_of(Vetoes(resting), placement_vetoes(CLUSTER, seen, Excluded()))
        case = Case(CLUSTER, seen, Limits())
        decided = decide(Stateless(greedy), case, vetoes)
        for move in decided.decision.moves:
            moved_at.append(cycle)
            rested_at[move.executor] = cycle
            place = place.copy()
            place[seen.executors.index(move.executor)] = CLUSTER.workers.index(move.target)
    assert ratio(model.snapshot(place)) == pytest.approx(0.3, abs=0.05)
    assert sum(at >= 100 for at in moved_at) <= 3
