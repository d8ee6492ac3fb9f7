"""`target` as a policy of the common shape: an object that remembers what is under way."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controller.core.classify import Limits
from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decide import Decision, Policy, safe
from controller.core.target.goal import Target, digest
from controller.core.target.policy import Memory, target
from controller.core.target.problem import TargetOptions
from controller.targeting.search import Question, Search, at_once

# After a search in vain the same placement is not searched again for so long.
RETRY_S = 300.0
# Where loads jitter, what is found looks better than it is: of many placements the one is chosen
# that noise is kindest to. It is judged by other load, so many decisions later: with `load.ewma`
# 0.3 an eighth of that noise is left then.
JUDGED_AFTER = 6


@dataclass(frozen=True, slots=True)
class Remembered:
    """What `Targeting` remembers.

    Attributes
    ----------
    memory : mapping of str to Memory
        What the last decision left, by topology.
    in_vain : mapping of str to (int, float)
        Placement and Unix seconds of the last search that found nothing, by topology.
    found : mapping of str to (Target, int), or None
        What a search found, and for how many decisions it waits yet to be judged, by topology.
    """

    memory: Mapping[str, Memory] = field(default_factory=dict)
    in_vain: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    found: Mapping[str, tuple[Target, int]] | None = None


class Targeting:
    """The policy `target` for one run: one memory a topology.

    Parameters
    ----------
    options : TargetOptions
        What a target has to gain and may fill.
    search : Search
        How to search; the live run searches beside the cycle.
    """

    def __init__(self, options: TargetOptions, search: Search = at_once) -> None:
        self._options = options
        self._search = search
        self._memory: dict[str, Memory] = {}
        self._in_vain: dict[str, tuple[int, float]] = {}
        self._found: dict[str, tuple[Target, int]] = {}

    def __call__(self, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
        """Decide.

        Parameters
        ----------
        cluster : Cluster
            Places.
        snapshot : LoadSnapshot
            Load and traffic.
        limits : Limits
            Thresholds and weights.

        Returns
        -------
        Decision
            As `controller.core.target.policy.target`.
        """
        before = self._memory.get(snapshot.topology)
        memory = (before or Memory()).with_snapshot(cluster, snapshot)
        options = self._options
        still = before is None or before.load == memory.load
        if still:
            # Nothing jitters, as in a file: no room has to be left for it.
            options = replace(options, fill_frac=1.0)
        proposed: Target | None = None

        def propose() -> Target | None:
            nonlocal proposed
            self._search_for(Question(cluster, snapshot, limits, options, memory.seen))
            proposed = self._ripe(snapshot.topology, still=still)
            return proposed

        decision, after = target(cluster, snapshot, limits, options, memory=memory, propose=propose)
        self._memory[snapshot.topology] = after
        if proposed is not None and after.target is None:
            self._note_in_vain(snapshot)
        return decision

    @property
    def memoryless(self) -> Policy:
        """What it comes down to without a target."""
        return safe

    @property
    def remembered(self) -> Remembered:
        """What it remembers now; only valid until the next decision."""
        return Remembered(self._memory, self._in_vain, self._found or None)

    def recall(self, remembered: Remembered) -> None:
        """Remember this and nothing else.

        Parameters
        ----------
        remembered : Remembered
            As taken from another one.
        """
        self._memory = dict(remembered.memory)
        self._in_vain = dict(remembered.in_vain)
        self._found = dict(remembered.found or {})

    def _search_for(self, question: Question) -> None:
        """Search, unless something is found already or this placement was lately in vain."""
        snapshot = question.snapshot
        place, since_s = self._in_vain.get(snapshot.topology, (0, 0.0))
        rests = place == digest(snapshot.place) and 0 <= snapshot.time_s - since_s < RETRY_S
        if rests or snapshot.topology in self._found:
            return
        answer = self._search(question)
        if answer is not None and answer.target is None:
            self._note_in_vain(snapshot)
        elif answer is not None and answer.target is not None:
            self._found[snapshot.topology] = answer.target, JUDGED_AFTER

    def _ripe(self, topology: str, *, still: bool) -> Target | None:
        """Give what was found once its time has come."""
        if topology not in self._found:
            return None
        found, left = self._found.pop(topology)
        if still or not left:
            return found
        self._found[topology] = found, left - 1
        return None

    def _note_in_vain(self, snapshot: LoadSnapshot) -> None:
        self._in_vain[snapshot.topology] = digest(snapshot.place), snapshot.time_s
