"""What moves cost by each way: who is down, from when to when."""

import numpy as np
import pytest

from deploy.sim.restart_cost import Act, Change, Delays, SimulatedMove, System, changes

NODE_OF = (0, 0, 1, 1)
USUAL = Delays()
SHIFT = SimulatedMove(executor=7, source=0, target=2)


def made(system: System, delays: Delays = USUAL, seed: int = 1) -> list[Change]:
    random = np.random.default_rng(seed)
    return changes(system, [SHIFT], 100.0, delays=delays, node_of=NODE_OF, random=random)


def test_a_rebalance_stops_everybody_and_starts_everybody() -> None:
    found = made(System.STORM)
    assert [c.who for c in found if c.act is Act.KILL] == [0, 1, 2, 3]
    assert {c.at_s for c in found if c.act is Act.START} == {130.0}
    assert found[-1] == Change(130.0, Act.DONE, 7)


def test_storm_star_restarts_the_two_ends_alone() -> None:
    found = made(System.STORM_STAR)
    down = {c.who: c.at_s for c in found if c.act is Act.KILL}
    up = {c.who: c.at_s for c in found if c.act is Act.START}
    assert set(down) == {0, 2}
    for worker, at_s in down.items():
        assert 100 <= at_s <= 103
        assert up[worker] == pytest.approx(at_s + 10)


def gap_s(found: list[Change]) -> float:
    stops = [c.at_s for c in found if c.act is Act.STOP]
    starts = [c.at_s for c in found if c.act is Act.RUN]
    return starts[0] - stops[0] if stops else 0.0


def test_n_storm_has_a_gap_when_the_source_reads_the_plan_first() -> None:
    gaps = [gap_s(made(System.N_STORM, seed=seed)) for seed in range(300)]
    assert max(gaps) <= 13
    # About half of the moves have none; the mean of both, by the uniform polls, is 1.7 s.
    assert 0.3 < np.mean(np.array(gaps) == 0) < 0.7
    assert np.mean(gaps) == pytest.approx(1.72, abs=0.5)


def test_lazy_kill_shortens_the_gap_by_as_much() -> None:
    for seed in range(30):
        plain, lazy = made(System.N_STORM, seed=seed), made(System.N_STORM, Delays(kill_s=2), seed)
        assert gap_s(lazy) == pytest.approx(max(gap_s(plain) - 2, 0), abs=1e-9)


def test_changes_come_in_the_order_of_time() -> None:
    for system in (System.STORM, System.STORM_STAR, System.N_STORM):
        times = [change.at_s for change in made(system)]
        assert times == sorted(times)
