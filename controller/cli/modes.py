"""``nstorm mode``, ``approve`` and ``reject``: how far the controller goes alone."""

from typing import Annotated

import typer
from msgspec.structs import asdict, replace

from controller.cli.asking import ask, confirm, connected, end, operator
from controller.cli.running import Conf
from controller.cli.views import name_of, topologies
from controller.core.controls import EVERYWHERE, Controls, Rejected
from controller.core.decision import Outcome
from controller.core.times import DAY_S
from controller.errors import CommandError
from controller.journal.rows import rows_of
from controller.output import Output, OutputOption, tell
from controller.storm import controls
from controller.storm.command_record import Command
from controller.storm.leader_status import CycleStatus, LeaderStatus, Proposal, read
from kvstore.zookeeper import Session
from migration import storm_yaml
from migration.model import topology_name

ProposalId = Annotated[str, typer.Argument(metavar="ID", help="As `nstorm status` shows it.")]


def mode(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[TOPOLOGY] MODE", help="observe, advise, approve, auto; default removes it."
        ),
    ],
    conf: Conf,
    output: OutputOption = Output.TABLE,
) -> None:
    """Set how far the controller goes without an operator.

    Without TOPOLOGY the mode is for every topology without a mode of its own from this command. It
    persists over restarts, new leaders, and new submissions under the same name. It takes
    precedence over the topology's own configuration.
    """
    # Late: `approve` and `reject` need none of the settings.
    from controller.config import Mode, from_storm_yaml  # noqa: PLC0415

    chosen = words[-1]
    if len(words) > 2 or chosen not in (*Mode, "default"):
        raise CommandError(f"type [TOPOLOGY] MODE; MODE is one of {', '.join(Mode)}, default")
    config, _ = storm_yaml.read_as(conf, from_storm_yaml)
    with connected(conf) as session:
        leads = read(session)  # before anything is changed
        # As the leader decides: its settings may be others than those of this machine.
        usual = leads.mode or config.mode
        if len(words) == 1 and (usual if chosen == "default" else chosen) == Mode.AUTO:
            confirm("Begin moves alone in each topology without a mode of its own?")
        views = topologies(session)
        set_now = controls.read(session.read(controls.CONTROLS)).modes
        kept = set_now if chosen == "default" else ()
        name = name_of(views, words[0], kept) if len(words) > 1 else EVERYWHERE

        def edit(before: Controls) -> Controls:
            modes = {n: m for n, m in before.modes.items() if n != name}
            return replace(before, modes=modes if chosen == "default" else {**modes, name: chosen})

        after = controls.change(session, edit)
    most, guards = leads.mode_max or config.mode_max or usual, _guards(leads)
    now = {
        of.name: after.mode_of(of.name, of.mode, usual, most)
        for of in (view.publication for view in views)
        if name in (EVERYWHERE, of.name)
    }
    tell(
        output,
        {
            "topology": name,
            "mode": chosen,
            "now": [
                {"topology": of, "mode": m, "by": by, "guards": guards.get(of, [])}
                for of, (m, by) in now.items()
            ],
        },
        f"{name or 'every topology without a mode of its own'}: {chosen}",
        *(f"{of} is in mode {' by '.join(found)}" for of, found in now.items()),
        *(
            f"{of} is guarded: {'; '.join(guards.get(of, ())) or 'by no limit of nstorm.guard'}"
            for of, (m, _) in now.items()
            if m == Mode.AUTO
        ),
    )


def _guards(leads: LeaderStatus) -> dict[str, list[str]]:
    """Give how the guards of topologies stand, by name, as the leader last read them."""
    return {
        topology_name(one.topology): list(map(str, rows_of(one.guards))) for one in leads.cycles
    }


def approve(proposal: ProposalId, conf: Conf, output: OutputOption = Output.TABLE) -> None:
    """Begin exactly the moves of a proposal, or refuse with the reason.

    A proposal can be approved for 10 minutes after it was last shown. Its moves must still be
    allowed and fit, and the policy must still want a move.
    """
    with connected(conf) as session:
        found, now = _proposal(session, proposal)
        if now.outcome not in (Outcome.AWAITING_APPROVAL, Outcome.MOVE_IN_FLIGHT):
            moves = ", ".join(f"{e} from {at} to {to}" for e, at, to in found.moves)
            raise CommandError(f"{proposal} was to move {moves}; now {now.outcome}: {now.reason}")
        wish = Command(
            found.topology,
            moves=found.moves,
            what=proposal,
            by=f"{operator()}, who approved {proposal}",
            why=found.reason,
        )
        last = ask(session, wish, output, until_begun=True)
    raise typer.Exit(end(last, output, f"approval of {proposal}"))


def reject(proposal: ProposalId, conf: Conf, output: OutputOption = Output.TABLE) -> None:
    """Reject a proposal: its executors stay where they are for a day."""
    with connected(conf) as session:
        found, _ = _proposal(session, proposal)
        executors = tuple(executor for executor, _, _ in found.moves)
        made = Rejected(found.topology, executors, controls.clock_s(session) + DAY_S)
        controls.change(session, lambda c: replace(c, rejected={**c.rejected, proposal: made}))
    tell(
        output,
        asdict(made),
        f"rejected: {', '.join(executors)} of {made.topology} will not be moved for a day",
    )


def _proposal(session: Session, proposal: str) -> tuple[Proposal, CycleStatus]:
    """Find a proposal, and how the last decision about its topology ended."""
    status = read(session)
    found = status.proposals.get(proposal)
    if found is None:
        raise CommandError(f"no proposal {proposal} waits; `nstorm status` lists the proposals")
    none = CycleStatus(outcome="not seen", reason="the last cycle had no such topology")
    return found, status.cycle_of.get(found.topology, none)
