"""`gather` as a policy: its memory of a topology, and its questions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from controller.core.decision import Decision
from controller.core.fit import Fit
from controller.core.held import held
from controller.core.policy import SEARCH_LIMIT_S, Case, Decided, Policy
from controller.policies.gather.evaluate import TargetQuestion
from controller.policies.gather.goal import Answer, Target, digest
from controller.policies.gather.steady import Proposed, proposed, steadied
from controller.policies.gather.target import TargetMemory, target
from controller.policies.gather.unpacked import Unpacked
from controller.policies.greedy import greedy_opening, or_open
from controller.policies.options import TargetOptions

# After a search without a result there is none for this long, while all executors are where they
# were. That holds also where others may move than then. Executors rest one by one, and the end of
# each rest would search the same placement again.
RETRY_S = 300.0
# Unless there may be more room by this factor: load has fallen, or hops turned out to cost more.
MORE_ROOM = 1.1
# Where loads jitter, what is found looks better than it is: of many placements the one is chosen
# that noise is kindest to. So it is judged by other load, this many decisions later: with
# `load.ewma` 0.3 an eighth of that noise is left then.
JUDGED_AFTER = 6
_SEARCHING = "a search for a better placement has not ended: it"
_ONCE_BEGUN = f"takes {SEARCH_LIMIT_S / 60:.0f} minutes at most once it has begun"


@dataclass(frozen=True, slots=True)
class Found:
    """The target that a search found.

    `asked` is what was searched, and what could move then. It waits to be judged for `left` more
    decisions.
    """

    target: Target
    asked: int
    left: int


@dataclass(frozen=True, slots=True)
class InVain:
    """A search that has found nothing, or nothing that was worth it, and of what it was.

    `ended_s` is in Unix seconds. `at_best` is as in `Answer`.
    """

    where: int = 0
    ended_s: float = 0.0
    at_best: float = 0.0

    def holds(self, where: int, time_s: float, at_best: Callable[[], float]) -> bool:
        """Return whether a search of this placement would find nothing either."""
        if self.where != where or not 0 <= time_s - self.ended_s < RETRY_S:
            return False
        return not 0 < MORE_ROOM * self.at_best < at_best()


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory that `gather` has of a topology.

    `last` is what the last decision left. `in_vain` is the last search without a result. `found`
    waits to be judged. `beyond` is what the last search knew to be out of reach, and where.
    `answer` has not been looked at. `unpacked` is what had to leave where it was gathered.
    `proposed` are the moves of the last decision, which may never begin.
    """

    last: TargetMemory | None = None
    in_vain: InVain = field(default_factory=InVain)
    found: Found | None = None
    beyond: tuple[int, str] = (0, "")
    answer: Answer | None = None
    unpacked: Unpacked = field(default_factory=Unpacked)
    proposed: Proposed = ()

    def looked_at(self, where: int, asked: int, time_s: float, wait: int) -> "Remembered":
        """Take over the answer, which waits for `wait` decisions to be judged."""
        assert self.answer is not None
        heard = replace(self, answer=None, beyond=(where, self.answer.beyond))
        if self.answer.target is None:
            return replace(heard, in_vain=InVain(where, time_s, self.answer.at_best))
        return replace(heard, found=Found(self.answer.target, asked, wait))

    def awaits(self, question: TargetQuestion | None, case: Case) -> str:
        """Name the search, or what it found and what still waits to be judged."""
        if question is not None:
            left_s = case.search_left_s
            until = _ONCE_BEGUN if left_s is None else f"ends in {left_s:.0f} s at the latest"
            return f"{_SEARCHING} {until}"
        if self.found is None:
            return ""
        left_s = (self.found.left + 1) * case.cycle_s
        return f"a better placement was found, and is judged some {left_s:.0f} s from now"

    def ripened(self) -> tuple["Remembered", Found | None]:
        """Give what was found once its time has come."""
        found = self.found
        if found is None or not found.left:
            return replace(self, found=None), found
        return replace(self, found=replace(found, left=found.left - 1)), None


@dataclass(frozen=True, slots=True)
class Gather(Policy[Remembered]):
    options: TargetOptions
    memory_type = Remembered
    answer_type = Answer

    @property
    def weighs_each(self) -> bool:
        return True

    def decide(self, case: Case, memory: Remembered | None) -> Decided[Remembered]:
        kept = memory or Remembered()
        limits = case.limits
        kept = replace(kept, unpacked=kept.unpacked.seen(case.cluster, case.snapshot))
        cluster = kept.unpacked.settling(case.cluster, case.snapshot, limits)
        snapshot = kept.unpacked.stay(cluster, case.snapshot, limits)
        last = (kept.last or TargetMemory()).with_snapshot(cluster, snapshot)
        options, wait = self._options(kept, last)
        if wait and cluster.node_cores is not None:
            limits = limits.where_loads_jitter
        where = cache(partial(digest, snapshot.executors, cluster.workers, snapshot.place))
        ripe: Found | None = None
        question: TargetQuestion | None = None

        def asked() -> int:
            return digest(np.array([where()]), snapshot.is_movable)

        def at_best() -> float:
            return Fit.of(cluster, snapshot, limits).growth_at_best

        def propose() -> Target | None:
            nonlocal kept, ripe, question
            in_vain = kept.in_vain.holds(where(), snapshot.time_s, at_best)
            if kept.found is None and not in_vain:
                if kept.answer is None:
                    question = TargetQuestion(cluster, snapshot, limits, options, last.seen)
                else:
                    kept = kept.looked_at(where(), asked(), snapshot.time_s, wait)
            kept, ripe = kept.ripened()
            return ripe.target if ripe else None

        def is_held(decision: Decision) -> bool:
            return held(case, decision) is not None

        decision, after = target(
            cluster, snapshot, limits, options, memory=last, propose=propose, is_held=is_held
        )
        kept = replace(kept, last=after)
        refused = ripe if after.target is None else None
        if refused is not None and refused.asked == asked():
            kept = replace(kept, in_vain=InVain(where(), snapshot.time_s, at_best()))
        if cluster.spare and (question or kept.found):  # what runs may do
            cluster = replace(cluster, spare="a search has not ended")
        decision = or_open(decision, cluster, snapshot, limits)

        def again(one: Case) -> tuple[Decision, Target | None]:
            world = one.cluster, one.snapshot, one.limits
            found, on = target(*world, options, memory=after, propose=lambda: None, is_held=is_held)
            return or_open(found, *world), on.target

        asked_of = replace(case, cluster=cluster, snapshot=snapshot, limits=limits)
        decision = steadied((decision, after.target), kept.proposed, asked_of, again, is_held)
        kept = replace(kept, proposed=proposed(decision))
        beyond_at, beyond = kept.beyond
        if beyond and not decision.moves and beyond_at == where():
            decision = replace(decision, reason=f"{decision.reason}; {beyond}")
        stay = np.flatnonzero(case.snapshot.is_movable & ~snapshot.is_movable).tolist()
        if stay and not decision.moves:
            why = Unpacked.explained([snapshot.executors[e] for e in stay])
            decision = replace(decision, reason=f"{decision.reason}; {why}")
        if not is_held(decision):
            unpacked = kept.unpacked.after(decision, cluster, snapshot, limits)
            kept = replace(kept, unpacked=unpacked)
        return Decided(decision, kept, question, kept.awaits(question, case))

    def at_once(self, case: Case) -> Decision:
        """Decide as without a target."""
        return greedy_opening(case.cluster, case.snapshot, case.limits)

    def lasting(self, memory: Remembered) -> Remembered:
        return Remembered(unpacked=memory.unpacked)

    def heard(self, memory: Remembered | None, answer: Answer) -> Remembered:
        return replace(memory or Remembered(), answer=answer)

    def _options(self, before: Remembered, last: TargetMemory) -> tuple[TargetOptions, int]:
        """Give how to search, and how many decisions later what is found is judged."""
        if before.last is None:
            # The first decision of all cannot know whether loads jitter.
            return replace(self.options.on_still_loads, effort=1), 0
        if before.last.load == last.load:
            # Nothing jitters, as in a file.
            return self.options.on_still_loads, 0
        return self.options.on_jittering_loads, JUDGED_AFTER
