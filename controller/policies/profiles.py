"""What was measured beforehand, for the policies of papers that plan from it; a file gives it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import force_setattr

from controller.core.figures import LEAST
from controller.core.quantities import Count, Name, Quantity


@dataclass(frozen=True, slots=True)
class Machine:
    """A node as a policy knows it that compares machines.

    `kind` is the type that profiles name, empty if unknown; `speed_hz` is clock rate times cores, 0
    if unknown.
    """

    kind: str = ""
    speed_hz: float = 0.0


class Given(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a snapshot, as it is given in a file."""

    def __post_init__(self) -> None:
        for key in self.__struct_fields__:
            value = getattr(self, key)
            if isinstance(value, float) and value < LEAST:
                force_setattr(self, key, 0.0)


class Performance(
    Given, rename={"rate_tps": "rate", "cpu_frac": "cpu", "memory_frac": "memory"}, frozen=True
):
    """The rate that some threads of a component reach on a slot of their own (001, table P).

    `rate_tps` is the highest stable input rate; the shares of the slot are those at that rate.
    """

    threads: Count
    rate_tps: Quantity
    cpu_frac: Quantity
    memory_frac: Quantity


class Cost(Given, rename={"overhead_frac": "overhead"}, frozen=True):
    """The cost of one instance of a component on one kind of machine (000, equation 1).

    `ms_per_tuple` is CPU time; `overhead_frac` is the share of the machine that an instance takes
    without any tuple.
    """

    machine: Name
    ms_per_tuple: Quantity
    overhead_frac: Quantity


class Profile(Given, frozen=True):
    """A component as it was measured beforehand; only some policies need it."""

    selectivity: Quantity = 1.0  # tuples out, to every consumer, for one tuple in
    performance: tuple[Performance, ...] = ()  # by rising number of threads
    costs: tuple[Cost, ...] = ()  # one a kind of machine


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles of a topology and of its nodes, and the input to plan for."""

    components: Mapping[str, Profile] = field(default_factory=dict)  # where measured
    machines: Mapping[str, Machine] = field(default_factory=dict)  # by node, where known
    rate_tps: float | None = None  # of every spout together; None: as it is


NONE = Profiles()
