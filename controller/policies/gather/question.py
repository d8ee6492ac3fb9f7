"""The question of `gather`: which placement is worth going to."""

from dataclasses import dataclass

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.limits import Limits
from controller.policies.gather.evaluate import find
from controller.policies.gather.goal import Answer
from controller.policies.gather.problem import TargetOptions


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
        return find(self.cluster, self.snapshot, self.limits, self.options, self.seen)
