"""The answers of the leading controller to ``nstorm plan`` and ``nstorm explain``, in rows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from controller.config import Config
from controller.core.capacity import Spare
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import TEMPORARY, Move, Veto, Vetoes, first_of
from controller.core.distance import crossing_tps, inter_node_tps
from controller.core.fit import Fit
from controller.core.headroom import headroom
from controller.core.moved import applied
from controller.core.openable import opened_slot
from controller.core.outcomes import what_to_do
from controller.core.picture import Picture
from controller.core.times import utc
from controller.core.veto import young
from controller.core.view import View
from controller.cycle import Memory
from controller.report import TopologyReport
from controller.storm.answer_records import (
    AnswerHead,
    ExplainAnswer,
    ExplainedExecutor,
    ExplainedTarget,
    ExplainedWorker,
    PlanAnswer,
    PlanPlace,
    PlanStep,
)
from controller.storm.command_record import Command
from controller.storm.commands import answered
from controller.walk import walk
from migration.model import Slot, topology_name

MOST_STEPS = 100
MOST_CANDIDATES = 50


def of_topology(reports: Iterable[TopologyReport], name: str) -> list[TopologyReport]:
    """Choose the report of a topology, by its id or name; all reports without one."""
    return [r for r in reports if name in ("", r.topology, topology_name(r.topology))]


def plan_of(
    report: TopologyReport, made: Picture, memory: Memory, config: Config, now_s: float
) -> PlanAnswer:
    """Follow the policy from here until nothing is left, as the mode auto would.

    A search that `gather` still waits for ends the way. `now_s` is that of what was seen.
    """
    cluster, snapshot = _with_spare(made.cluster), made.snapshot
    # A slot that opens is another cluster to a search; the cycle has waited for its own.
    opens = bool({m.target for m in report.moves} - {*made.cluster.workers})
    hosts = made.view.publication.hosts
    live = replace(config, vetoes=True, excluded=config.excluded.on(hosts))
    moved_at = {
        str(executor): (at_s - now_s) / config.cycle_s
        for (topology, executor), at_s in memory.moved_s.items()
        if topology == report.topology and at_s != now_s
    }
    for name, left_s in young(made.view.publication, config, report.time_s).items():
        rests_from = (left_s - config.cooldown_s) / config.cycle_s
        moved_at[name] = max(moved_at.get(name, -math.inf), rests_from)
    lasting = _vetoes(report).without(TEMPORARY)

    def also(now: LoadSnapshot) -> Vetoes:
        return first_of(lasting, made.view.allowed.last_of(now.executors, now.place.tolist()))

    walked = list(
        walk(
            cluster,
            snapshot,
            live,
            MOST_STEPS,
            search=lambda question: question.failed if opens else None,
            memory=memory.of_policy.get(report.topology),
            also=also,
            moved_at=moved_at,
        )
    )
    ends = snapshot, walked[-1].after
    fits = [Fit.of(cluster, end, config.limits) for end in ends]
    total_tps = snapshot.traffic.total_tps or 1.0
    found: list[dict[str, Any]] = []
    each = np.arange(len(cluster.workers))
    for names, of in ((cluster.nodes, cluster.node_of), (cluster.workers, each)):
        _, cores = fits[0].by(of, len(names))
        rows: dict[int, dict[str, Any]] = {
            n: {"place": name} for n, name in enumerate(names) if cores[n]
        }
        for when, end, fit in zip(("now", "then"), ends, fits, strict=True):
            (frac, growth), tps = fit.seen_by(of, len(names)), crossing_tps(end, of[end.place])
            for n, row in rows.items():
                row[f"cpu_frac_{when}"] = float(frac[n])
                row[f"headroom_{when}"] = None if np.isnan(growth[n]) else float(growth[n])
                row[f"tps_{when}"] = tps[n] if n < len(tps) else 0.0
        found += rows.values()
    before, after = (float(inter_node_tps(cluster, end) / total_tps) for end in ends)
    fracs = [float(inter_node_tps(cluster, step.after) / total_tps) for step in walked]
    worse = sum(frac > before for frac in fracs)
    made_steps = sum(bool(step.decision.moves) for step in walked)
    now, then = (headroom(cluster, end).factor for end in ends)
    return PlanAnswer(
        **_head(report),
        steps=tuple(
            PlanStep(
                step.decision.outcome.value,
                frac,
                tuple((m.executor, m.source, m.target) for m in step.decision.moves),
                step.decision.reason,
            )
            for step, frac in zip(walked, fracs, strict=True)
        ),
        places=tuple(PlanPlace(**row) for row in found),
        more=f"the plan has more than {MOST_STEPS} steps" if walked[-1].decision.moves else "",
        detour=_detour(worse, made_steps),
        inter_node_frac=(before, after),
        headroom_factor=(now, then),
    )


def _detour(worse: int, steps: int) -> str:
    """Return in one line that a way leads through placements that are worse than today's."""
    if 2 * worse <= steps:
        return ""
    return (
        f"after {worse} of {steps} steps more crosses between nodes than today: the way gains at "
        "its end"
    )


def misfit(made: Picture, moves: tuple[Move, ...], config: Config) -> str | None:
    """Name the worker that these moves would fill beyond the limit; None if all fit.

    One that has more than that already, and gets none, may stay so.
    """
    cluster, snapshot = made.cluster, made.snapshot
    new = [Slot.parse(move.target) for move in moves if move.target not in cluster.workers]
    opened = [opened_slot(made.view, slot, config.capacity) for slot in new]
    cluster = cluster.with_opened(*(spare for spare in opened if spare is not None))
    places = {*snapshot.executors, *cluster.workers}
    gone = [name for m in moves for name in (m.executor, m.target) if name not in places]
    if gone:
        return f"the load of {gone[0]} is not known yet"
    after = applied(moves, cluster, snapshot)
    now, then = (Fit.of(cluster, one, config.limits) for one in (snapshot, after))
    overfilled = then.overfilled(now)
    return f"the loads have changed: {overfilled}" if overfilled else None


def _with_spare(cluster: Cluster) -> Cluster:
    return cluster.with_opened(cluster.spare) if isinstance(cluster.spare, Spare) else cluster


def _head(report: TopologyReport) -> dict[str, Any]:
    head = AnswerHead(
        report.topology,
        report.tick,
        utc(report.time_s),
        report.mode.value,
        report.outcome.value,
        report.reason,
        what_to_do(report.outcome),
        dict(report.picture.view.publication.hosts) if report.picture else {},
    )
    return structs.asdict(head)


def explained(reports: Iterable[TopologyReport], command: Command, config: Config) -> Command:
    """Answer ``nstorm explain`` by how a cycle ended."""
    chosen = of_topology(reports, command.topology)
    found = [explain(one, command.what, config) for one in chosen]
    what = f"executor, worker or host {command.what}" if command.what else "topology"
    answer = answered(command, [one for one in found if one is not None], what)
    dark = [f"; {r.topology} {r.outcome}: {r.reason}" for r in chosen if r.picture is None]
    return (
        answer if answer.answer else structs.replace(answer, reason=answer.reason + "".join(dark))
    )


def explain(report: TopologyReport, what: str, config: Config) -> ExplainAnswer | None:
    """Return why a topology was decided so, or of an executor, a worker or a host, why it stays.

    None if the topology has nothing of that name.
    """
    made, vetoes = report.picture, _vetoes(report)
    if made is None:
        return None if what else ExplainAnswer(**_head(report))
    cluster, snapshot, fit = made.cluster, made.snapshot, made.fit
    hosts = made.view.publication.hosts
    closed = [
        why or _reason(vetoes.workers, name)
        for why, name in zip(cluster.closed, cluster.workers, strict=True)
    ]
    workers = tuple(
        ExplainedWorker(
            name,
            cluster.nodes[cluster.node_of[w]],
            float(fit.frac[w]),
            level,
            closed[w],
        )
        for w, (name, level) in enumerate(zip(cluster.workers, fit.levels, strict=True))
    )
    executors = tuple(
        ExplainedExecutor(
            name,
            snapshot.component_of[e],
            cluster.workers[snapshot.place[e]],
            float(fit.demand[e]),
            float(snapshot.queue[e]),
            snapshot.pinned[e] or _reason(vetoes.executors, name),
        )
        for e, name in enumerate(snapshot.executors)
    )
    if what in snapshot.executors:
        e = snapshot.executors.index(what)
        candidates = _candidates(made, closed, e, config)
        return ExplainAnswer(**_head(report), executors=(executors[e],), candidates=candidates)
    if what:
        workers = tuple(
            one
            for one in workers
            for host in [hosts[one.node]]
            if what in (one.worker, one.node, host, one.worker.replace(one.node, host))
        )
        here = {one.worker for one in workers}
        executors = tuple(one for one in executors if one.worker in here)
        if not workers:
            return None
    if what:
        return ExplainAnswer(**_head(report), workers=workers, executors=executors)
    return ExplainAnswer(
        **_head(report),
        headroom=report.headroom.and_after(report.headroom_after),
        peaks=str(made.peak),
        warnings=report.warnings,
        workers=workers,
        executors=executors,
    )


def _vetoes(report: TopologyReport) -> Vetoes:
    """Give the vetoes of the cycle, or what was observed if it stopped before them."""
    if report.vetoes is None and report.picture is not None:
        return report.picture.view.allowed.vetoes
    return report.vetoes or Vetoes()


def _reason(vetoes: Mapping[str, Veto], name: str) -> str | None:
    return vetoes[name].reason if name in vetoes else None


def _candidates(
    made: Picture, closed: list[str | None], e: int, config: Config
) -> tuple[ExplainedTarget, ...]:
    """Score the moves of an executor, the best first, with what is in the way of each."""
    view = View.of(made.cluster, made.snapshot, config.limits)
    moves = view.score(np.array([e]), np.arange(len(closed)))
    least = view.threshold_tps
    found = []
    for row in np.argsort(-moves.score, kind="stable")[:MOST_CANDIDATES]:
        w, score = int(moves.workers[row]), float(moves.score[row])
        why_not = closed[w] or view.why_not(e, w)
        if why_not is None and score <= least:
            why_not = f"its gain is not above the threshold, {config.limits.gain(least)}"
        name, asc_tps = made.cluster.workers[w], float(moves.asc_tps[row])
        found.append(ExplainedTarget(name, asc_tps, score, why_not))
    return tuple(found)
