"""The controls that operators set at run time: modes, pauses, a freeze, unwanted moves."""

from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from controller.core.times import utc

# In the order of how far they go.
ModeName = Literal["observe", "advise", "approve", "auto"]
EVERYWHERE = ""  # in place of a topology's name
_MOST_REASONS = 5  # of pauses that were joined


class Pause(Struct, frozen=True):
    """That no decision may begin a move, and why."""

    reason: str
    until_s: float | None = None  # Unix seconds; None: until an operator ends it

    def after(self, before: "Pause | None") -> "Pause":
        """Join it with the one that holds: the later end counts, and the last reasons stand."""
        if before is None:
            return self
        reasons = dict.fromkeys(f"{before.reason}; {self.reason}".split("; "))
        reason = "; ".join([*reasons][-_MOST_REASONS:])
        if before.until_s is None or self.until_s is None:
            return Pause(reason)
        return Pause(reason, max(before.until_s, self.until_s))

    def __str__(self) -> str:
        until = "" if self.until_s is None else f", until {utc(self.until_s)}"
        return f"{self.reason}{until}"


class Rejected(Struct, frozen=True):
    """A proposal that an operator did not want."""

    topology: str  # its id
    executors: tuple[str, ...]
    until_s: float  # Unix seconds


class Controls(Struct, frozen=True):
    """All of it; topologies stand by name, so that a new submission keeps what was set."""

    modes: dict[str, ModeName] = {}
    pauses: dict[str, Pause] = {}
    freeze: Pause | None = None  # as a pause, and operators may not move anything either
    rejected: dict[str, Rejected] = {}  # by id of the proposal

    def mode_of(
        self, name: str, own: str | None, otherwise: str, most: str | None = None
    ) -> tuple[str, str]:
        """Give the mode of a topology, and who has set it.

        `own` is the mode in its configuration, which its submitter writes; `otherwise` that of the
        controller, and `most` the limit of the own one.
        """
        if said := self.modes.get(name) or self.modes.get(EVERYWHERE):
            return said, "nstorm mode"
        if not own:
            return otherwise, "nstorm.mode"
        known = get_args(ModeName)
        if most is not None and own in known and known.index(own) > known.index(most):
            return most, "nstorm.mode.max"
        return own, "topology.nstorm.mode"

    def in_force(self, time_s: float) -> "Controls":
        """Leave out what has ended."""
        return replace(
            self,
            pauses={name: one for name, one in self.pauses.items() if _holds(one, time_s)},
            freeze=self.freeze if _holds(self.freeze, time_s) else None,
            rejected={name: one for name, one in self.rejected.items() if time_s < one.until_s},
        )

    def frozen(self, time_s: float) -> str | None:
        return f"frozen: {self.freeze}" if _holds(self.freeze, time_s) else None

    def held(self, name: str, time_s: float) -> str | None:
        """Return why decisions may move nothing of a topology now."""
        pauses = (self.pauses.get(EVERYWHERE), self.pauses.get(name))
        paused = (f"paused: {one}" for one in pauses if _holds(one, time_s))
        return self.frozen(time_s) or next(paused, None)

    def unwanted(self, topology: str, time_s: float) -> dict[str, str]:
        """Name the executors, by id, whose moves an operator has recently rejected, and why."""
        return {
            executor: f"an operator has rejected {proposal}, which moves {executor}"
            for proposal, one in self.rejected.items()
            if one.topology == topology and time_s < one.until_s
            for executor in one.executors
        }


NOTHING_SET = Controls()


def _holds(pause: Pause | None, time_s: float) -> bool:
    return pause is not None and (pause.until_s is None or time_s < pause.until_s)
