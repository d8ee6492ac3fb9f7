"""The proposals that operators may approve."""

from collections.abc import Iterable

from controller.report import TopologyReport
from controller.storm.history import LONGEST_REASON
from controller.storm.leader_status import Proposal

# How long a proposal may be approved after it was last shown, and how many may be at a time.
SHOWN_S = 600.0
MOST_PROPOSALS = 50


class Proposals:
    """Keeps what was proposed for a while, though loads jitter."""

    def __init__(self) -> None:
        self.shown: dict[str, Proposal] = {}  # by id, the newest last

    def show(self, reports: Iterable[TopologyReport], time_s: float) -> None:
        """Take in the proposals of a cycle; `time_s` are its Unix seconds."""
        for one in reports:
            if one.proposal:
                self.shown.pop(one.proposal, None)
                self.shown[one.proposal] = Proposal(
                    one.topology,
                    tuple((move.executor, move.source, move.target) for move in one.moves),
                    one.reason[:LONGEST_REASON],
                    one.time_s,
                )
        oldest_s = time_s - SHOWN_S
        kept = [pair for pair in self.shown.items() if pair[1].shown_s >= oldest_s]
        self.shown = dict(kept[-MOST_PROPOSALS:])
