"""Who is redeployed, what is kept of an interrupted run, and what rounds show."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from controller.errors import CommandError
from deploy.lab import LabError
from deploy.lab.cluster import Lab
from migration.model import ExecutorId, Slot
from tests.bench.downtime import CONTROL, Asked, Load, Round, System, Way, run
from tests.bench.downtime.kept import Kept
from tests.bench.downtime.report import as_tables, report
from tests.bench.downtime.run import redeploy

ASKED = Asked(60, 30, (1, 16), None, (Load.STEADY,), 2, None)
SLOTS = [Slot(f"n{i // 2}", 6700 + i % 2) for i in range(4)]


def executors(count: int) -> dict[ExecutorId, Slot]:
    return {ExecutorId(task, task): SLOTS[task % 4] for task in range(1, count + 1)}


@pytest.mark.parametrize("together", [1, 4, 8, 16])
def test_so_many_go_elsewhere_and_workers_stay_even(together: int) -> None:
    slot_of = executors(20)
    for seed in range(50):
        targets = redeploy(slot_of, sorted(slot_of), together, random.Random(seed))
        assert len(targets) == together
        assert all(slot_of[executor] != slot for executor, slot in targets.items())
        held = Counter({**slot_of, **targets}.values())
        assert max(held.values()) - min(held.values()) <= 2


def test_the_last_of_a_worker_stays_and_only_free_ones_go() -> None:
    slot_of = executors(5)
    assert redeploy(slot_of, [ExecutorId(2, 2)], 3, random.Random(1)) == {}
    # Tasks 1 and 5 share a worker, so the second of them has to stay.
    targets = redeploy(slot_of, [ExecutorId(1, 1), ExecutorId(5, 5)], 3, random.Random(1))
    assert len(targets) == 1
    together = dict.fromkeys(slot_of, SLOTS[0])
    assert redeploy(together, sorted(together), 1, random.Random(1)) == {}


def test_systems_come_to_and_fro() -> None:
    names = [system.name for system in ASKED.systems(1)]
    assert names[0] == CONTROL.name
    assert names[-2:] == ["nstorm, M = 1", "nstorm, M = 16"]
    assert len(set(names)) == 7
    assert [system.name for system in ASKED.systems(2)] == names[::-1]


def a_round(system: System, acked: list[int], number: int = 1) -> Round:
    seconds = [[count] + [1] * 99 for count in acked]
    return Round(
        load=Load.STEADY.value,
        number=number,
        system=system.name,
        redeployed_s=[] if system is CONTROL else [5.0, 35.0],
        moved=2,
        refused=[],
        acked_10ms=seconds,
        latency=[(111, 99), (270, 1)],
        max_ms=12.0,
        emitted=sum(acked),
        failed=3,
        lost=2,
        double_acked=0,
        restarts=1,
        load_average=2.0,
    )


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "bench" / "run.jsonl"
    kept = Kept(file, ASKED, resume=False)
    kept.add(a_round(CONTROL, [1, 2]))
    kept.set_steady(600.0)
    with file.open("a") as stream:
        stream.write('{"load": "ste')  # killed in mid-write
    again = Kept(file, ASKED, resume=True)
    assert again.rounds[0].acked_10ms == kept.rounds[0].acked_10ms
    assert again.steady_tps == 600.0
    assert again.has("steady", 1, CONTROL.name)
    assert not again.has("steady", 2, CONTROL.name)
    with pytest.raises(CommandError, match=r"another set-up.*'duration_s': 60"):
        Kept(file, replace(ASKED, duration_s=61), resume=True)
    with pytest.raises(CommandError, match=r"another set-up.*'own_cores': None"):
        Kept(file, replace(ASKED, own_cores=0.9), resume=True)
    with pytest.raises(CommandError, match="go on with them by --resume, or remove it"):
        Kept(file, ASKED, resume=False)
    with pytest.raises(CommandError, match="no finished round"):
        Kept(tmp_path / "none.jsonl", ASKED, resume=True)


def test_nodes_get_the_cores_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, **asked: object) -> Lab:
        raise LabError(f"{asked['cores']} cores, {asked['link']}")

    monkeypatch.setattr(run, "plan_lab", refuse)
    asked = replace(ASKED, own_cores=0.9, link="20mbit")
    kept = Kept(tmp_path / "run.jsonl", asked, resume=False)
    with pytest.raises(LabError, match=r"0\.9 cores, 20mbit"):
        run.bench(asked, kept, print)


def test_seconds_count_against_the_mean_without_a_migration() -> None:
    one, many, stock = System(Way.MOVE, 1), System(Way.MOVE, 16), System(Way.REBALANCE)
    dead = a_round(stock, [901] * 4)
    dead.acked_10ms[1:3] = [[0] * 100, [0] * 100]
    rounds = [
        a_round(CONTROL, [901, 801, 1001, 901]),
        replace(a_round(one, [901, 401, 901, 901]), failed=0),
        a_round(many, [901] * 4),
        dead,
    ]
    found = report(rounds, 1000.0)
    row = found["loads"]["steady"]
    assert row["normal_tps"] == 1000.0
    assert row["systems"][stock.name]["degraded_s"] == {
        "20%": 2,
        "40%": 2,
        "60%": 2,
        "80%": 2,
        "100%": 2,
    }
    assert row["systems"][stock.name]["longest_gap_s"] == 2.0
    assert row["systems"][stock.name]["throughput_to_control"] == {"ratio": 0.5}
    assert row["systems"][stock.name]["paper"][0]["s_a_redeployment"] == 1.0
    assert row["systems"][one.name]["degraded_s"]["40%"] == 1
    assert row["systems"][one.name]["ack_p50_ms"] == 1.0
    met = {(goal["system"], goal["goal"]): goal["met"] for goal in row["goals"]}
    assert met == {
        (one.name, "0 s at ≥ 40%"): False,
        (one.name, "0 failed"): True,
        (one.name, "no gap over 0.25 s"): True,
        (one.name, "throughput within 2 %"): False,
        (many.name, "0 s at ≥ 80%"): True,
        (many.name, "0 failed"): False,
    }
    assert len(list(as_tables(found))) == 4


def test_what_was_not_acked_at_all_has_no_ratio() -> None:
    nothing = replace(a_round(System(Way.REBALANCE), [1]), acked_10ms=[[0] * 100], latency=[])
    row = report([a_round(CONTROL, [901]), nothing], None)["loads"]["steady"]
    figures = row["systems"][Way.REBALANCE.value]
    assert figures["throughput_to_control"] is None
    assert figures["ack_p99_ms"] is None
