"""``nstorm lab`` and ``nstorm bench``: a real Storm cluster on this machine, to try and measure."""

import json
from contextlib import nullcontext
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console

from controller.cli.decide import Output
from deploy.bench.decide.report import as_tables
from deploy.bench.decide.report import bench as run_decide
from deploy.bench.jmh import build as build_jmh
from deploy.bench.jmh import tuple_cost
from deploy.bench.movers import AtRandom, by_itself
from deploy.bench.moves import Variant, run_moves
from deploy.bench.moves import submit as submit_variant
from deploy.bench.operator import beside
from deploy.bench.overhead import run_overhead
from deploy.bench.plan import run_plan
from deploy.bench.round_trips import run_round_trips
from deploy.lab.cluster import AGENT_JAR, Lab, attach, plan_lab

app = typer.Typer(help="Run a real Storm cluster on this machine.", no_args_is_help=True)

bench_app = typer.Typer(help="Measure on a cluster of its own.", no_args_is_help=True)

Name = Annotated[str, typer.Option(help="Name of the lab; several may run side by side.")]


@app.command()
def up(
    name: Name = "lab",
    nodes: Annotated[int, typer.Option(min=1, help="Number of supervisors.")] = 2,
    slots: Annotated[int, typer.Option(min=1, help="Slots of each.")] = 2,
    stock: Annotated[bool, typer.Option("--stock", help="Without the hooks and agents.")] = False,
) -> None:
    """Start ZooKeeper, Nimbus, the supervisors and an agent on each node; print where they are."""
    lab = plan_lab(name, nodes=nodes, slots=slots, agent_jar=None if stock else AGENT_JAR)
    try:
        lab.up()
        if not stock:
            lab.start_agents()
    except BaseException:
        lab.down()
        raise
    typer.echo(_describe(lab))


@app.command()
def down(name: Name = "lab") -> None:
    """End every process of the lab; its logs stay."""
    attach(name).down()


@app.command("status")
def show(name: Name = "lab") -> None:
    """Show what runs, as JSON."""
    typer.echo(_describe(attach(name)))


@app.command()
def submit(
    topology: Annotated[str, typer.Argument(help="Name of the topology.")] = "wc",
    rate: Annotated[float, typer.Option(min=0, help="Sentences per second.")] = 1000.0,
    name: Name = "lab",
) -> None:
    """Submit the acked WordCount and wait until it runs; print its id."""
    lab = attach(name)
    submitted = lab.submit(topology, rate_tps=rate)
    lab.wait_ready(topology)
    typer.echo(submitted)


def _describe(lab: Lab) -> str:
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


# Nothing rests and every gain counts, so that the controller finds a move in each cycle.
RESTLESS = {
    "nstorm.cycle.secs": 1.0,
    "nstorm.cooldown.executor.secs": 0,
    "nstorm.asc.threshold": 0.0,
    "nstorm.load.ewma": 1.0,
}


@bench_app.command("moves")
def bench_moves(
    *,
    moves: Annotated[int, typer.Option(min=1, help="How many.")] = 100,
    by: Annotated[
        By, typer.Option(help="An operator at random, or the controller by itself, restless.")
    ] = By.OPERATOR,
    seed: Annotated[int, typer.Option(help="Of an operator's choices.")] = 1,
    rate: Annotated[float, typer.Option(min=1, help="Sentences per second.")] = 1000.0,
    variant: Annotated[Variant, typer.Option(help="What makes it hard.")] = Variant.PLAIN,
    kill_every: Annotated[
        int, typer.Option(min=0, help="Kill the source of each so-manieth move in DRAIN; 0: none.")
    ] = 0,
) -> None:
    """Move executors, interleaved with rest, and account for every tuple; as JSON."""
    topology, itself = "bench", by is By.CONTROLLER
    with plan_lab("bench-moves", agent_jar=AGENT_JAR, conf=RESTLESS if itself else None) as lab:
        submit_variant(lab, topology, variant, rate)
        with beside(lab, topology, mode="auto" if itself else "observe") as operator:
            spouts = {e.slot for e in lab.assignment(topology) if e.component == "spout"}
            at_random = AtRandom(
                lab, operator, seed, kill_every=kill_every, spared=frozenset(spouts)
            )
            with by_itself(lab, operator) if itself else nullcontext(at_random) as mover:
                report = run_moves(lab, mover, topology, moves=moves)
    asked = {"by": by.value, "variant": variant.value, "rate": rate, "kill_every": kill_every}
    typer.echo(json.dumps({**asked, "seed": None if itself else seed, **report}, indent=1))


@bench_app.command("round-trips")
def bench_round_trips(
    trips: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    rate: Annotated[float, typer.Option(min=1, help="Sentences per second.")] = 200.0,
) -> None:
    """Move one executor to another node and back; print what each worker's JVM holds, as JSON."""
    topology = "bench"
    with plan_lab("bench-round-trips", agent_jar=AGENT_JAR) as lab:
        submit_variant(lab, topology, Variant.PLAIN, rate)
        with beside(lab, topology) as operator:
            report = run_round_trips(lab, operator, topology, trips=trips)
    typer.echo(json.dumps(report, indent=1))


@bench_app.command("overhead")
def bench_overhead(
    rounds: Annotated[int, typer.Option(min=2, help="How many at most, of 11 s each.")] = 40,
    jmh: Annotated[
        bool, typer.Option(help="Also what the hooks cost a tuple, by JMH; some 3 minutes.")
    ] = True,
) -> None:
    """Compare throughput at saturation with hooks and without, in turn; as JSON."""
    report = run_overhead(rounds, _progress)
    typer.echo(json.dumps({**report, "jmh": _tuple_cost() if jmh else None}, indent=1))


@bench_app.command("plan")
def bench_plan(
    writes: Annotated[int, typer.Option(min=1, help="Plans sent to the workers.")] = 300,
) -> None:
    """Measure reads and commits of plans, and their way from ZooKeeper to the workers; as JSON."""
    typer.echo(json.dumps(run_plan(writes, _progress), indent=1))


@bench_app.command("decide")
def bench_decide(
    seeds: Annotated[int, typer.Option(min=0, help="Starts a case; 0: only the speed.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="How often each decision is timed.")] = 10,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
) -> None:
    """Measure decisions: speed, memory, and how good policies are side by side; no cluster."""
    found = run_decide(seeds, repeats, _progress)
    if output is Output.JSON:
        typer.echo(json.dumps(found, indent=1))
        return
    for table in as_tables(found):
        Console().print(table)


def _tuple_cost() -> dict[str, Any]:
    build_jmh()
    return tuple_cost(_progress)


def _progress(line: str) -> None:
    typer.echo(line, err=True)
