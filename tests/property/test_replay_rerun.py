"""Ticks that a sweep passes over are those at which the policy, if asked, would move nothing."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from messages import replace

from controller.config import Config, build
from controller.core.classify import Limits
from controller.replay.recording import PlacementChange, Span
from controller.replay.rerun.pair_hops import OF_THE_DEMO
from controller.replay.rerun.run import Rerun
from controller.replay.rerun.series import Series
from migration.model import Edge
from tests.property.test_core_policies import World
from tests.property.test_core_target import limits, worlds

TICKS, TICK_S = 12, 5.0
SCALES = (1.0, 1.0, 1.0, 1e-9, 1e7)


def recorded(world: World, seed: int, noise: float) -> Span:
    """Let the load of a cluster jitter; some pairs fall silent, and Storm moves an executor."""
    cluster, first = world
    rng, count = np.random.default_rng(seed), len(first.place)
    fed = Edge("a", first.component_of[0], "default", "SHUFFLE")
    first = replace(first, edges=(fed,) if seed % 2 else ())
    tps = first.traffic.tps * SCALES[seed % len(SCALES)]
    tps = tps * rng.uniform(1 - noise, 1 + noise, (TICKS, len(first.traffic.tps)))
    tps[rng.random(tps.shape) < noise / 4] = 0.0
    cores = first.cpu_cores * rng.uniform(1 - noise, 1 + noise, (TICKS, count))
    shift = PlacementChange(
        7, int(rng.integers(count)), int(rng.integers(len(cluster.workers))), own=False
    )
    return Span(
        cluster=cluster,
        hosts={node: node for node in cluster.nodes},
        first=first,
        place=first.place,
        time_s=1.7e9 + TICK_S * np.arange(TICKS),
        span_s=np.full(TICKS, TICK_S),
        cpu_cores=cores.astype(np.float32),
        traffic_tps=tps.astype(np.float32),
        source=first.traffic.source,
        target=first.traffic.target,
        held=rng.random(TICKS) < 0.1,
        shifts=(shift,) if seed % 3 == 0 else (),
    )


def gone(config: Config, spans: Sequence[Span], *, explain: bool) -> Series:
    run = Rerun(config, cost=OF_THE_DEMO, explain=explain)
    for span in spans:
        run.take(span)
    return run.series()


def config(
    policy: str, rules: Limits, gain_tps: float | None, cooldown_s: float, host: str
) -> Config:
    return replace(
        build({"policy": policy, "excluded.hosts": [host]}),
        limits=replace(rules, low_frac=0.3, gain_tps=gain_tps),
        max_moves=rules.max_moves,
        cooldown_s=cooldown_s,
        ewma=0.3 if cooldown_s else 1.0,
    )


configs = st.builds(
    config,
    st.sampled_from(["gather", "otd"]),
    limits,
    st.sampled_from([None, None, None, 0.0, 3.0]),
    st.sampled_from([0.0, 12.0, 300.0]),
    st.sampled_from(["n1", "no host", "no host"]),
)


@given(worlds(), configs, st.sampled_from([0.0, 0.2, 1.0]), st.integers(0, 2**32 - 1))
def test_nothing_that_would_move_is_passed_over(
    world: World, config: Config, noise: float, seed: int
) -> None:
    span = recorded(world, seed, noise)
    cut = float(span.time_s[5])
    spans = [span.within(0, cut), span.within(np.nextafter(cut, np.inf), np.inf)]
    asked, passed = (gone(config, spans, explain=explain) for explain in (True, False))
    assert passed.moves == asked.moves
    for name in ("inter_node_tps", "inter_worker_tps", "total_tps", "max_load_frac", "overload_s"):
        assert getattr(passed, name).tolist() == getattr(asked, name).tolist(), name
    assert ((passed.outcome < 0) == (asked.outcome < 0)).all()
