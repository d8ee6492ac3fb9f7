"""What `nstorm report` finds: a document for programs, and for the page."""

from msgspec import Struct

from controller.weeks.auto import Gained
from controller.weeks.disturbed import Disturbed, Full
from controller.weeks.hosts import HostLess, SlowHost
from controller.weeks.need import TopologyNeed
from controller.weeks.paid import JudgedRun


class OfHours(Struct, frozen=True):
    """The answers that need no more than the hours of all topologies."""

    begun_s: float  # of the topologies that are shown, in Unix seconds, as the next
    ended_s: float
    needs: tuple[TopologyNeed, ...]
    disturbed: tuple[Disturbed, ...]
    full: tuple[Full, ...]
    hosts: tuple[HostLess, ...]
    slow_hosts: tuple[SlowHost, ...]


class LogReport(Struct, frozen=True):
    """The answers to all questions; each has one or more sentences."""

    about: str
    left_out: tuple[str, ...]  # of the log
    needs: tuple[TopologyNeed, ...]
    disturbed: tuple[Disturbed, ...]
    full: tuple[Full, ...]
    disturbed_lines: tuple[str, ...]
    hosts: tuple[HostLess, ...]
    host_line: str
    slow_hosts: tuple[SlowHost, ...]
    slow_lines: tuple[str, ...]
    gained: tuple[Gained, ...]
    searches: tuple[str, ...]  # what was not searched for
    runs: tuple[JudgedRun, ...]
    run_line: str
