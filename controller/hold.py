"""Holds back what operators, the settings, the hour and the caps do not want moved."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.config import Config, Mode
from controller.core.controls import Controls
from controller.core.decision import Outcome, Veto
from controller.core.excluded import Excluded
from controller.core.topology import TopologyView, hosts_of
from controller.windows import closed


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The restrictions of decisions, whatever the load is; the maps are by topology."""

    modes: Mapping[str, Mode]
    # An operator has asked for a drain, as for a single move: of what holds, only a freeze and an
    # excluded topology hold a drain.
    drains: Mapping[str, Veto]
    policies: Mapping[str, Veto]
    unwanted: Mapping[str, Mapping[str, str]]  # executors that operators want to stay, and why
    excluded: Excluded  # with ids of nodes in place of hosts
    busy_nodes: Mapping[str, Veto]  # that have had all the moves that they may have within an hour

    @property
    def unaided(self) -> frozenset[str]:
        """The topologies whose moves begin without an operator."""
        return frozenset(name for name, mode in self.modes.items() if mode is Mode.AUTO)


def hold_each(
    views: Sequence[TopologyView],
    controls: Controls,
    drained: Iterable[str],  # hosts
    begun: Sequence[tuple[float, str, str]],  # the moves of the last hour, as in `CycleInput`
    settings: Config,
    *,
    time_s: float,
) -> Restrictions:
    """Return for each topology, executor and node what keeps it from being moved."""
    capped, busy_nodes = _caps(begun, settings)
    outside = closed(settings.windows, time_s)
    hosts = hosts_of(views)
    excluded = replace(settings.excluded, drained=frozenset(drained)).on(hosts)
    frozen = controls.frozen(time_s)
    modes: dict[str, Mode] = {}
    drains: dict[str, Veto] = {}
    policies: dict[str, Veto] = {}
    for view in views:
        name = view.publication.name
        if settings.excluded.has_topology(view.id, name):
            veto = Veto(Outcome.EXCLUDED, f"topology {name} is excluded")
            drains[view.id] = policies[view.id] = veto
        word, by = controls.mode_of(
            name, view.publication.mode, settings.mode, settings.mode_max or settings.mode
        )
        is_mode = word in set(Mode)
        mode = modes[view.id] = Mode(word) if is_mode else Mode.OBSERVE
        reason = controls.held(name, time_s) or outside
        if reason is None and not is_mode:
            reason = f"{by} must be one of {', '.join(Mode)}, is {word!r}: only measuring"
        elif reason is None and mode is Mode.OBSERVE:
            reason = "mode is observe: only measuring"
        if frozen is not None:
            drains[view.id] = Veto(Outcome.PAUSED, frozen)
        if reason is not None:
            policies[view.id] = Veto(Outcome.PAUSED, reason)
        elif capped is not None:
            policies[view.id] = capped
    unwanted = {view.id: controls.unwanted(view.id, time_s) for view in views}
    return Restrictions(modes, drains, policies, unwanted, excluded, busy_nodes)


def _caps(
    begun: Sequence[tuple[float, str, str]], settings: Config
) -> tuple[Veto | None, dict[str, Veto]]:
    """Return whether the cluster, and which nodes, have had all their moves of an hour."""
    most, most_of_host = settings.max_moves_hour, settings.max_moves_host_hour
    capped, busy_nodes = None, {}
    if most is not None and len(begun) >= most:
        reason = f"{len(begun)} moves have begun within an hour, {most} may"
        capped = Veto(Outcome.CAPPED, reason)
    if most_of_host is not None:
        exceeded = f"moves from or to it have begun within an hour, {most_of_host} may"
        counts = Counter(node for _, source, target in begun for node in {source, target})
        busy_nodes = {
            node: Veto(Outcome.CAPPED, f"node {node}: {count} {exceeded}")
            for node, count in counts.items()
            if count >= most_of_host
        }
    return capped, busy_nodes
