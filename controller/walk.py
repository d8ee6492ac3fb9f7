"""Follows a policy on a snapshot whose traffic stands still."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from msgspec.structs import asdict

from controller.config import Config
from controller.core.choose import decide, decide_in_file
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Outcome, Vetoes, first_of
from controller.core.distance import inter_node_tps
from controller.core.fit import Fit
from controller.core.headroom import headroom
from controller.core.moved import applied
from controller.core.policy import Case, Decided, Search, Searching, search_inline
from controller.core.veto import cooldown, exclusions, placement_vetoes
from controller.policies.registry import policy
from migration.model import topology_name


@dataclass(frozen=True, slots=True)
class WalkStep:
    """A decision, and the snapshot as it is after its moves."""

    decision: Decision
    after: LoadSnapshot


def walk(
    cluster: Cluster,
    snapshot: LoadSnapshot,
    config: Config,
    steps: int,
    *,
    search: Search = search_inline,
    memory: Any = None,
    also: Callable[[LoadSnapshot], Vetoes] = lambda now: Vetoes(),
    moved_at: Mapping[str, float] = MappingProxyType({}),
) -> Iterator[WalkStep]:
    """Decide and move, until nothing moves; the last step may be without a move.

    The vetoes of the live run count if the configuration wants them; a step takes a cycle then.
    `search` answers what the policy asks, and `memory` is what it remembers. `also` gives more
    vetoes, and `moved_at` the executors that rest, with the step, below 0, before which they moved.
    """
    chosen = Searching(policy(config.policy, config.options), search)
    limits = replace(config.limits, max_moves=config.max_moves)
    rests = dict(moved_at)

    def decided(step: int, now: LoadSnapshot) -> Decided[Any]:
        name, case = topology_name(now.topology), Case(cluster, now, limits, cycle_s=config.cycle_s)
        if config.excluded.has_topology(now.topology, name):
            reason = f"topology {name} is excluded"
            return Decided(Decision(Outcome.EXCLUDED, reason), memory)
        if not config.vetoes:
            vetoes = exclusions(cluster, now, config.excluded)
            return decide(chosen, case, vetoes, memory)
        left_s = {
            executor: config.cooldown_s - (step - at) * config.cycle_s
            for executor, at in rests.items()
        }
        there = placement_vetoes(cluster, now, config.excluded)
        vetoes = first_of(cooldown(left_s), also(now), there)
        return decide_in_file(chosen, case, vetoes, memory)

    for step in range(steps):
        found = decided(step, snapshot)
        decision, memory = found.decision, found.memory
        rests |= {move.executor: step for move in decision.moves}
        snapshot = applied(decision.moves, cluster, snapshot)
        yield WalkStep(decision, snapshot)
        if not decision.moves:
            return


def as_document(cluster: Cluster, steps: list[WalkStep], config: Config) -> dict[str, Any]:
    """Put a walk into the stable output format: policy, steps, placement after the last step."""
    last = steps[-1].after
    workers = [cluster.workers[w] for w in last.place]
    return {
        "policy": config.policy,
        "steps": [_step(cluster, step, config) for step in steps],
        "placement": dict(zip(last.executors, workers, strict=True)),
    }


def _step(cluster: Cluster, step: WalkStep, config: Config) -> dict[str, Any]:
    fit = Fit.of(cluster, step.after, config.limits)
    return {
        "outcome": step.decision.outcome.value,
        "reason": step.decision.reason,
        "warnings": list(step.decision.warnings),
        "moves": [move.as_row() for move in step.decision.moves],
        "inter_node_traffic": inter_node_tps(cluster, step.after),
        "total_traffic": step.after.traffic.total_tps,
        "max_worker_cpu": float(fit.frac.max()),
        "headroom": asdict(headroom(cluster, step.after)),
    }
