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
RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Remembered:
    """What `Targeting` remembers.

    Attributes
    ----------
    memory : mapping of str to Memory
        What the last decision left, by topology.
    in_vain : mapping of str to (int, float)
        Placement and Unix seconds of the last search that found nothing, by topology.
    """

    memory: Mapping[str, Memory] = field(default_factory=dict)
    in_vain: Mapping[str, tuple[int, float]] = field(default_factory=dict)


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
        if before is None or before.load == memory.load:
            # Nothing jitters, as in a file: no room has to be left for it.
            options = replace(options, fill_frac=1.0)

        def propose() -> Target | None:
            return self._propose(Question(cluster, snapshot, limits, options, memory.seen))

        decision, self._memory[snapshot.topology] = target(
            cluster, snapshot, limits, options, memory=memory, propose=propose
        )
        return decision

    @property
    def memoryless(self) -> Policy:
        """What it comes down to without a target."""
        return safe

    @property
    def remembered(self) -> Remembered:
        """What it remembers now; only valid until the next decision."""
        return Remembered(self._memory, self._in_vain)

    def recall(self, remembered: Remembered) -> None:
        """Remember this and nothing else.

        Parameters
        ----------
        remembered : Remembered
            As taken from another one.
        """
        self._memory = dict(remembered.memory)
        self._in_vain = dict(remembered.in_vain)

    def _propose(self, question: Question) -> Target | None:
        snapshot = question.snapshot
        place, since_s = self._in_vain.get(snapshot.topology, (0, 0.0))
        now = digest(snapshot.place)
        if place == now and 0 <= snapshot.time_s - since_s < RETRY_S:
            return None
        answer = self._search(question)
        if answer is not None and answer.target is None:
            self._in_vain[snapshot.topology] = now, snapshot.time_s
        return None if answer is None else answer.target
