"""The command ``nstorm``."""

import sys


def main() -> None:
    """Run the command line, and say what to install where a package is missing."""
    verb = sys.argv[1:2]
    if verb in (["agent"], ["jar"]):
        from controller.cli.node import VERBS  # noqa: PLC0415  # and nothing else

        sys.exit(VERBS[verb[0]](sys.argv[2:]))
    try:
        # Late: the packages may be missing, and each command waits for its own alone.
        if verb == ["controller"]:
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
