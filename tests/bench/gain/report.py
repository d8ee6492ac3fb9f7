"""Reports what finished rounds have shown."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from deploy.lab.pairing import COMPARED, compared, known, verdict
from tests.bench.frame import ratio_text, table
from tests.bench.gain.rounds import Rounds

# Of a cycle, as in paper 004's figures of OTD.
_CYCLE = (
    "inter_node_tuple_frac",
    "worker_cores_mean",
    "worker_cores_max",
    "acked_tps",
    "ack_p50_ms",
    "ack_p99_ms",
)


def report(rounds: Rounds) -> dict[str, Any]:
    """Put all finished rounds together.

    Returns
    -------
    dict
        By case, ready for JSON: the tuples of its labs, and by policy both placements and what was
        found.
    """
    found: dict[str, Any] = {}
    for row in rounds.rows:
        case, policy = row["case"], row["policy"]
        place = found.setdefault(case, {"tuples": rounds.tuples(case), "policies": {}})
        if policy and policy not in place["policies"]:
            place["policies"][policy] = _policy(rounds, case, policy)
    return found


def _policy(rounds: Rounds, case: str, policy: str) -> dict[str, Any]:
    target, pairs = rounds.target(case, policy), rounds.pairs(case, policy)
    assert target is not None, "a target is written before anything else"
    loads = rounds.load_averages(case, policy)
    if pairs:
        said = verdict(pairs)
    elif target.new == target.storm:
        said = ["it leaves Storm's placement as it is"]
    else:
        said = ["no round is finished yet"]
    return {
        "storm_placement": target.storm,
        "new_placement": target.new,
        "moves": len(target.steps),
        "ended_by": target.reason,
        "pairs": len(pairs),
        "within_3_percent": known(pairs),
        "compared": compared(pairs),
        "verdict": said,
        "load_average": {"lowest": min(loads), "highest": max(loads)} if loads else None,
        "cycles": rounds.cycles(case, policy),
    }


def as_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """Make tables for people."""
    for case, row in found.items():
        policies = row["policies"]
        of = "of the policy's placement, as times Storm's"
        counts = [
            {of: name, **{policy: found[name] for policy, found in policies.items()}}
            for name in ("moves", "pairs")
        ]
        ratios = [
            {of: figure, **{p: _ratio(found["compared"][figure]) for p, found in policies.items()}}
            for figure in COMPARED
        ]
        yield table(case, counts + ratios)
        for name, policy in policies.items():
            if policy["cycles"]:
                yield table(f"{case}, {name}: after each move", [*map(_cycle, policy["cycles"])])


def _ratio(row: Mapping[str, float | None] | None) -> str:
    if row is None:
        return "not taken"
    if row["ratio"] is None:  # nothing is no multiple
        return f"{row['storm']:.4g} and {row['new']:.4g}"
    return ratio_text(row)


def _cycle(cycle: Mapping[str, Any]) -> dict[str, str]:
    figures = {figure: cycle[figure] for figure in _CYCLE}
    cells = {name: "not taken" if of is None else f"{of:.4g}" for name, of in figures.items()}
    return {"move": cycle["move"] or "Storm's placement", **cells}
