"""What a try is allowed to do, what it did, and what is wrong with that."""

from dataclasses import dataclass

from deploy.lab.ledger import Totals

MOVED, UNDONE, VOID = "MOVED", "UNDONE", "VOID"
NO_MOVE = "-"
# Of the shares at which the paper 004 counts seconds, the one that its text names.
DEGRADED_FRAC = 0.6
# With a lost session it is unknown how the move ended; the executor is at one of its ends.
UNTOLD = {UNDONE: "AT_SOURCE", MOVED: "AT_TARGET"}


@dataclass(frozen=True, slots=True)
class Expected:
    """The limits of a try.

    Attributes
    ----------
    within_s : float
        From the lifting of the fault until all is whole.
    tuples_fail : bool
        Whether the fault itself may cost tuples, which a source that replays would send again.
    spouts_end : bool
        Whether spouts may end, and their account of tuples in flight with them.
    storm_restarts : bool
        Whether Storm itself restarts workers, apart from those that the fault kills.
    services_end : bool
        Whether agents, controllers or daemons may end, apart from those that the fault kills.
    undo_while_held : bool
        Whether the move may be undone before the fault is lifted.
    """

    outcomes: frozenset[str] = frozenset({MOVED})
    within_s: float = 60.0
    tuples_fail: bool = False
    spouts_end: bool = False
    storm_restarts: bool = False
    services_end: bool = False
    undo_while_held: bool = True


@dataclass(frozen=True, slots=True)
class Window:
    """A plain move under load, drained."""

    emitted: int
    acked: int
    failed: int
    words_emitted: int
    words_counted: int

    @classmethod
    def between(cls, before: Totals, after: Totals) -> "Window":
        """Give what was counted between two rests."""
        return cls(
            after.emitted - before.emitted,
            after.acked - before.acked,
            after.failed - before.failed,
            after.words_emitted - before.words_emitted,
            after.words_counted - before.words_counted,
        )

    @property
    def flaw(self) -> str | None:
        """List what is not as it should be."""
        whole = 0 < self.emitted == self.acked and self.failed == 0
        return None if whole and self.words_emitted == self.words_counted else str(self)


@dataclass(slots=True)
class Seen:
    """What a try did.

    Attributes
    ----------
    load : float
        The machine's load average when the fault struck.
    recovered_s : float or None
        From the lifting of the fault until all was whole; None if it never was.
    undone_while_held : bool
        Whether the plan had the move in UNDO before the fault was lifted.
    gap_s : float or None
        The longest time without an ack, from the fault until all was whole; None if not taken.
    degraded_s : int or None
        Seconds of that time whose rate fell by `DEGRADED_FRAC` or more.
    failed, lost, double_acked : int
        Sentences: a source that replays would send failed ones again; lost are those of dead
        spouts, whose fate is unknown.
    forwarded, dropped : int
        Late tuples, by the workers that lived on.
    restarts : int
        Workers that came and were not restarts of those that the fault killed.
    services_ended : int
        Agents, controllers and daemons, likewise.
    window : Window or None
        What was counted around the plain move afterwards; None if it did not come to that.
    """

    move: str = NO_MOVE
    load: float = 0.0
    outcome: str = NO_MOVE
    recovered_s: float | None = None
    flaw: str = ""
    undone_while_held: bool = False
    gap_s: float | None = None
    degraded_s: int | None = None
    failed: int = 0
    lost: int = 0
    double_acked: int = 0
    forwarded: int = 0
    dropped: int = 0
    restarts: int = 0
    services_ended: int = 0
    window: Window | None = None
    next_move: str = NO_MOVE
    next_restarts: int = 0


def judge(expected: Expected, seen: Seen) -> list[str]:
    """List in what a try was not as expected; nothing if it was."""
    wrong = []
    if seen.outcome not in expected.outcomes:
        wrong.append(f"outcome {seen.outcome}, not {' or '.join(sorted(expected.outcomes))}")
    if seen.recovered_s is None:
        wrong.append(f"not whole within {expected.within_s:.0f} s: {seen.flaw}")
    if seen.undone_while_held and not expected.undo_while_held:
        wrong.append("undone while an end could not be heard")
    if not expected.tuples_fail and (seen.failed or seen.dropped):
        wrong.append(f"{seen.failed} failed, {seen.dropped} dropped")
    if not expected.spouts_end and seen.lost:
        wrong.append(f"{seen.lost} lost")
    if seen.double_acked:
        wrong.append(f"{seen.double_acked} acked twice")
    if seen.restarts and not expected.storm_restarts:
        wrong.append(f"{seen.restarts} workers restarted")
    if seen.services_ended and not expected.services_end:
        wrong.append(f"{seen.services_ended} services ended")
    if seen.recovered_s is not None:
        wrong += _afterwards(seen)
    return wrong


def _afterwards(seen: Seen) -> list[str]:
    wrong = []
    if seen.window is None or seen.window.flaw:
        wrong.append(f"next move: {seen.window and seen.window.flaw}")
    if seen.next_move != MOVED or seen.next_restarts:
        wrong.append(f"next move {seen.next_move}, {seen.next_restarts} workers restarted")
    return wrong
