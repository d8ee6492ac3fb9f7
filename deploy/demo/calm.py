"""Finds when the controller has done its work: ten cycles in a row that bring no move."""

from dataclasses import dataclass

from controller.core.decision import Outcome

QUIET_CYCLES = 10
# Whatever rests or settles, there is nothing to gain.
_QUIET = frozenset({Outcome.NOTHING_TO_GAIN, Outcome.BELOW_THRESHOLD})
# The best move is forbidden for ever. While executors rest after a move, a second best one may come
# once they have rested, so only then is this an end.
_BARRED = frozenset(
    {
        Outcome.LAST_IN_WORKER,
        Outcome.NO_LOW_WORKER,
        Outcome.NO_WORKER_IN_SLOT,
        Outcome.EXCLUDED,
    }
)


@dataclass(frozen=True, slots=True)
class Calm:
    """How many cycles in a row have brought no move.

    Attributes
    ----------
    tick : int
        The newest cycle that was seen; -1 before the first.
    """

    tick: int = -1
    quiet_cycles: int = 0

    @property
    def reached(self) -> bool:
        """Whether the controller has come to rest."""
        return self.quiet_cycles >= QUIET_CYCLES

    def after(self, tick: int, outcome: str, *, resting: bool, searching: bool = False) -> "Calm":
        """Take a look at the newest cycle, the same one twice if need be.

        Parameters
        ----------
        resting : bool
            Whether an executor settles or cools down from a move.
        searching : bool
            Whether a search runs, or what it found is still to be judged.

        Returns
        -------
        Calm
            What is known then. Anything but a quiet cycle, and a cycle that was missed, restarts
            the count: COOLDOWN and MOVE_IN_FLIGHT are waiting, not rest.
        """
        if tick == self.tick:
            return self
        quiet = not searching and (outcome in _QUIET or (outcome in _BARRED and not resting))
        before = self.quiet_cycles if tick == self.tick + 1 else 0
        return Calm(tick, before + 1 if quiet else 0)
