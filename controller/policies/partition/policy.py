"""`gather` as a policy of the common shape: an object that remembers what is under way."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision, Policy
from controller.policies.greedy import greedy_opening, or_open
from controller.policies.partition.goal import Target, digest
from controller.policies.partition.problem import TargetOptions
from controller.policies.partition.search import Question, Search, search_inline
from controller.policies.partition.target import TargetMemory, target

T = TypeVar("T")

# After a search in vain there is none for this long, while all executors are where they were and
# the same ones may move.
RETRY_S = 300.0
# Where loads jitter, what is found looks better than it is: of many placements the one is chosen
# that noise is kindest to. So it is judged by other load, this many decisions later: with
# `load.ewma` 0.3 an eighth of that noise is left then.
JUDGED_AFTER = 6


@dataclass(frozen=True, slots=True)
class Found:
    """The target that a search found.

    `asked` is what was searched, as in `Remembered.in_vain`. It waits to be judged for `left` more
    decisions.
    """

    target: Target
    asked: int
    left: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory of `Gather`, all by topology.

    `memory` is what the last decision left. `in_vain` is the last search, as `_asked` names it,
    that found nothing, or nothing that was worth it when it was judged; and its Unix seconds.
    `found` waits to be judged. `beyond` is what the last search knew to be out of reach, and where.
    """

    memory: Mapping[str, TargetMemory] = field(default_factory=dict)
    in_vain: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    found: Mapping[str, Found] | None = None
    beyond: Mapping[str, tuple[int, str]] | None = None

    def only(self, topologies: Collection[str]) -> "Remembered":
        def of(kept: Mapping[str, T] | None) -> dict[str, T]:
            return {t: one for t, one in (kept or {}).items() if t in topologies}

        found, beyond = of(self.found) or None, of(self.beyond) or None
        return Remembered(of(self.memory), of(self.in_vain), found, beyond)


class Gather:
    """The policy `gather` for one run, with a memory of each topology."""

    def __init__(self, options: TargetOptions, search: Search = search_inline) -> None:
        self._options = options
        self._search = search
        self.recall(Remembered())

    def __call__(self, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
        topology = snapshot.topology
        before = self._memory.get(topology)
        memory = (before or TargetMemory()).with_snapshot(cluster, snapshot)
        options, wait = self._options.on_jittering_loads, JUDGED_AFTER
        if before is None or before.load == memory.load:
            # Nothing jitters, as in a file.
            options, wait = self._options.on_still_loads, 0
        if before is None:
            # The first decision of all cannot tell.
            options = replace(options, effort=1)
        ripe: Found | None = None
        searches = False

        def propose() -> Target | None:
            nonlocal ripe, searches
            if topology not in self._found:
                question = Question(cluster, snapshot, limits, options, memory.seen)
                searches = not self._search_for(question, wait)
            ripe = self._ripe(topology)
            return ripe.target if ripe else None

        decision, after = target(cluster, snapshot, limits, options, memory=memory, propose=propose)
        self._memory[topology] = after
        refused = ripe if after.target is None else None
        if refused is not None and refused.asked == _asked(cluster, snapshot):
            self._in_vain[topology] = refused.asked, snapshot.time_s
        if cluster.spare and (searches or topology in self._found):  # what runs may do
            cluster = replace(cluster, spare="a search has not ended")
        decision = or_open(decision, cluster, snapshot, limits)
        asked, beyond = self._beyond.get(topology, (0, ""))
        if beyond and not decision.moves and asked == _asked(cluster, snapshot):
            return replace(decision, reason=f"{decision.reason}; {beyond}")
        return decision

    @property
    def memoryless(self) -> Policy:
        """The policy that is left without a target."""
        return greedy_opening

    @property
    def remembered(self) -> Remembered:
        """The memory as it is now; only valid until the next decision."""
        return Remembered(self._memory, self._in_vain, self._found or None, self._beyond or None)

    def recall(self, remembered: Remembered) -> None:
        self._memory = dict(remembered.memory)
        self._in_vain = dict(remembered.in_vain)
        self._found = dict(remembered.found or {})
        self._beyond = dict(remembered.beyond or {})

    def _search_for(self, question: Question, wait: int) -> bool:
        """Search, unless that was lately in vain; false while there is no answer yet."""
        snapshot = question.snapshot
        asked = _asked(question.cluster, snapshot)
        in_vain, since_s = self._in_vain.get(snapshot.topology, (0, 0.0))
        if in_vain == asked and 0 <= snapshot.time_s - since_s < RETRY_S:
            return True
        answer = self._search(question)
        if answer is None:
            return False
        self._beyond.pop(snapshot.topology, None)
        if answer.beyond:
            self._beyond[snapshot.topology] = asked, answer.beyond
        if answer.target is None:
            self._in_vain[snapshot.topology] = asked, snapshot.time_s
        else:
            self._found[snapshot.topology] = Found(answer.target, asked, wait)
        return True

    def _ripe(self, topology: str) -> Found | None:
        """Give what was found once its time has come."""
        found = self._found.pop(topology, None)
        if found is None or not found.left:
            return found
        self._found[topology] = replace(found, left=found.left - 1)
        return None


def _asked(cluster: Cluster, snapshot: LoadSnapshot) -> int:
    """Tell apart what a search may find, whatever the load: what is where, and what may move."""
    return digest(snapshot.executors, cluster.workers, snapshot.place, snapshot.is_movable)
