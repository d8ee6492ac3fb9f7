"""Blocks before a run of moves against blocks after it."""

from typing import Any

import numpy as np
import pytest

from controller.core.blocks import Block
from controller.core.effect import MOST_BLOCKS, Effect, Verdict, judged
from controller.journal.record import decode, encode


def blocks(
    count: int = MOST_BLOCKS, *, noise: float = 0.02, seed: int = 1, **means: Any
) -> list[Block]:
    """Make blocks around means; of a number that is None nothing is known."""
    random = np.random.default_rng(seed)
    known = {
        "cores": 2.0,
        "input_tps": 1000.0,
        "acked_tps": 1000.0,
        "failed_tps": 0.0,
        "latency_p50_ms": 10.0,
        "latency_p99_ms": 40.0,
    } | means
    rows = []
    for i in range(count):
        row = {
            name: None if mean is None else mean * (1 + noise * random.standard_normal())
            for name, mean in known.items()
        }
        if row["acked_tps"] is not None and "acked_tps" not in means:
            row["acked_tps"] = row["input_tps"]
        rows.append(Block(10.0 * i, **row))  # type: ignore[arg-type]
    return rows


def effect(before: dict[str, Any] | None = None, **after: Any) -> Effect:
    return judged(blocks(**(before or {})), blocks(seed=2, **after))


def test_less_cpu_for_each_input_tuple_is_better() -> None:
    found = effect(cores=1.76)
    assert found.verdict is Verdict.BETTER
    cpu, *others = found.sentence.split("; ")
    assert cpu.startswith("CPU for each input tuple −1") and "± 1" in cpu
    assert others[0].startswith("p50 ") and others[1].startswith("p99 ")
    assert others[2] == "no fails"
    change = found.changes["cpu_s_per_input"]
    assert change.before == pytest.approx(0.002, rel=0.02)
    assert change.sign == -1


@pytest.mark.parametrize(
    "after",
    [
        {"cores": 2.3},
        {"acked_tps": 900.0},
        {"failed_tps": 5.0},
        {"latency_p50_ms": 12.0},
        {"latency_p99_ms": 60.0},
        {"cores": 1.5, "latency_p99_ms": 60.0},
    ],
)
def test_any_change_for_the_worse_is_worse(after: dict[str, Any]) -> None:
    assert effect(**after).verdict is Verdict.WORSE


def test_tuples_that_fail_are_named_as_a_share_of_the_input() -> None:
    assert "fails 0.00% → 0.5" in effect(failed_tps=5.0).sentence
    assert "acks for each input tuple −9.7 % ± " in effect(acked_tps=900.0).sentence
    assert effect({"failed_tps": 5.0}).verdict is Verdict.BETTER


def test_what_may_be_chance_is_no_difference() -> None:
    seen = [
        judged(blocks(seed=2 * s, noise=0.2), blocks(seed=2 * s + 1, noise=0.2)).verdict
        for s in range(100)
    ]
    assert seen.count(Verdict.SAME) > 75, "four numbers, each with 5 % by chance"
    exact = judged(blocks(noise=0), blocks(noise=0, cores=2.019))
    assert exact.verdict is Verdict.SAME, "below a hundredth"
    assert judged(blocks(noise=0), blocks(noise=0, cores=2.021)).verdict is Verdict.WORSE
    noisy = effect({"noise": 0.5, "cores": 2.0}, cores=1.9, noise=0.5)
    assert noisy.changes["cpu_s_per_input"].sign == 0


def test_the_change_of_the_input_is_taken_out() -> None:
    """A fifth more tuples, and a fifth more CPU and acks with them."""
    found = effect(input_tps=1200.0, cores=2.4, noise=0.001)
    assert found.changes["input_tps"].sign == 1
    assert found.changes["cpu_s_per_input"].sign == 0
    assert found.changes["acked_per_input"].sign == 0


def test_a_large_change_of_the_input_lets_nothing_be_known() -> None:
    for after_tps in (1500.0, 500.0):
        found = effect(input_tps=after_tps, cores=0.5)
        assert found.verdict is Verdict.UNKNOWN
        assert found.sentence.startswith("the input has changed from ")
        assert "CPU for each input tuple" in found.sentence


def test_without_acks_it_is_never_a_gain() -> None:
    none = dict.fromkeys(("acked_tps", "failed_tps", "latency_p50_ms", "latency_p99_ms"))
    found = effect(none, cores=1.0, **none)
    assert found.verdict is Verdict.UNKNOWN
    assert found.sentence.startswith("no acks of the spouts are known; CPU for each input tuple −")
    half = effect(cores=1.0, **none)
    assert half.verdict is Verdict.UNKNOWN, "they were known before alone"


def test_a_latency_that_is_not_known_is_not_compared() -> None:
    found = effect({"latency_p99_ms": None}, cores=1.5, latency_p99_ms=None)
    assert found.verdict is Verdict.BETTER
    assert "latency_p99_ms" not in found.changes and "p99" not in found.sentence


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (0, 30, "measured for 0 s before the moves, of 60 s at least"),
        (5, 30, "measured for 50 s before the moves, of 60 s at least"),
        (30, 5, "measured for 50 s after the moves, of 60 s at least"),
    ],
)
def test_too_few_blocks_show_nothing(before: int, after: int, why: str) -> None:
    found = judged(blocks(before), blocks(after, cores=1.0))
    assert (found.verdict, found.sentence.split("; ")[0]) == (Verdict.UNKNOWN, why)


def test_without_input_nothing_is_known() -> None:
    found = effect({"input_tps": 0.0}, input_tps=0.0)
    assert (found.verdict, found.sentence.split("; ")[0]) == (
        Verdict.UNKNOWN,
        "the spouts emit nothing",
    )


def test_it_survives_the_journal() -> None:
    found = effect(cores=1.5)
    assert decode(Effect, encode(found)) == found
