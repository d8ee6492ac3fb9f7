"""Keeps finished rounds in a file, so that an interrupted benchmark goes on with them.

The ids of supervisors are others in each lab. So a placement is kept with names that follow from
it: nodes and slots are numbered in the order in which the executors name them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deploy.lab.figures import Figures
from deploy.lab.pairing import Pair, SlotOf, known
from migration.model import ExecutorId, Slot
from tests.bench import frame


@dataclass(frozen=True, slots=True)
class Target:
    """The placement of a policy.

    Attributes
    ----------
    storm, new : mapping of str to str
        Slot by executor, Storm's placement and the policy's, with names from `names_of`.
    steps : tuple of (str, str)
        The moves that lead there, in order: executor and slot.
    """

    storm: Mapping[str, str]
    new: Mapping[str, str]
    steps: tuple[tuple[str, str], ...]
    reason: str


class Rounds(frame.Kept):
    """The finished pieces of a run, by case and policy."""

    def add(self, case: str, policy: str, **piece: Any) -> None:
        """Write a finished piece down."""
        self.append({"case": case, "policy": policy, **piece})

    def add_pair(self, case: str, policy: str, pair: Pair, load_average: float) -> None:
        """Write a finished round down."""
        self.add(case, policy, pair=asdict(pair), load_average=load_average)

    def target(self, case: str, policy: str) -> Target | None:
        """Give the placement that finished rounds were taken with."""
        told = self._of(case, policy, "target")
        if not told:
            return None
        found = told[0]["target"]
        steps = tuple((executor, slot) for executor, slot in found["steps"])
        return Target(found["storm"], found["new"], steps, found["reason"])

    def pairs(self, case: str, policy: str) -> list[Pair]:
        """Give the finished rounds."""
        found = (row["pair"] for row in self._of(case, policy, "pair"))
        return [Pair(Figures(**pair["a"]), Figures(**pair["b"])) for pair in found]

    def lack_pairs(self, case: str, policy: str, most: int) -> bool:
        """Check whether rounds are still to be taken, `most` in all."""
        target, pairs = self.target(case, policy), self.pairs(case, policy)
        if target is None:
            return True
        return target.new != target.storm and len(pairs) < most and not known(pairs)

    def lack_cycles(self, case: str, policy: str) -> bool:
        """Check whether the way to the placement is still to be measured."""
        target = self.target(case, policy)
        return target is None or (bool(target.steps) and not self.cycles(case, policy))

    def cycles(self, case: str, policy: str) -> list[dict[str, Any]]:
        """Give what was measured at first and after each move on the way to the placement."""
        return [cycle for row in self._of(case, policy, "cycles") for cycle in row["cycles"]]

    def tuples(self, case: str) -> list[dict[str, int]]:
        """Give the fate of all sentences, and what Storm restarted, of each lab of a case."""
        return [row["tuples"] for row in self._of(case, "", "tuples")]

    def load_averages(self, case: str, policy: str) -> list[float]:
        """Give the machine's load average at the end of each round."""
        return [row["load_average"] for row in self._of(case, policy, "pair")]

    def _of(self, case: str, policy: str, kind: str) -> list[dict[str, Any]]:
        mine = [row for row in self.rows if (row["case"], row["policy"]) == (case, policy)]
        return [row for row in mine if kind in row]


def names_of(slot_of: SlotOf) -> dict[Slot, str]:
    """Name the slots of a placement: "n1:2" is the second that is named on the first node."""
    nodes: dict[str, list[Slot]] = {}
    for executor in sorted(slot_of):
        slots = nodes.setdefault(slot_of[executor].supervisor, [])
        if slot_of[executor] not in slots:
            slots.append(slot_of[executor])
    return {
        slot: f"n{node}:{place}"
        for node, slots in enumerate(nodes.values(), 1)
        for place, slot in enumerate(slots, 1)
    }


def named(slot_of: SlotOf, names: Mapping[Slot, str]) -> dict[str, str]:
    """Write a placement down with names."""
    return {str(executor): names[slot_of[executor]] for executor in sorted(slot_of)}


def unnamed(placement: Mapping[str, str], names: Mapping[Slot, str]) -> dict[ExecutorId, Slot]:
    """Read a placement with names."""
    slots = {name: slot for slot, name in names.items()}
    return {ExecutorId.parse(executor): slots[name] for executor, name in placement.items()}
