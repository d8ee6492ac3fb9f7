"""What is shown of a topology, as records: commands read them without what works them out."""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType, structs

# So that quotients stay finite; what is less counts as nothing.
LEAST = 1e-15
# Of a load that is so small a part of its peak, little follows for the peak.
MOST_TIMES = 10.0
# How sure it is, as a share, what hops cost before anything has moved. A machine where they cost
# twice as much is two deviations off.
PRIOR_DEVIATION = 0.5


class SpoutFigures(Struct, frozen=True):
    """The tuples of a topology's spouts; None where it is not known.

    Nothing is known without ackers, where spouts want no acks, and of hooks that do not count them.
    The times are of about the last minute.
    """

    acked_tps: float | None = None
    failed_tps: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None


NOT_KNOWN = SpoutFigures()


class Peak(Struct, frozen=True):
    """The highest input that the room for a topology is counted with, in tuples per second."""

    input_tps: float = 0.0  # of now
    peak_tps: float = 0.0
    hours: int = 0  # in which it was measured

    @property
    def times(self) -> float:
        """By what factor the input was higher than it is now; 1 if it was not."""
        return min(max(self.peak_tps / max(self.input_tps, LEAST), 1.0), MOST_TIMES)

    def __str__(self) -> str:
        return (
            f"peaks of {self.hours} h: {self.peak_tps:,.4g} tuples/s of input, "
            f"and {self.input_tps:,.4g} now"
        )


class Headroom(Struct, frozen=True):
    """By what factor the input may grow, and what binds: a CPU, a link in one direction, or a heap.

    Below 1 something is over-used already; factor and `binds` are None if nothing is used at all.
    """

    factor: float | None = None
    binds: str | None = None
    where: str = ""

    def and_after(self, then: "Headroom | None") -> str:
        """Write out what is left now, and after moves; empty if nothing is used."""
        if self.factor is None:
            return ""
        text = f"{self.factor:.3g} times the input, then {self.binds} of {self.where}"
        if then is None or then.factor is None:
            return text
        return f"{text}; after the moves {then.factor:.3g} times, then {then.binds} of {then.where}"


class HopFigures(Struct, frozen=True):
    """What hops cost a topology, as times the lab's, and how the last run of moves compares."""

    times: float = 1.0
    prior_times: float = 1.0  # before a run of moves
    deviation: float = PRIOR_DEVIATION
    runs: int = 0  # of moves that it was learnt from
    # By what share the last run has changed the CPU of a tuple, by what was known before it, and as
    # measured; None without one.
    predicted_change: float | None = None
    measured_change: float | None = None

    @property
    def doubt(self) -> float:
        """One standard deviation of what hops cost, as a share of it."""
        return self.deviation / max(self.times, self.deviation, LEAST)

    def __str__(self) -> str:
        if not self.runs:
            cost = "as in the lab"
            if self.prior_times > 1:
                cost = (
                    f"{self.prior_times:.2f} times the lab's, by the CPU of the threads that send "
                    "and read tuples"
                )
            return f"{cost}: no run of moves has shown another cost yet"
        shown = f"{self.times:.2f} ± {2 * self.deviation:.2f} times the lab's"
        shown += f", by {self.runs} run{'s' * (self.runs != 1)} of moves"
        if self.predicted_change is None or self.measured_change is None:
            return shown
        return (
            f"{shown}; the last one changed the CPU of a tuple by {self.measured_change:+.1%}, "
            f"predicted {self.predicted_change:+.1%}"
        )


class GuardState(StrEnum):
    HOLDS = "holds"
    ABOVE = "above"
    BREACHED = "breached"
    NOT_READ = "not read"


class GuardRow(Struct, frozen=True):
    """How a guard of a topology stands."""

    name: str
    limit: float
    secs: float
    state: GuardState
    value: float | None = None
    above_s: float = 0.0  # for how long it has been exceeded
    problem: str = ""

    def __str__(self) -> str:
        if self.state is GuardState.NOT_READ:
            return f"{self.name} cannot be read: {self.problem}"
        if self.state is GuardState.HOLDS:
            return f"{self.name} is {self.value:,.4g}, and may be {self.limit:,.4g}"
        return (
            f"{self.name} is {self.value:,.4g}, above {self.limit:,.4g} for {self.above_s:.0f} s, "
            f"and may be so for {self.secs:.0f} s"
        )


# The change of CPU in `Effect.changes`.
CPU_BY_INPUT = "cpu_s_per_input"


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference seen"
    UNKNOWN = "not known"


class Change(Struct, frozen=True):
    """The mean before, what it is after, and by how much the difference may be chance.

    What the input and a trend have changed is taken out of `after`, but for the input itself.
    """

    before: float
    after: float
    error: float
    least: float = 0.0  # a smaller difference is no reason to keep moves or to take them back

    @property
    def sign(self) -> int:
        """1 if it has risen, -1 if it has fallen, 0 if that may be chance or is next to nothing."""
        difference = self.after - self.before
        if abs(difference) <= max(self.error, self.least):
            return 0
        return 1 if difference > 0 else -1


class Effect(Struct, frozen=True):
    """What a run of moves has changed, as far as it is known now."""

    verdict: Verdict
    sentence: str
    moves: tuple[str, ...] = ()  # their ids
    begun_s: float = 0.0  # Unix seconds; so is the next
    ended_s: float | None = None  # None while moves are under way
    is_final: bool = False  # nothing is measured any more
    changes: dict[str, Change] = {}  # by `Measure.name`
    # By what factor the CPU for each input tuple was to change; None where it is not known.
    predicted_cpu: float | None = None
    end: str = ""  # whether the moves were kept, or why not; empty while they are judged
    # Up to where from where the input is like it was, in tuples/s, where executors were taken back.
    like_tps: tuple[float, float] | None = None
    before: int | UnsetType = UNSET  # moves of the run before `moves`, where these were cut

    @property
    def count(self) -> int:
        """All moves of the run."""
        return len(self.moves) + (0 if self.before is UNSET else self.before)

    @property
    def measured_cpu(self) -> float | None:
        """By what factor the CPU for each input tuple has changed; None where it is not known."""
        cpu = self.changes.get(CPU_BY_INPUT)
        return cpu.after / cpu.before if cpu is not None and cpu.before else None

    def __str__(self) -> str:
        facts = [self.sentence]
        if self.predicted_cpu is not None:
            facts.append(f"predicted was CPU {percent(self.predicted_cpu)}")
        head = f"{self.verdict}, {self.end}" if self.end else str(self.verdict)
        return f"{head}: {'; '.join(facts)}"

    def cut_to(self, most: int) -> "Effect":
        """Name only the last moves."""
        before = max(len(self.moves) - most, 0) or UNSET
        return structs.replace(self, moves=self.moves[-most:], before=before)


def percent(factor: float) -> str:
    """Write by how much a factor changes a number."""
    percent = 100 * (factor - 1)
    return f"{'−' if percent < 0 else '+'}{abs(percent):.1f} %"
