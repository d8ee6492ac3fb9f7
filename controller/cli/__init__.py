"""The command ``nstorm``."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from controller import interrupt
from migration.extras import pip_install


def run_agent(arguments: Sequence[str]) -> int:
    """Run the agent of this node; the same as nstorm-agent."""
    import agent.command  # noqa: PLC0415  # what a node needs, and nothing else

    return agent.command.main(arguments, "nstorm agent")


def run_controller(arguments: Sequence[str]) -> int:
    """Run the controller; of several, one leads, the others wait."""
    # It has to lead within seconds, on a tenth of a core too. It loads no other command and no
    # typer. numpy starts no thread for products of matrices, which no decision asks for.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import controller.cli.daemons  # noqa: PLC0415

    return controller.cli.daemons.main(arguments)


def print_jar(arguments: Sequence[str]) -> int:
    """Print where the jar with the hooks is."""
    import agent.command  # noqa: PLC0415

    agent.command.jar_parser("nstorm jar").parse_args(arguments)
    return run_agent(["jar"])


def install(arguments: Sequence[str]) -> int:
    """Put the jar next to a Storm, and name it in its storm.yaml."""
    import agent.install  # noqa: PLC0415

    interrupt.while_working()
    return agent.install.main(arguments)


# Each reads its arguments itself, and gives the exit code: typer may not be installed.
VERBS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "agent": run_agent,
    "controller": run_controller,
    "install": install,
    "jar": print_jar,
}


def print_version() -> int:
    """Print the version, on a node too."""
    from importlib.metadata import version  # noqa: PLC0415  # slow, and only this asks for it

    print(f"nstorm {version('nstorm')}")
    return 0


def main() -> None:
    """Run the command line, and print what to install where a package is missing."""
    verb = "".join(sys.argv[1:2])
    interrupt.while_loading()
    try:
        if verb == "--version":
            sys.exit(print_version())
        if verb in VERBS:
            sys.exit(VERBS[verb](sys.argv[2:]))
        # Late: the packages may be missing.
        from controller.cli.main import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        interrupt.end_at_once()
    except ModuleNotFoundError as error:
        print(
            f"nstorm: {error.name} is missing, so only agent, install and jar run here. For all "
            "other commands take the archive or image of controllers, or type in nstorm's folder: "
            f"{pip_install('controller')}",
            file=sys.stderr,
        )
        sys.exit(2)
    finally:
        interrupt.while_ending()
