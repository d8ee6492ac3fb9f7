"""Watches each topology, and judges each run of moves while its effect is measured."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from msgspec import Struct, structs

from controller.core.blocks import (
    BLOCK_S,
    Block,
    LoadSeen,
    Part,
    part_between,
    same_jvms,
    spout_tasks,
)
from controller.core.effect import MOST_BLOCKS, Effect, Verdict, judged
from controller.core.topology import TopologyView
from migration.model import ExecutorId

# Classes are loaded, code is compiled and queues are worked off for so long after a move.
WARM_S = 30.0
# How many effects of a topology are remembered.
_REMEMBERED = 8


class Run(Struct, frozen=True):
    """Moves of a topology that begin soon after each other."""

    moves: tuple[str, ...]
    begun_s: float  # Unix seconds
    last_begun_s: float  # monotonic
    before: tuple[Block, ...]
    ended_s: float | None = None  # Unix seconds; None while moves are under way
    calm_s: float = 0.0  # since when nothing moves, monotonic


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """What is remembered of a topology."""

    looked_s: float = 0.0  # monotonic
    under_way: frozenset[str] = frozenset()  # ids of moves
    part: Part | None = None  # the block that has begun
    blocks: tuple[Block, ...] = ()  # since the run has ended, or before any
    run: Run | None = None  # None once its effect is final
    effects: tuple[Effect, ...] = ()  # the oldest first; the last may change


@dataclass(frozen=True, slots=True)
class MovesSeen:
    """What of a topology moves at one moment."""

    under_way: frozenset[str]  # ids
    has_ended: bool  # some have ended since the last look

    @classmethod
    def of(cls, view: TopologyView, rests: Iterable[tuple[str, ExecutorId, float]]) -> "MovesSeen":
        ids = frozenset(entry.id for entry in view.plan.entries)
        return cls(ids, any(topology == view.id for topology, _, _ in rests))


def watch_each(
    watches: Mapping[str, Watch],
    views: Iterable[TopologyView],
    before: Mapping[str, LoadSeen],
    after: Mapping[str, LoadSeen],
    rests: tuple[tuple[str, ExecutorId, float], ...],
    *,
    cooldown_s: float,
    time_s: float,
) -> dict[str, Watch]:
    """Look at topologies once more; `before` is what the last look saw."""
    found = {}
    for view in views:
        watch, moves, now = watches.get(view.id, Watch()), MovesSeen.of(view, rests), after[view.id]
        if moves.under_way - watch.under_way or (moves.has_ended and not watch.under_way):
            watch = _begun(watch, moves, now.now_s, within_s=2 * cooldown_s, time_s=time_s)
        elif moves.under_way or moves.has_ended:
            watch = replace(watch, part=None)
        else:
            last = before.get(view.id)
            more = part_between(last, now, spout_tasks(view.publication)) if last else None
            watch = _calm(watch, more, now.now_s, time_s=time_s)
            if last and not same_jvms(last, now):
                watch = _restarted(watch, now.now_s)
        found[view.id] = replace(watch, looked_s=now.now_s, under_way=moves.under_way)
    return found


def _begun(
    watch: Watch, moves: MovesSeen, now_s: float, *, within_s: float, time_s: float
) -> Watch:
    new, run, effects = tuple(sorted(moves.under_way - watch.under_way)), watch.run, watch.effects
    if run is not None and now_s - run.last_begun_s <= within_s:
        effects = effects[:-1]
        run = structs.replace(run, moves=run.moves + new, last_begun_s=now_s, ended_s=None)
    else:
        if run is not None:
            effects = _final(effects)
        lasts_s = (MOST_BLOCKS + 1) * BLOCK_S
        known = tuple(block for block in watch.blocks if now_s - block.ended_s <= lasts_s)
        run = Run(new, time_s, now_s, known)
    moving = Effect(Verdict.UNKNOWN, "moves are under way", run.moves, run.begun_s)
    return Watch(run=run, effects=(*effects, moving)[-_REMEMBERED:])


def _calm(watch: Watch, more: Part | None, now_s: float, *, time_s: float) -> Watch:
    """Nothing moves: take what came into a block, and judge the run again if it has got one."""
    run = watch.run
    if run is not None and run.ended_s is None:
        run = structs.replace(run, ended_s=time_s, calm_s=now_s)
        return _judged(replace(watch, run=run), run)
    if more is None or (run is not None and more.began_s - run.calm_s < WARM_S):
        return replace(watch, part=None)
    part = more if watch.part is None else watch.part + more
    if not part.is_full(now_s):
        return replace(watch, part=part)
    block, blocks = part.ended(now_s), watch.blocks
    if block is not None:
        blocks = (*blocks, block)[-MOST_BLOCKS:]
    watch = replace(watch, part=None, blocks=blocks)
    return watch if run is None else _judged(watch, run)


def _restarted(watch: Watch, now_s: float) -> Watch:
    """Workers came or went by no move: what follows is of other JVMs, or of another placement.

    A worker that has lost its last executor ends soon after the move.
    """
    run = watch.run
    if run is None:
        return replace(watch, blocks=())
    if now_s - run.calm_s <= WARM_S:
        return watch
    return replace(watch, blocks=(), run=None, effects=_final(watch.effects))


def _final(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    return (*effects[:-1], structs.replace(effects[-1], is_final=True))


def _judged(watch: Watch, run: Run) -> Watch:
    is_final = len(watch.blocks) >= MOST_BLOCKS
    effect = structs.replace(
        judged(run.before, watch.blocks),
        moves=run.moves,
        begun_s=run.begun_s,
        ended_s=run.ended_s,
        is_final=is_final,
    )
    return replace(watch, effects=(*watch.effects[:-1], effect), run=None if is_final else run)
