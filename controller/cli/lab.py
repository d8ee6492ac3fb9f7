"""``nstorm lab`` and ``nstorm bench``: a real Storm cluster on this machine, to try and measure."""

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from controller.output import Output, OutputOption, example, quiet
from deploy.bench import Variant

if TYPE_CHECKING:
    from deploy.lab.cluster import Lab

# What a command needs is imported in it: all of it together takes longer to load than most
# commands take to run.
app = typer.Typer(
    help="Run a real Storm cluster on this machine.",
    no_args_is_help=True,
    epilog=example("nstorm lab up", "nstorm lab submit wc --rate 1000", "nstorm lab down"),
)
bench_app = typer.Typer(
    help="Measure, mostly on a Storm cluster of its own.",
    no_args_is_help=True,
    epilog=example("nstorm bench moves --moves 30", "nstorm bench decide --seeds 0"),
)

Name = Annotated[str, typer.Option(help="Name of the lab; several may run side by side.")]


@app.command(epilog=example("nstorm lab up --nodes 3 --slots 2"))
def up(
    name: Name = "lab",
    nodes: Annotated[int, typer.Option(min=1, help="How many supervisors.")] = 2,
    slots: Annotated[int, typer.Option(min=1, help="How many slots each has.")] = 2,
    stock: Annotated[
        bool, typer.Option("--stock", help="Storm as it is, without the hooks and agents.")
    ] = False,
) -> None:
    """Start ZooKeeper, Nimbus, supervisors and agents.

    Prints as JSON where they are; `conf` is the storm.yaml to give to the other commands.
    """
    from deploy.lab.cluster import AGENT_JAR, plan_lab  # noqa: PLC0415

    lab = plan_lab(name, nodes=nodes, slots=slots, agent_jar=None if stock else AGENT_JAR)
    try:
        lab.up()
        if not stock:
            lab.start_agents()
    except BaseException:
        lab.down()
        raise
    typer.echo(_describe(lab))


@app.command(epilog=example("nstorm lab down"))
def down(name: Name = "lab") -> None:
    """End every process of the lab; its logs stay."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    attach(name).down()


@app.command("status", epilog=example("nstorm lab status"))
def show(name: Name = "lab") -> None:
    """Show what runs, as JSON."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    typer.echo(_describe(attach(name)))


@app.command(epilog=example("nstorm lab submit wc --rate 1000"))
def submit(
    topology: Annotated[str, typer.Argument(help="Name of the topology.")] = "wc",
    rate: Annotated[float, typer.Option(min=0, help="Sentences per second.")] = 1000.0,
    name: Name = "lab",
) -> None:
    """Submit the acked WordCount, wait until it runs, print its id."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    lab = attach(name)
    submitted = lab.submit(topology, rate_tps=rate)
    lab.wait_ready(topology)
    typer.echo(submitted)


def _describe(lab: "Lab") -> str:
    described = {
        "zookeeper": lab.zookeeper,
        "conf": str(lab.layout.nimbus_dir / "conf" / "storm.yaml"),
        "nodes": {node.supervisor_id: node.host for node in lab.nodes},
        "workers": lab.worker_pids(),
        "topologies": lab.topologies(),
    }
    return json.dumps(described, indent=1)


class By(StrEnum):
    """Who decides on the moves of a benchmark."""

    OPERATOR = "operator"
    CONTROLLER = "controller"


# Nothing rests and every gain counts, so that the controller soon finds another move.
RESTLESS = {
    "nstorm.cycle.secs": 1.0,
    "nstorm.cooldown.executor.secs": 0,
    "nstorm.asc.threshold": 0.0,
    "nstorm.load.ewma": 1.0,
}


@bench_app.command(
    "moves", epilog=example("nstorm bench moves --moves 30 --rate 500 --variant ticks")
)
def bench_moves(
    *,
    moves: Annotated[int, typer.Option(min=1, help="How many moves.")] = 100,
    by: Annotated[
        By,
        typer.Option(help="Who chooses: an operator at random, or the controller without rest."),
    ] = By.OPERATOR,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random.")] = 1,
    rate: Annotated[float, typer.Option(min=1, help="Sentences per second.")] = 1000.0,
    variant: Annotated[Variant, typer.Option(help="What makes it hard.")] = Variant.PLAIN,
    kill_every: Annotated[
        int,
        typer.Option(min=0, help="Kill the source worker of every N-th move in DRAIN; 0: none."),
    ] = 0,
) -> None:
    """Move executors, in turn with rest, and account for all tuples.

    Where the controller finds nothing to move for some seconds, one executor is moved at random;
    the report counts these as "shaken".
    """
    from deploy.bench.movers import AtRandom, by_itself  # noqa: PLC0415
    from deploy.bench.moves import run_moves, submit  # noqa: PLC0415
    from deploy.bench.operator import beside  # noqa: PLC0415
    from deploy.lab.cluster import AGENT_JAR, plan_lab  # noqa: PLC0415

    topology, itself = "bench", by is By.CONTROLLER
    with plan_lab("bench-moves", agent_jar=AGENT_JAR, conf=RESTLESS if itself else None) as lab:
        submit(lab, topology, variant, rate)
        with beside(lab, topology, mode="auto" if itself else "observe") as operator:
            spouts = {e.slot for e in lab.assignment(topology) if e.component == "spout"}
            at_random = AtRandom(
                lab, operator, seed, kill_every=kill_every, spared=frozenset(spouts)
            )
            with by_itself(lab, operator, seed) if itself else nullcontext(at_random) as mover:
                report = run_moves(lab, mover, topology, moves=moves)
    asked = {"by": by.value, "variant": variant.value, "rate": rate, "kill_every": kill_every}
    typer.echo(json.dumps({**asked, "seed": seed, **report}, indent=1))


@bench_app.command("round-trips", epilog=example("nstorm bench round-trips --trips 50"))
def bench_round_trips(
    trips: Annotated[int, typer.Option(min=1, help="How many times there and back.")] = 50,
    rate: Annotated[float, typer.Option(min=1, help="Sentences per second.")] = 200.0,
) -> None:
    """Move one executor there and back, and watch for leaks.

    Prints what each worker's JVM holds before and after: threads, timers, files, heap.
    """
    from deploy.bench.moves import submit  # noqa: PLC0415
    from deploy.bench.operator import beside  # noqa: PLC0415
    from deploy.bench.round_trips import run_round_trips  # noqa: PLC0415
    from deploy.lab.cluster import AGENT_JAR, plan_lab  # noqa: PLC0415

    topology = "bench"
    with plan_lab("bench-round-trips", agent_jar=AGENT_JAR) as lab:
        submit(lab, topology, Variant.PLAIN, rate)
        with beside(lab, topology) as operator:
            report = run_round_trips(lab, operator, topology, trips=trips)
    typer.echo(json.dumps(report, indent=1))


@bench_app.command("overhead", epilog=example("nstorm bench overhead --rounds 4 --no-jmh"))
def bench_overhead(
    rounds: Annotated[int, typer.Option(min=2, help="How many rounds at most, of 11 s each.")] = 40,
    jmh: Annotated[
        bool, typer.Option(help="Also what the hooks cost a tuple, by JMH; some 3 minutes.")
    ] = True,
) -> None:
    """Compare throughput with hooks and without, in turn.

    Ends once the 95 % interval of the ratio is within 2 points, or after the last round.
    """
    from deploy.bench.overhead import run_overhead  # noqa: PLC0415

    report = run_overhead(rounds, _progress)
    typer.echo(json.dumps({**report, "jmh": _tuple_cost() if jmh else None}, indent=1))


@bench_app.command("plan", epilog=example("nstorm bench plan --writes 100"))
def bench_plan(
    writes: Annotated[int, typer.Option(min=1, help="How many plans go to the workers.")] = 300,
) -> None:
    """Measure how long plans take from ZooKeeper to the workers.

    And what one read and one commit cost, in the JVM and in Python.
    """
    from deploy.bench.plan import run_plan  # noqa: PLC0415

    typer.echo(json.dumps(run_plan(writes, _progress), indent=1))


def _answer(
    found: dict[str, Any], as_tables: Callable[[dict[str, Any]], Iterable[Table]], output: Output
) -> None:
    """Print what a benchmark has found."""
    if output is Output.JSON:
        typer.echo(json.dumps(found, indent=1))
        return
    for table in as_tables(found):
        Console().print(table)


@bench_app.command("decide", epilog=example("nstorm bench decide --seeds 2 -o json"))
def bench_decide(
    seeds: Annotated[
        int, typer.Option(min=0, help="How many starts of each case; 0: only the speed.")
    ] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="How often each decision is timed.")] = 10,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure decisions: speed, memory and quality; no cluster."""
    from deploy.bench.decide.report import as_tables, bench  # noqa: PLC0415

    _answer(bench(seeds, repeats, _progress), as_tables, output)


@bench_app.command("replay", epilog=example("nstorm bench replay --rounds 0 -o json"))
def bench_replay(
    rounds: Annotated[
        int, typer.Option(min=0, help="How often to sweep on Spark and without; 0: not at all.")
    ] = 5,
    length: Annotated[int, typer.Option(min=40, help="Ticks of the longest log.")] = 4000,
    day: Annotated[
        bool,
        typer.Option("--day", help="Sweep a whole day, too: a quarter of an hour more."),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the journal and replays of it; no cluster.

    What they cost, against plain Python, how that grows, and the sweep on Spark.
    """
    from deploy.bench.replay.report import (  # noqa: PLC0415
        QUARTERS_OF_A_DAY,
        Sizes,
        as_tables,
        bench,
    )

    with quiet(logging.WARNING):  # each cycle that is written to a journal would be told of
        sizes = Sizes(rounds=rounds, length=length, times=QUARTERS_OF_A_DAY if day else 0)
        found = bench(sizes, _progress)
    _answer(found, as_tables, output)


def _tuple_cost() -> dict[str, Any]:
    from deploy.bench.jmh import build, tuple_cost  # noqa: PLC0415

    build()
    return tuple_cost(_progress)


def _progress(line: str) -> None:
    typer.echo(line, err=True)
