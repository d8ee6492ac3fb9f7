"""Watches each topology, and judges each run of moves while its effect is measured.

A run that was for the worse goes back. Its executors then stay as long as the load is like that.
It is so while the input is within a factor of `INPUT_FACTOR` of what it was before the run, after
it, or between.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import Struct, structs

from controller.core.blocks import (
    BLOCK_S,
    Block,
    LoadSeen,
    Part,
    jvms_of,
    length_s,
    part_between,
    same_jvms,
    spout_tasks,
)
from controller.core.capacity import Capacity
from controller.core.cold import COLD_S, cold_s
from controller.core.decision import Outcome, Veto
from controller.core.effect import INPUT_FACTOR, LEAST_BEFORE, LOOKS, MOST_BLOCKS, judged
from controller.core.figures import Effect, GuardRow, Verdict
from controller.core.guards import breached
from controller.core.layout import Layout, layout_of
from controller.core.picture import unplaced
from controller.core.quantities import MOST
from controller.core.topology import TopologyView, settled_placement
from migration.model import MOVING, ExecutorId, Phase, Plan, Slot

# Classes are loaded, code is compiled and queues are worked off for so long after a move.
WARM_S = 30.0
# A run in which nothing has moved for so long is left alone until it is judged. Executors have
# rested by then, so what comes is no part of the same way.
SETTLED_S = 120.0
# A run is final this long after its end, also where blocks do not come. What changes later is of
# something else, and must not take it back.
FINAL_S = 1800.0
# Blocks may not come at all: a worker does not report, or is restarted again and again.
LONGEST_WAIT_S = COLD_S + 2 * LEAST_BEFORE * BLOCK_S
# Of longer blocks too few come in that time before a run.
_LONGEST_BLOCK_S = (LONGEST_WAIT_S - COLD_S) / LEAST_BEFORE
# A move that begins before those before it could be judged is of their run. That is so for this
# long after them: the longest blocks may have come by then.
RUN_S = WARM_S + (LOOKS[0] + 1) * _LONGEST_BLOCK_S
# A move that has stood for so long where it changes no placement holds no run up: a supervisor that
# is away may never answer.
STANDS_S = 60.0
# How many effects of a topology, and runs that were taken back, are remembered.
_REMEMBERED = 8
# The input now is the mean of this number of blocks: a burst of some seconds is no other load.
_RECENT_BLOCKS = 6
_RESTARTED = "a worker was restarted during the moves, or soon after them"
_COLD = "a worker has just started, and its code is compiled"
# Storm has the executor at the target, or the source has it.
_STANDING = frozenset({Phase.SETTLE, Phase.UNDO})
KEPT, GOING_BACK, TAKEN_BACK = "kept", "going back", "taken back"


class OwnMove(Struct, frozen=True):
    """A move that a policy has begun."""

    id: str
    executor: ExecutorId
    source: Slot
    target: Slot
    goes_back: bool = False  # the way back has begun


class Run(Struct, frozen=True):
    """Moves of a topology that begin soon after each other."""

    moves: tuple[str, ...]
    begun_s: float  # Unix seconds
    before: tuple[Block, ...]
    first_begun_s: float = 0.0  # monotonic
    ended_s: float | None = None  # Unix seconds; None while moves are under way
    calm_s: float = 0.0  # since when nothing moves, monotonic
    made: tuple[OwnMove, ...] = ()  # by a policy
    is_own: bool = True  # a policy has begun all of them
    predicted_cpu: float | None = None  # by what factor the CPU was to change
    lacks: str = ""  # why blocks are missing in `before`
    frees_heap: bool = False  # a move of it left a heap above `load.high`
    is_restarted: bool = False  # a worker was, during the moves or soon after: only guards judge it


class Refused(Struct, frozen=True):
    """Executors of a run that was taken back, and the input for which they stay."""

    executors: tuple[str, ...]
    like_tps: tuple[float, float]  # from, to
    why: str


class Begun(Struct, frozen=True):
    """The moves that a policy, or what takes a run back, has begun in the last cycle."""

    made: tuple[OwnMove, ...] = ()
    predicted_cpu: float | None = None  # by what factor the CPU is to change
    frees_heap: bool = False  # one leaves a heap above `load.high`


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """What is remembered of a topology."""

    looked_s: float = 0.0  # monotonic
    under_way: frozenset[str] = frozenset()  # ids of moves
    part: Part | None = None  # the block that has begun
    blocks: tuple[Block, ...] = ()  # since the run has ended, or before any
    run: Run | None = None  # None once its effect is final
    effects: tuple[Effect, ...] = ()  # the oldest first; the last may change
    begun: Begun | None = None  # in the last cycle
    back: tuple[OwnMove, ...] = ()  # the moves of a run that goes back, as far as they are left
    refused: tuple[Refused, ...] = ()
    pause: str = ""  # why the topology has to pause, until it does
    lacks: str = ""  # why the last block that was missing is so, as long as too few are there
    waits_since_s: float | None = None  # as long as moves for gain wait for blocks, monotonic
    cold_until_s: float = 0.0  # until when a JVM has code that is not compiled, monotonic
    # Of each worker that Storm assigns executors to, as it was last seen: one that has ended
    # reports again only some looks later.
    jvms: Mapping[Slot, str] = field(default_factory=dict)
    # Since when the moves of executors stand where they change no placement, monotonic.
    stands_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_returning(self) -> bool:
        """Whether a run is on its way back."""
        return bool(self.effects) and self.effects[-1].end == GOING_BACK

    @property
    def input_tps(self) -> float | None:
        """The input of the last minute; None where it is not known yet."""
        recent = self.blocks[-_RECENT_BLOCKS:]
        return float(np.mean([block.input_tps for block in recent])) if recent else None

    def before(self, now_s: float) -> tuple[Block, ...]:
        """Give the blocks against which a run that begins now is judged."""
        lasts_s = (MOST_BLOCKS + 1) * BLOCK_S
        return tuple(block for block in self.blocks if now_s - block.ended_s <= lasts_s)

    def going_on(self, now_s: float) -> Run | None:
        """Give the run that a move which begins now is of; None where it begins another one."""
        run = self.run
        if run is None or len(self.blocks) >= LOOKS[0]:
            return None
        return run if run.ended_s is None or now_s - run.calm_s <= RUN_S else None

    def _unsure(self, now_s: float) -> Run | None:
        """Give the run of which the first look has seen nothing, and the second may see more."""
        run = self.run
        if run is None or len(self.blocks) < LOOKS[0] or now_s - run.calm_s > LONGEST_WAIT_S:
            return None
        return run if self.effects[-1].verdict is Verdict.SAME else None

    @property
    def begins_s(self) -> float:
        """From when on blocks count, monotonic."""
        if self.run is None:
            return self.cold_until_s
        warm_s = self.run.calm_s + WARM_S
        # These blocks judge no run, and the next one is compared with them.
        return max(warm_s, self.cold_until_s) if self.run.is_restarted else warm_s

    def cold_s(self, now_s: float) -> float:
        """Return how long code of a JVM is still compiled."""
        return max(self.cold_until_s - now_s, 0.0)

    def waits(self, now_s: float, cycle_s: float) -> Veto | None:
        """Return why no move begins for gain alone: its run, or the one before, is not judged else.

        Where blocks do not come, moves wait for `LONGEST_WAIT_S` all the same, and no longer. Where
        cycles are so long that too few come in that time, they do not wait at all.
        """
        if self.is_returning:
            # What began now for gain would be of no run.
            return Veto(Outcome.MOVE_IN_FLIGHT, "the last of a run of moves is going back")
        block_s = length_s(cycle_s)
        if block_s > _LONGEST_BLOCK_S:
            return None
        run, known = self.run, len(self.before(now_s))
        going_on = self.going_on(now_s)
        if (measured := going_on or self._unsure(now_s)) is not None:
            judged_s = self.begins_s + LOOKS[0] * block_s
            if going_on is None:
                # Longer blocks do not all come in the time for which a move waits.
                ends_s = measured.calm_s + LONGEST_WAIT_S
                judged_s = min(self.begins_s + LOOKS[1] * block_s, ends_s)
            return _until_look(measured, judged_s, now_s, block_s)
        if known >= LEAST_BEFORE:
            return None
        begins_s = now_s if run is None or run.ended_s is None else run.calm_s + WARM_S
        begins_s = max(begins_s, self.cold_until_s)
        missing_s = (LEAST_BEFORE - known) * block_s + max(begins_s - now_s, 0.0)
        since_s = now_s if self.waits_since_s is None else self.waits_since_s
        left_s = min(missing_s, since_s + LONGEST_WAIT_S - now_s)
        if left_s <= 0:
            return None
        why = (
            f"a move for gain waits for some {left_s:.0f} s more: its effect is judged by "
            f"{LEAST_BEFORE * block_s:.0f} s before it, and {known * block_s:.0f} s are measured"
        )
        return Veto(Outcome.WATCHING, f"{why}; {self.lacks}" if self.lacks else why)

    @property
    def stays(self) -> dict[str, str]:
        """Why executors stay that were taken back, as long as the input is like it was then."""
        now, found = self.input_tps, dict[str, str]()
        for one in () if self.is_returning else self.refused:
            low, high = one.like_tps
            if now is None or low <= now <= high:
                like = ", whatever the input"
                if high < MOST:
                    like = f" while the input is between {low:,.0f} and {high:,.0f} tuples/s"
                found |= {
                    e: f"{e} was taken back and stays{like}: {one.why}" for e in one.executors
                }
        return found


def _until_look(run: Run, judged_s: float, now_s: float, block_s: float) -> Veto | None:
    """Return why a run that has settled gets no further move before it is judged.

    With a move every few minutes it would never be judged.
    """
    calm_s = 0.0 if run.ended_s is None else now_s - run.calm_s
    if calm_s < SETTLED_S:
        return None
    left_s = max(judged_s - now_s, block_s)
    why = "the effect of the moves before it is measured"
    return Veto(Outcome.WATCHING, f"a move for gain waits for some {left_s:.0f} s more: {why}")


@dataclass(frozen=True, slots=True)
class MovesSeen:
    """What of a topology moves at one moment."""

    under_way: frozenset[str]  # ids
    ended: frozenset[ExecutorId]  # of which a move has ended since the last look
    stands_s: Mapping[str, float]  # as in `Watch`

    @property
    def has_ended(self) -> bool:
        return bool(self.ended)

    @classmethod
    def of(
        cls,
        view: TopologyView,
        rests: Iterable[tuple[str, ExecutorId, float]],
        before_s: Mapping[str, float],
        now_s: float,
    ) -> "MovesSeen":
        """Leave out what has stood for long where it changes no placement, and its end as well."""
        entries = view.plan.entries
        stands_s = {
            str(e.executor): before_s.get(str(e.executor), now_s)
            for e in entries
            if e.void is not None or e.phase in _STANDING
        }
        long = {e for e, since_s in stands_s.items() if now_s - since_s >= STANDS_S}
        gone = {e for e, since_s in before_s.items() if now_s - since_s >= STANDS_S}
        return cls(
            frozenset(entry.id for entry in entries if str(entry.executor) not in long),
            frozenset(e for topology, e, _ in rests if topology == view.id and str(e) not in gone),
            stands_s,
        )


def watch_each(
    watches: Mapping[str, Watch],
    views: Iterable[TopologyView],
    before: Mapping[str, LoadSeen],
    after: Mapping[str, LoadSeen],
    rests: tuple[tuple[str, ExecutorId, float], ...],
    *,
    layouts: Mapping[str, Layout],  # that are known, by topology
    refused: Mapping[str, tuple[Refused, ...]],  # under earlier leaders, by topology
    full_links: Collection[str],  # the nodes of which a link is above `load.high`
    time_s: float,
) -> dict[str, Watch]:
    """Look at topologies once more; `before` is what the last look saw."""
    found = {}
    for view in views:
        now, last = after[view.id], before.get(view.id)
        watch = watches.get(view.id) or Watch(refused=refused.get(view.id, ()))
        moves = MovesSeen.of(view, rests, watch.stands_s, now.now_s)
        watch, restarted = _heated(watch, view, last, now, time_s=time_s)
        watch = _without_old_run(watch, now.now_s)
        begun, watch = watch.begun, replace(watch, begun=None)
        new = moves.under_way - watch.under_way
        if watch.is_returning:
            watch = _returning(watch, view, moves, begun)
        elif begun or new or (moves.has_ended and not watch.under_way):
            watch = _begun(watch, new, begun or Begun(), now.now_s, time_s=time_s)
        elif moves.under_way or moves.has_ended:
            watch = replace(watch, part=None)
        else:
            more = None
            if last is not None:
                layout = _layout_now(view, layouts.get(view.id))
                more = part_between(last, now, spout_tasks(view.publication), layout)
            fills_link = any(slot.supervisor in full_links for slot in view.publication.slots)
            watch = _calm(watch, more, now.now_s, fills_link=fills_link, time_s=time_s)
            if last and not same_jvms(last, now) and not restarted:
                watch = _changed(watch, now.now_s)
        if restarted and not watch.is_returning:
            was_away = last is not None and not restarted <= set(last.rates.slots)
            watch = _restarted(watch, now.now_s, was_away=was_away)
        found[view.id] = replace(
            watch, looked_s=now.now_s, under_way=moves.under_way, stands_s=moves.stands_s
        )
    return found


def _layout_now(view: TopologyView, kept: Layout | None) -> Layout | None:
    """Lay a topology out as it is now: a replay has no layout of an earlier look."""
    if unplaced(view) is not None:
        return None
    if kept is not None and kept.made_of[:2] == (view.publication, view.plan):
        return kept
    return layout_of(view, Capacity(), None, {})


def _heated(
    watch: Watch, view: TopologyView, last: LoadSeen | None, now: LoadSeen, *, time_s: float
) -> tuple[Watch, set[Slot]]:
    """Note until when code is compiled where a JVM is new, or was not seen before.

    Also name the workers that another JVM runs now.
    """
    if last and same_jvms(last, now):
        return watch, set()
    were, are = {**watch.jvms, **(jvms_of(last) if last else {})}, jvms_of(now)
    new = {slot for slot, jvm in are.items() if were.get(slot) != jvm}
    restarted = new & were.keys()
    # A worker that has lost its last executor ends. One that is opened there later is another one.
    placed = {one.slot for one in view.publication.executors}
    jvms = {slot: jvm for slot, jvm in {**were, **are}.items() if slot in placed}
    watch = replace(watch, jvms=jvms)
    # Where the machine is busy, a JVM reports some 40 s after Storm has launched it.
    came = bool(new) or last is None
    if restarted or (came and cold_s(view.publication, time_s) > 0):
        watch = replace(watch, cold_until_s=now.now_s + COLD_S)
    return watch, restarted


def _without_old_run(watch: Watch, now_s: float) -> Watch:
    run = watch.run
    if run is None or run.ended_s is None or now_s - run.calm_s <= FINAL_S:
        return watch
    return _without_run(watch)


def _begun(
    watch: Watch, new: frozenset[str], begun: Begun, now_s: float, *, time_s: float
) -> Watch:
    going_on, effects = watch.going_on(now_s), watch.effects
    own = {made.id for made in begun.made}
    # A move that came and went between two looks has no name here; no policy has begun it.
    is_own = bool(own) and new <= own
    named = tuple(sorted(new | own))
    if going_on is not None:
        effects = effects[:-1]
        run = structs.replace(
            going_on,
            moves=going_on.moves + named,
            ended_s=None,
            made=going_on.made + begun.made,
            is_own=going_on.is_own and is_own,
            predicted_cpu=_together(going_on.predicted_cpu, begun.predicted_cpu),
            frees_heap=going_on.frees_heap or begun.frees_heap,
        )
    else:
        if watch.run is not None:
            effects = _final(effects)
        run = Run(
            named,
            time_s,
            watch.before(now_s),
            now_s,
            made=begun.made,
            is_own=is_own,
            predicted_cpu=begun.predicted_cpu,
            lacks=watch.lacks,
            frees_heap=begun.frees_heap,
        )
    moving = Effect(Verdict.UNKNOWN, "moves are under way", run.moves, run.begun_s)
    return replace(
        watch,
        part=None,
        blocks=(),
        run=run,
        effects=(*effects, moving)[-_REMEMBERED:],
        lacks="",
        waits_since_s=None,
    )


def _together(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


def _calm(
    watch: Watch, more: Part | str | None, now_s: float, *, fills_link: bool, time_s: float
) -> Watch:
    """Nothing moves: take what came into a block, and judge the run again if it has got one."""
    run = watch.run
    if run is not None and run.ended_s is None:
        run = structs.replace(run, ended_s=time_s, calm_s=now_s)
        return _judged(replace(watch, run=run), run)
    if isinstance(more, str):
        return replace(watch, part=None, lacks=more)
    if more is None or more.began_s < watch.begins_s:
        return replace(watch, part=None, lacks=_COLD if more and run is None else watch.lacks)
    part = more if watch.part is None else watch.part + more
    if not part.is_full(now_s):
        return replace(watch, part=part)
    block = part.ended(now_s, fills_link=fills_link)
    if isinstance(block, str):
        return replace(watch, part=None, lacks=block)
    watch = replace(watch, part=None, blocks=(*watch.blocks, block)[-MOST_BLOCKS:])
    if len(watch.blocks) >= LEAST_BEFORE:
        watch = replace(watch, lacks="", waits_since_s=None)
    return watch if run is None else _judged(watch, run)


def _restarted(watch: Watch, now_s: float, *, was_away: bool) -> Watch:
    """Another JVM runs a worker: what it uses while its code is compiled is of no move.

    But a move may be why the worker ended. So guards still take that run back.
    """
    run, watch = watch.run, replace(watch, part=None, blocks=())
    if run is None:
        return watch
    # One that goes away later ends the run at once, but not one that ends again and again.
    is_late = run.ended_s is not None and not was_away and now_s - run.calm_s > WARM_S
    if is_late and not run.is_restarted:
        return _without_run(watch)
    effect = structs.replace(watch.effects[-1], verdict=Verdict.UNKNOWN, sentence=_RESTARTED)
    run = structs.replace(run, is_restarted=True)
    return replace(watch, run=run, effects=(*watch.effects[:-1], effect))


def _changed(watch: Watch, now_s: float) -> Watch:
    """Workers came or went by no move: what follows is of another placement.

    A worker that has lost its last executor ends soon after the move.
    """
    run = watch.run
    if run is None:
        return replace(watch, blocks=())
    if now_s - run.calm_s <= WARM_S:
        return watch
    if run.is_restarted:  # as in `_restarted`
        return replace(watch, part=None, blocks=())
    return _without_run(replace(watch, blocks=()))


def _without_run(watch: Watch, end: str = KEPT) -> Watch:
    return replace(watch, run=None, effects=_final(watch.effects, end))


def _final(effects: tuple[Effect, ...], end: str = KEPT) -> tuple[Effect, ...]:
    return (*effects[:-1], structs.replace(effects[-1], is_final=True, end=end))


def _judged(watch: Watch, run: Run) -> Watch:
    """Judge a run where enough was measured; what is looked at more often errs more often."""
    count = len(watch.blocks)
    if count > LOOKS[0] and count not in LOOKS:
        return watch
    found = Effect(Verdict.UNKNOWN, _RESTARTED)
    if not run.is_restarted:
        found = judged(run.before, watch.blocks, run.lacks, run.predicted_cpu)
    effect = structs.replace(
        found,
        moves=run.moves,
        begun_s=run.begun_s,
        ended_s=run.ended_s,
        predicted_cpu=run.predicted_cpu,
    )
    watch = replace(watch, effects=(*watch.effects[:-1], effect))
    is_price = effect.verdict is Verdict.WORSE and run.frees_heap and _is_price(watch, run)
    if effect.verdict is Verdict.WORSE and not is_price:
        return returned(watch, effect.sentence)
    if count < MOST_BLOCKS:
        return watch
    return _without_run(watch, "kept, for it relieves a heap" if is_price else KEPT)


def _is_price(watch: Watch, run: Run) -> bool:
    """Check whether a run is for the worse by CPU or bytes alone.

    A JVM whose heap is full dies. So that is the price of what has left it.
    """
    felt = judged(run.before, watch.blocks, run.lacks, run.predicted_cpu, counts_price=False)
    return felt.verdict is not Verdict.WORSE


def returned(watch: Watch, why: str) -> Watch:
    """Let the run go back, if a policy alone has made it, and remember for which input."""
    run = watch.run
    assert run is not None, "there is a run"
    if not run.is_own:
        stays = "kept, for an operator or a drain has asked for moves of it"
        return _without_run(watch, stays)
    known = [
        np.mean([b.input_tps for b in blocks]) for blocks in (run.before, watch.blocks) if blocks
    ]
    like = (0.0, MOST)
    if known:
        # A run may have changed the input itself: then it comes back with the executors.
        like = (float(min(known)) / INPUT_FACTOR, float(max(known)) * INPUT_FACTOR)
    executors = tuple(dict.fromkeys(str(made.executor) for made in run.made))
    refused = (*watch.refused, Refused(executors, like, why))[-_REMEMBERED:]
    effects = _final(watch.effects, GOING_BACK)
    effects = (*effects[:-1], structs.replace(effects[-1], like_tps=like))
    return replace(
        watch, part=None, run=None, effects=effects, back=_merged(run.made), refused=refused
    )


def _merged(made: Iterable[OwnMove]) -> tuple[OwnMove, ...]:
    """Make one move of all that an executor made, the last executor first."""
    found: dict[ExecutorId, OwnMove] = {}
    for one in made:
        first = found.pop(one.executor, one)
        found[one.executor] = structs.replace(one, source=first.source)
    return tuple(one for one in reversed(found.values()) if one.source != one.target)


def guarded(watch: Watch, rows: Sequence[GuardRow], now_s: float) -> Watch:
    """Let the run go back that has breached a guard, and the topology pause."""
    if watch.run is None:
        return watch
    why = breached(rows, now_s - watch.run.first_begun_s)
    if why is None:
        return watch
    *_, last = watch.effects
    effect = structs.replace(last, verdict=Verdict.WORSE, sentence=f"{why}; {last.sentence}")
    watch = replace(watch, effects=(*watch.effects[:-1], effect), pause=why)
    return returned(watch, why)


def begun_of(
    view: TopologyView, plan: Plan, predicted_cpu: float | None, full: Collection[str]
) -> Begun:
    """Note what a plan begins that a policy has decided on; `full` are workers of full heaps."""
    before = {entry.id for entry in view.plan.entries}
    new = (entry for entry in plan.entries if entry.id not in before)
    made = tuple(OwnMove(e.id, e.executor, e.source, e.target) for e in new)
    return Begun(made, predicted_cpu, any(str(one.source) in full for one in made))


def _returning(watch: Watch, view: TopologyView, moves: MovesSeen, begun: Begun | None) -> Watch:
    """Look how far a run has gone back; what somebody else has moved since is left where it is."""
    there = settled_placement(view.publication, view.plan)
    going = {
        (e.executor, e.target)
        for e in view.plan.entries
        if e.void is None and e.phase in MOVING - {Phase.UNDO}
    }
    tried = {one.executor for one in begun.made if one.executor in moves.ended} if begun else set()
    left: list[OwnMove] = []
    facts: list[str] = []
    undone: set[str] = set()
    for one in watch.back:
        at = there.get(one.executor)
        if (one.executor, one.source) in going:
            left.append(structs.replace(one, goes_back=True))
        elif at == one.target and (one.goes_back or one.executor in tried):
            # An operator may have cancelled it, and what fails may do so again and again.
            undone.add(str(one.executor))
            facts.append(f"{one.executor} is left at {at}, for its move back was undone")
        elif at == one.target:
            left.append(one)
        elif at not in (None, one.source):
            facts.append(f"{one.executor} is left at {at}")
    watch = replace(watch, part=None, blocks=(), back=tuple(left))
    if facts:
        *_, effect = watch.effects
        effect = structs.replace(effect, sentence="; ".join([*facts, effect.sentence]))
        watch = replace(watch, effects=(*watch.effects[:-1], effect))
    *earlier, refused = watch.refused
    held = tuple(name for name in refused.executors if name not in undone)
    watch = replace(watch, refused=(*earlier, structs.replace(refused, executors=held)))
    if left or begun is not None:
        return watch
    if not held:
        return given_up(watch, "each move back was undone")
    return replace(watch, effects=_final(watch.effects, TAKEN_BACK))


def given_up(watch: Watch, why: str) -> Watch:
    """Leave a run where it is, since it cannot go back."""
    *_, last = watch.effects
    ended = structs.replace(last, end=f"kept, for it cannot go back: {why}", like_tps=None)
    return replace(watch, back=(), refused=watch.refused[:-1], effects=(*watch.effects[:-1], ended))
