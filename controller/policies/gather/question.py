"""The question of `gather`: which placement is worth going to."""

from dataclasses import dataclass, replace

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.fit import Fit
from controller.core.limits import Limits
from controller.policies.gather.evaluate import find
from controller.policies.gather.goal import Answer
from controller.policies.options import TargetOptions


@dataclass(frozen=True, slots=True)
class TargetQuestion:
    cluster: Cluster
    snapshot: LoadSnapshot
    limits: Limits
    options: TargetOptions
    seen: frozenset[int]

    @property
    def topology(self) -> str:
        return self.snapshot.topology

    @property
    def failed(self) -> Answer:
        return Answer(None)

    def answer(self) -> Answer:
        found = find(self.cluster, self.snapshot, self.limits, self.options, self.seen)
        at_best = Fit.of(self.cluster, self.snapshot, self.limits).growth_at_best
        return replace(found, at_best=at_best)
