"""The command ``nstorm``."""

import sys
from collections.abc import Callable, Mapping, Sequence


def run_agent(arguments: Sequence[str]) -> int:
    """Run the agent of this node; the same as nstorm-agent."""
    import agent.command  # noqa: PLC0415  # what a node needs, and nothing else

    return agent.command.main(arguments, "nstorm agent")


def print_jar(arguments: Sequence[str]) -> int:
    """Print where the jar with the hooks is."""
    import agent.command  # noqa: PLC0415

    agent.command.jar_parser("nstorm jar").parse_args(arguments)
    return run_agent(["jar"])


# Each reads its arguments itself, and gives the exit code: typer may not be installed.
VERBS: Mapping[str, Callable[[Sequence[str]], int]] = {"agent": run_agent, "jar": print_jar}


def main() -> None:
    """Run the command line, and say what to install where a package is missing."""
    verb = "".join(sys.argv[1:2])
    if verb in VERBS:
        sys.exit(VERBS[verb](sys.argv[2:]))
    try:
        # Late: the packages may be missing, and each command waits for its own alone.
        if verb == "controller":
            from controller.cli.daemons import controller_alone as run  # noqa: PLC0415
        else:
            from controller.cli.main import main as run  # noqa: PLC0415
        run()
    except ModuleNotFoundError as error:
        print(
            f"nstorm: {error.name} is missing; a node needs only `nstorm-agent`, for all other "
            "commands type: pip install 'nstorm[controller]'",
            file=sys.stderr,
        )
        sys.exit(2)
