"""The command ``nstorm-agent``; it loads nothing that a supervisor's node does not need."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from agent import daemon
from agent.config import AgentError, from_storm_yaml
from kvstore.errors import StoreError
from kvstore.logs import log_to_stderr
from kvstore.printable import printable
from kvstore.service import ended_by_signals
from migration import ConfigError, jar, storm_yaml

_ADOPT, _JAR = "adopt-cluster", "jar"


def main(arguments: Sequence[str] | None = None, name: str = "nstorm-agent") -> int:
    """Run the command line; errors a user can mend end in one line and exit code 2.

    The arguments are without the command's name, which is given for the help alone.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == [_JAR] and {"-h", "--help"} & {*words}:
        jar_parser(f"{name} {_JAR}").print_help()
        return 0
    parser = _parser(name)
    given = parser.parse_args(words)
    if given.conf is None and given.verb != _JAR:
        parser.error("the following arguments are required: --conf")
    log_to_stderr()
    try:
        if given.verb == _JAR:
            print(jar.path())
            return 0
        storm_yaml.give(given.given)
        config = storm_yaml.read_as(given.conf, from_storm_yaml)
        if given.verb == _ADOPT:
            print(f"this node follows cluster {printable(daemon.adopt_cluster(config))}")
            return 0
        with ended_by_signals() as stop:
            return daemon.run(config, stop)
    except (AgentError, ConfigError, StoreError) as error:
        print(f"nstorm: {printable(str(error))}", file=sys.stderr)
        return 2


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        name,
        description="Run the agent of this node, between ZooKeeper and its JVMs. One runs on\n"
        "every supervisor node, as the user of Storm; it may be stopped and started at any time.",
        epilog=f"  Example:\n    {name} --conf /opt/storm/conf/storm.yaml\n"
        f"    {name} {_ADOPT} --conf /opt/storm/conf/storm.yaml\n    {name} {_JAR}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "verb",
        nargs="?",
        choices=[_ADOPT, _JAR],
        metavar=f"{_ADOPT} | {_JAR}",
        help=(
            f"do not run the agent. {_ADOPT}: follow the new cluster after ZooKeeper was rebuilt; "
            f"before, an agent of another cluster accepts no plans. {_JAR}: print where the jar "
            "with the hooks is"
        ),
    )
    parser.add_argument(
        "--conf",
        type=Path,
        metavar="FILE",
        help="the storm.yaml of this node, with its nstorm.* keys; jar does not need it",
    )
    storm_yaml.add_option(parser)
    parser.add_argument("--version", action="version", version=f"nstorm {version('nstorm')}")
    return parser


def jar_parser(name: str) -> argparse.ArgumentParser:
    """Make the parser of the verb that prints where the jar is."""
    return argparse.ArgumentParser(
        name,
        description="Print where the jar with the hooks is in this installation. Copy it, as\n"
        "`nstorm install` does: it goes with the installation, and no JVM starts without it.",
        epilog=f"  Example:\n    {name}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
