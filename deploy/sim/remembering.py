"""A policy with its memory of each topology, asked like a rule."""

from typing import Any

from controller.core.cluster import Cluster, LoadSnapshot
from controller.core.decision import Decision
from controller.core.limits import Limits
from controller.core.policy import Case, Policy, Search, Searching, search_inline
from controller.policies.gather.policy import Gather
from controller.policies.options import TargetOptions


class Remembering:
    def __init__(self, policy: Policy[Any], search: Search = search_inline) -> None:
        self.policy: Policy[Any] = Searching(policy, search)
        self.memories: dict[str, Any] = {}  # by topology

    def __call__(self, cluster: Cluster, snapshot: LoadSnapshot, limits: Limits) -> Decision:
        case, topology = Case(cluster, snapshot, limits), snapshot.topology
        decided = self.policy.decide(case, self.memories.get(topology))
        self.memories[topology] = decided.memory
        return decided.decision


def gather(options: TargetOptions | None = None, search: Search = search_inline) -> Remembering:
    return Remembering(Gather(options or TargetOptions()), search)
