"""The limits of a decision: of load, of gain, and of its moves."""

from dataclasses import dataclass, replace

from controller.core.readable import readable
from migration.settings import DEFAULT, setting

# Gains closer than this share of all traffic tie, and ids decide.
TIE = 1e-9
# The gain of one executor falls with their number. Of a thousand hardly any has 0.2 % of all
# traffic to gain, and together they have most of it.
FULL_SHARE_EXECUTORS = 40
# Below twice the gain and the price, ways under noise were many and broke off: decision 0065.
JITTER_TIMES = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a decision: of load, of gain, and of its moves."""

    high_frac: float = setting("load.high")  # of a worker's CPU
    low_frac: float = setting("load.low")  # of a worker's CPU
    # By what factor the input should be able to grow, also on the way to another placement.
    headroom_min: float = setting("headroom.min")
    # A move for traffic must gain more than this share of all traffic. With more executors than
    # `FULL_SHARE_EXECUTORS` it is this share of the traffic of that many.
    gain_frac: float = setting("asc.threshold")
    gain_tps: float | None = setting("asc.threshold.tps")  # wins over the share
    # What traffic between nodes and between workers counts for `gather`.
    weight_node: float = setting("weight.node")
    weight_worker: float = setting("weight.worker")
    # How many moves one decision may have; a policy that lists a whole placement ignores it.
    max_moves: int = DEFAULT["max.moves.per.cycle"]
    # Whether a decision without a move looks once more for what came closest, to name it. If not,
    # the outcome may be NOTHING_TO_GAIN in place of a better reason.
    explain: bool = True

    @property
    def where_loads_jitter(self) -> "Limits":
        """Let a move for traffic gain twice as much: most that gain less are noise."""
        gain_tps = None if self.gain_tps is None else JITTER_TIMES * self.gain_tps
        return replace(self, gain_frac=JITTER_TIMES * self.gain_frac, gain_tps=gain_tps)

    @property
    def gain_unit(self) -> str:
        """Unit of gains: traffic between nodes alone is tuples, else the weights are in it."""
        literal = self.weight_node == 1 and not self.weight_worker
        return "t/s" if literal else "weighted t/s"

    def gain(self, tps: float) -> str:
        """Write a gain, with its unit."""
        return f"{readable(tps)} {self.gain_unit}"

    def threshold_tps(self, total_tps: float, executors: int) -> float:
        """Compute the tuples per second that a move for traffic must exceed."""
        if self.gain_tps is not None:
            return self.gain_tps
        return self.gain_frac * total_tps * min(1.0, FULL_SHARE_EXECUTORS / max(executors, 1))
