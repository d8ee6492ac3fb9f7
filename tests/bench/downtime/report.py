"""Reports what the rounds have shown, next to the figures of the paper."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from deploy.lab.interval import paired_ratio
from deploy.lab.ledger import (
    DEGRADATION_FRACS,
    Counts,
    LedgerWindow,
    degraded_s,
    latency_ms,
    longest_gap_s,
)
from tests.bench.downtime import CONTROL, NO_LAZY_KILL, Load, Round, System, Way
from tests.bench.frame import ratio_text, table

# 004, sections 5.2.1 to 5.2.3: seconds of 600 with ten redeployments, by the share that was lost.
PAPER_REDEPLOYMENTS = 10
PAPER_S: Mapping[tuple[str, float], int] = {
    (Way.REBALANCE.value, 0.6): 279,
    (Way.REBALANCE.value, 1.0): 267,
    (Way.RESTART.value, 0.6): 155,
    (NO_LAZY_KILL.name, 0.6): 20,
    (System(Way.MOVE, 16).name, 0.6): 84,
    (System(Way.MOVE, 16).name, 1.0): 53,
}
# Beyond what the control shows: seconds at so much degradation, by executors moved at once.
GOAL_LEVELS = {1: 0.4, 16: 0.8}
GOAL_GAP_S = 0.25
GOAL_THROUGHPUT_FRAC = 0.02


@dataclass(frozen=True, slots=True)
class Shown:
    """What one system has shown at one load, over all of its rounds."""

    rounds: tuple[Round, ...]
    normal_tps: float

    @property
    def acked_10ms(self) -> list[Counts]:
        """The counts of each round, shape (seconds, 100)."""
        return [np.array(r.acked_10ms, dtype=np.int64) for r in self.rounds]

    @property
    def degraded_s(self) -> dict[float, int]:
        """Seconds by the share of the normal rate that was lost."""
        found: Counter[float] = Counter()
        for acked in self.acked_10ms:
            found.update(degraded_s(acked, self.normal_tps))
        return {frac: found[frac] for frac in DEGRADATION_FRACS}

    @property
    def longest_gap_s(self) -> float:
        """The longest time without an ack."""
        return max(map(longest_gap_s, self.acked_10ms))

    @property
    def redeployments(self) -> int:
        """How many there were."""
        return sum(len(r.redeployed_s) for r in self.rounds)

    def latency_ms(self, quantile: float) -> float | None:
        """Give a quantile of the ack latency; None if nothing was acked."""
        windows = [LedgerWindow(0, latency=Counter(dict(r.latency))) for r in self.rounds]
        found = latency_ms(windows, quantile)
        return None if np.isnan(found) else round(found, 1)

    def total(self, key: str) -> int:
        """Add up a count of the rounds."""
        return sum(getattr(r, key) for r in self.rounds)


def shown(rounds: Sequence[Round], load: str) -> dict[str, Shown]:
    """Gather the rounds of a load by system, in the order in which systems are compared.

    What is normal is the mean rate of all rounds without a migration (004, section 5.2).
    """
    of_load = sorted((r for r in rounds if r.load == load), key=lambda r: r.number)
    control = [r for r in of_load if r.system == CONTROL.name]
    seconds = [sum(second) for r in control for second in r.acked_10ms]
    normal_tps = sum(seconds) / len(seconds)
    names = dict.fromkeys(r.system for r in of_load)
    return {
        name: Shown(tuple(r for r in of_load if r.system == name), normal_tps) for name in names
    }


def throughput_ratio(one: Shown, control: Shown) -> dict[str, float] | None:
    """Compare the acks with those of the control, round by round; None if a round had none.

    With fewer than two rounds there is no interval, so `low` and `high` are missing.
    """
    acked = [[int(a.sum()) for a in each.acked_10ms] for each in (one, control)]
    if min(acked[0]) == 0:
        return None
    found = paired_ratio(*acked)
    ends = {"low": found.low, "high": found.high} if len(one.rounds) > 1 else {}
    return {key: round(value, 3) for key, value in {"ratio": found.ratio, **ends}.items()}


def report(rounds: Sequence[Round], steady_tps: float | None) -> dict[str, Any]:
    """Put the figures together, ready for JSON; what could not be taken is null.

    Sentences that fail are those that a source which replays would send again; the lab's does not.
    """
    found: dict[str, Any] = {"loads": {}}
    for load in dict.fromkeys(r.load for r in rounds):
        systems = shown(rounds, load)
        found["loads"][load] = {
            "fed_tps": steady_tps if load == Load.STEADY else None,
            "normal_tps": round(systems[CONTROL.name].normal_tps, 1),
            "systems": {name: _figures(name, systems) for name in systems},
            "goals": _goals(systems),
        }
    return found


def _figures(name: str, systems: Mapping[str, Shown]) -> dict[str, Any]:
    one = systems[name]
    return {
        "rounds": len(one.rounds),
        "redeployments": one.redeployments,
        "executors_moved": one.total("moved"),
        "not_moved": [why for r in one.rounds for why in r.refused],
        "degraded_s": {f"{frac:.0%}": seconds for frac, seconds in one.degraded_s.items()},
        "longest_gap_s": one.longest_gap_s,
        "throughput_to_control": throughput_ratio(one, systems[CONTROL.name]),
        **{key: one.total(key) for key in ("emitted", "failed", "lost", "double_acked")},
        "ack_p50_ms": one.latency_ms(0.5),
        "ack_p99_ms": one.latency_ms(0.99),
        "ack_max_ms": round(max(r.max_ms for r in one.rounds), 1),
        "restarts": one.total("restarts"),
        "load_average": [r.load_average for r in one.rounds],
        "paper": [
            {
                "degraded": f"{level:.0%}",
                "paper_s_a_redeployment": seconds / PAPER_REDEPLOYMENTS,
                "s_a_redeployment": _each(one.degraded_s[level], one.redeployments),
            }
            for (system, level), seconds in PAPER_S.items()
            if system == name
        ],
    }


def _each(seconds: int, redeployments: int) -> float | None:
    return round(seconds / redeployments, 2) if redeployments else None


def _goals(systems: Mapping[str, Shown]) -> list[dict[str, Any]]:
    """Compare with what is asked of nstorm, beyond what the control shows."""
    control, found = systems[CONTROL.name], []
    for together, level in GOAL_LEVELS.items():
        name = System(Way.MOVE, together).name
        if name not in systems:
            continue
        ours = systems[name]
        rounds = len(ours.rounds) / len(control.rounds)
        beyond_s = ours.degraded_s[level] - rounds * control.degraded_s[level]
        goals: dict[str, tuple[bool, object]] = {
            f"0 s at ≥ {level:.0%}": (beyond_s <= 0, beyond_s),
            "0 failed": (ours.total("failed") == 0, ours.total("failed")),
        }
        if together == 1:
            gap_s = ours.longest_gap_s - control.longest_gap_s
            ratio = throughput_ratio(ours, control)
            least = 1 - GOAL_THROUGHPUT_FRAC
            goals |= {
                f"no gap over {GOAL_GAP_S} s": (gap_s <= GOAL_GAP_S, round(gap_s, 2)),
                "throughput within 2 %": (bool(ratio and ratio["ratio"] >= least), ratio),
            }
        found += [
            {"system": name, "goal": goal, "met": met, "found": value}
            for goal, (met, value) in goals.items()
        ]
    return found


def as_tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make tables of each load: the figures, the paper's next to ours, the goals."""
    for load, row in found["loads"].items():
        systems = row["systems"]
        normal = f"normal are {row['normal_tps']:.0f} sentences/s"
        yield table(
            f"{load}: seconds by degradation; {normal}",
            [
                {
                    "system": name,
                    "times": figures["redeployments"],
                    "moved": figures["executors_moved"],
                    **{f"≥ {level}": seconds for level, seconds in figures["degraded_s"].items()},
                    "gap, s": figures["longest_gap_s"],
                    "throughput": ratio_text(figures["throughput_to_control"]),
                }
                for name, figures in systems.items()
            ],
        )
        shown = ("failed", "lost", "double_acked", "ack_p50_ms", "ack_p99_ms", "ack_max_ms")
        yield table(
            f"{load}: sentences and workers",
            [
                {"system": name, **{key: figures[key] for key in (*shown, "restarts")}}
                for name, figures in systems.items()
            ],
        )
        yield table(
            f"{load}: seconds a redeployment",
            [
                {
                    "system": name,
                    "degradation": f"≥ {line['degraded']}",
                    "paper (004)": line["paper_s_a_redeployment"],
                    "here": line["s_a_redeployment"],
                }
                for name, figures in systems.items()
                for line in figures["paper"]
            ],
        )
        yield table(f"{load}: goals", row["goals"])
