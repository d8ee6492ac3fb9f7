"""``nstorm agent`` and ``nstorm jar``: what a node can do that has the agent's packages alone."""

from collections.abc import Callable, Mapping, Sequence

import agent.command


def run_agent(arguments: Sequence[str]) -> int:
    """Run the agent of this node; the same as nstorm-agent."""
    return agent.command.main(arguments, "nstorm agent")


def print_jar(arguments: Sequence[str]) -> int:
    """Print where the jar with the hooks is."""
    agent.command.jar_parser("nstorm jar").parse_args(arguments)
    return agent.command.main(["jar"], "nstorm agent")


# Each reads its arguments itself, and gives the exit code: typer may not be installed.
VERBS: Mapping[str, Callable[[Sequence[str]], int]] = {"agent": run_agent, "jar": print_jar}
