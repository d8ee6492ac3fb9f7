"""``python -m tests.bench``: measures, in most cases on a Storm cluster of its own."""

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from controller.cli.running import new_app
from controller.errors import CommandError
from controller.output import Output, OutputOption, example, quiet
from controller.policies.options import NAMES
from controller.strict import meant
from deploy.command import Secure
from migration.settings import DEFAULT
from tests.bench import Variant
from tests.bench.downtime import Asked, Load

# What a command needs is imported in it: all of it together takes longer to load than most
# commands take to run.
app = new_app()


@app.callback()
def _root() -> None:
    """Measure, in most cases on a Storm cluster of its own."""


class RollWay(StrEnum):
    """How a benchmark renews hosts."""

    NSTORM = "nstorm"
    STORM = "storm"
    STORM_W0 = "storm-w0"


class Kind(StrEnum):
    """What the counters of a benchmark keep."""

    ARRAYS = "arrays"
    MAP = "map"


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


@app.command(
    "moves", epilog=example("python -m tests.bench moves --moves 30 --rate 500 --variant ticks")
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
    workload: Annotated[
        str, typer.Option(help="Which one of the lab's runs; its oracle judges the end.")
    ] = "wordcount",
) -> None:
    """Move executors, in turn with rest, and account for all tuples.

    The operator also asks for executors that stay; these wishes must be refused.
    Where the controller finds nothing to move for some seconds, one executor is moved at random;
    the report counts these as "shaken".
    """
    from deploy.lab.cluster import HOOKS_JAR, plan_lab  # noqa: PLC0415
    from deploy.lab.operator import beside  # noqa: PLC0415
    from deploy.lab.workloads import WORKLOADS  # noqa: PLC0415
    from tests.bench.movers import AtRandom, by_itself, slots_of  # noqa: PLC0415
    from tests.bench.moves import run_moves, submit  # noqa: PLC0415

    topology, itself = "bench", by is By.CONTROLLER
    if workload not in WORKLOADS:
        raise CommandError(f"--workload {workload}: {meant(workload, WORKLOADS)}")
    conf = RESTLESS if itself else None
    kafka = workload == "kafka"
    with plan_lab("bench-moves", hooks_jar=HOOKS_JAR, conf=conf, kafka=kafka) as lab:
        submit(lab, topology, variant, rate, workload)
        with beside(lab, topology, mode="auto" if itself else "observe") as operator:
            at_random = AtRandom(
                lab,
                operator,
                seed,
                kill_every=kill_every,
                spared=lambda: slots_of(lab, topology, "spout"),
                pinned=True,
            )
            with by_itself(lab, operator, seed) if itself else nullcontext(at_random) as mover:
                report = run_moves(lab, mover, topology, moves=moves, tell=_progress)
    asked = {"by": by.value, "variant": variant.value, "rate": rate, "kill_every": kill_every}
    asked["workload"] = workload
    typer.echo(json.dumps({**asked, "seed": seed, **report}, indent=1))


@app.command("round-trips", epilog=example("python -m tests.bench round-trips --trips 50"))
def bench_round_trips(
    trips: Annotated[int, typer.Option(min=1, help="How many times there and back.")] = 50,
    rate: Annotated[float, typer.Option(min=1, help="Sentences per second.")] = 200.0,
) -> None:
    """Move one executor there and back, and watch for leaks.

    Prints what each worker's JVM holds before and after: threads, timers, files, heap.
    """
    from deploy.lab.cluster import HOOKS_JAR, plan_lab  # noqa: PLC0415
    from deploy.lab.operator import beside  # noqa: PLC0415
    from tests.bench.moves import submit  # noqa: PLC0415
    from tests.bench.round_trips import run_round_trips  # noqa: PLC0415

    topology = "bench"
    with plan_lab("bench-round-trips", hooks_jar=HOOKS_JAR) as lab:
        submit(lab, topology, Variant.PLAIN, rate)
        with beside(lab, topology) as operator:
            report = run_round_trips(lab, operator, topology, trips=trips)
    typer.echo(json.dumps(report, indent=1))


@app.command("state", epilog=example("python -m tests.bench state --kind map --mb 1 --mb 10"))
def bench_state(
    *,
    kind: Annotated[
        Kind, typer.Option(help="What each counter keeps: arrays, or a map of words.")
    ] = Kind.ARRAYS,
    mb: Annotated[list[int], typer.Option(min=1, help="How much of it.")] = [1, 10, 90],  # noqa: B006
    moves: Annotated[int, typer.Option(min=1, help="How many moves of each size.")] = 20,
    seed: Annotated[int, typer.Option(help="Of what is chosen at random.")] = 1,
) -> None:
    """Move counters with their state, and measure the pause; then let Storm rebalance them."""
    from deploy.lab.cluster import HOOKS_JAR, plan_lab  # noqa: PLC0415
    from tests.bench.state import HEAP_MB, run_state  # noqa: PLC0415

    with plan_lab("bench-state", hooks_jar=HOOKS_JAR, worker_heap_mb=HEAP_MB[kind]) as lab:
        for size_mb in mb:
            report = run_state(lab, size_mb, moves, seed, _progress, kind=kind.value)
            typer.echo(json.dumps(report, indent=1))


@app.command("roll", epilog=example("python -m tests.bench roll --way nstorm"))
def bench_roll(
    way: Annotated[list[RollWay] | None, typer.Option(help="Else all in turn.")] = None,
) -> None:
    """Renew three hosts under load by `nstorm roll`, and by Storm's own means; 5 minutes each."""
    from tests.bench.roll import run_roll  # noqa: PLC0415

    for one in way or RollWay:
        typer.echo(json.dumps(run_roll(one, _progress), indent=1))


@app.command("secured", epilog=example("python -m tests.bench secured --kind tls"))
def bench_secured(
    *,
    kind: Annotated[list[Secure] | None, typer.Option(help="Else all in turn.")] = None,
    moves: Annotated[int, typer.Option(min=0, help="How many of each way.")] = 20,
    roll: Annotated[
        bool, typer.Option(help="Also drain a host, and roll over all with a failover.")
    ] = True,
) -> None:
    """Move by each way, drain, roll and fail over on secured clusters; 10 minutes each."""
    from tests.bench.secured import run_secured  # noqa: PLC0415

    for one in kind or Secure:
        typer.echo(json.dumps(run_secured(one, moves, roll=roll, progress=_progress), indent=1))


@app.command("overhead", epilog=example("python -m tests.bench overhead --rounds 4 --no-jmh"))
def bench_overhead(
    rounds: Annotated[
        int, typer.Option(min=2, help="How many rounds at most, of 2.5 minutes each.")
    ] = 12,
    jmh: Annotated[
        bool, typer.Option(help="Also what the hooks cost a tuple, by JMH; some 3 minutes.")
    ] = True,
) -> None:
    """Compare throughput with hooks and without, in turn.

    Ends once the 95 % interval of the ratio is within 2 points, or after the last round.
    """
    from tests.bench.overhead import run_overhead  # noqa: PLC0415

    report = run_overhead(rounds, _progress)
    typer.echo(json.dumps({**report, "jmh": _tuple_cost() if jmh else None}, indent=1))


@app.command("plan", epilog=example("python -m tests.bench plan --writes 100"))
def bench_plan(
    writes: Annotated[int, typer.Option(min=1, help="How many plans go to the workers.")] = 300,
) -> None:
    """Measure how long plans take from ZooKeeper to the workers.

    And what one read and one commit cost, in the JVM and in Python.
    """
    from tests.bench.plan import run_plan  # noqa: PLC0415

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


@app.command("decide", epilog=example("python -m tests.bench decide --repeats 3 -o json"))
def bench_decide(
    *,
    repeats: Annotated[
        int, typer.Option(min=0, help="How often each decision is timed; 0: not at all.")
    ] = 10,
    worlds: Annotated[
        int, typer.Option(min=0, help="How many fresh random worlds of each kind; 0: none.")
    ] = 0,
    size: Annotated[
        list[int] | None, typer.Option(help="Executors of fresh worlds, 0: 8 to 40; else all.")
    ] = None,
    file: Annotated[Path, typer.Option(help="Where finished worlds are kept.")] = Path(
        "build/bench/worlds.jsonl"
    ),
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure decisions: speed, memory, and how close fresh worlds come to the best; no cluster."""
    from tests.bench.decide.report import as_tables, bench  # noqa: PLC0415

    sizes = [one or None for one in size or (0, 100, 400, 1000)]
    _answer(bench(repeats, worlds, sizes, file, _progress), as_tables, output)


@app.command("ablation", epilog=example("python -m tests.bench ablation --worlds 1 --size 0"))
def bench_ablation(
    *,
    worlds: Annotated[int, typer.Option(min=1, help="How many worlds of each kind.")] = 1,
    size: Annotated[list[int], typer.Option(help="Executors of a world, 0: 8 to 40.")] = [0, 100],  # noqa: B006
    file: Annotated[Path, typer.Option(help="Where finished worlds are kept.")] = Path(
        "build/bench/ablation.jsonl"
    ),
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure what each part of `gather` brings in fresh random worlds; no cluster."""
    from tests.bench.decide.ablation import ablated, ablation  # noqa: PLC0415
    from tests.bench.frame import table  # noqa: PLC0415

    rows = list(ablated(ablation(worlds, [one or None for one in size], file, _progress)))
    title = "gather without one of its parts"
    _answer({title: rows}, lambda found: [table(title, found[title])], output)


@app.command("fits", epilog=example("python -m tests.bench fits --worlds 20 --no-cases"))
def bench_fits(
    *,
    worlds: Annotated[int, typer.Option(min=0, help="How many random worlds; 0: none.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the random worlds.")] = 1,
    policy: Annotated[str, typer.Option(help="Which one decides.")] = DEFAULT["policy"],
    cases: Annotated[bool, typer.Option(help="Also the cases of tests/bench/fits/cases.")] = True,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare a policy with Storm's placement left alone, in simulated clusters that it may harm.

    Nodes have cores of their own; there are bursts, days, noise, neighbours, links and heaps, and
    up to three topologies. Half an hour of virtual time each, of which the last 20 minutes count.
    """
    from tests.bench.fits import run  # noqa: PLC0415

    if policy not in NAMES:
        raise CommandError(f"--policy {policy}: {meant(policy, NAMES)}")
    with quiet(logging.ERROR):
        rows = list(run.worlds(worlds, seed, policy, _progress))
        reports = run.cases(policy, _progress) if cases else {}
        found = {
            "Cases": list(run.expectations(reports)),
            "Room in the cases": list(run.rooms_of_cases(reports)),
            "Random worlds": rows,
            "All of them": list(run.summary(rows)),
            "Room in all of them": list(run.rooms(rows)),
        }
    _answer(found, run.as_tables, output)


@app.command("replay", epilog=example("python -m tests.bench replay --rounds 0 -o json"))
def bench_replay(
    rounds: Annotated[
        int, typer.Option(min=0, help="How often to sweep on Spark and without; 0: not at all.")
    ] = 5,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the journal and replays of it; no cluster.

    What they cost, and the sweep on Spark.
    """
    from tests.bench.replay.report import Sizes, as_tables, bench  # noqa: PLC0415

    with quiet(logging.WARNING):  # else each cycle that goes into a journal is a line
        found = bench(Sizes(rounds=rounds), _progress)
    _answer(found, as_tables, output)


@app.command("read", epilog=example("python -m tests.bench read --ticks 2000 --keep build/day"))
def bench_read(
    ticks: Annotated[int, typer.Option(min=2, help="Length of the log; a day is 17,280.")] = 17280,
    recorded: Annotated[int, typer.Option(min=2, help="How many of them are recorded.")] = 1000,
    executors: Annotated[int, typer.Option(min=4, help="Size of each.")] = 1000,
    keep: Annotated[
        Path | None, typer.Option(help="Where the log stays; one that is there is read.")
    ] = None,
) -> None:
    """Measure how long a recorded day is read; no cluster. Making it takes a quarter of an hour."""
    from tests.bench.replay.reading import reading  # noqa: PLC0415

    with quiet(logging.WARNING), TemporaryDirectory(prefix="nstorm-read-") as folder:
        found = reading(executors, recorded, ticks, keep or Path(folder))
    typer.echo(json.dumps(found, indent=1))


@app.command("pipeline", epilog=example("python -m tests.bench pipeline --ticks 1000"))
def bench_pipeline(
    *,
    ticks: Annotated[int, typer.Option(min=2, help="Length of the log; a day is 17,280.")] = 17280,
    recorded: Annotated[int, typer.Option(min=2, help="How many of them are recorded.")] = 180,
    executors: Annotated[int, typer.Option(min=4, help="Size of each.")] = 1000,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[2]",
    rounds: Annotated[int, typer.Option(min=1, help="How often.")] = 3,
    space: Annotated[
        Path | None, typer.Option(help="YAML with other sets than the 201, as for tune.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Where the log stays; one that is there is read.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the stages on Spark, from a log to the answers of 201 sets; no cluster of Storm.

    Time, CPU, memory of the driver, and the size of what they leave. Searches are not made.
    """
    from tests.bench.replay.pipeline import as_tables, measured  # noqa: PLC0415
    from tests.bench.replay.reading import laid_out  # noqa: PLC0415

    with quiet(logging.WARNING), TemporaryDirectory(prefix="nstorm-pipeline-") as name:
        folder = Path(name)
        log = laid_out(executors, recorded, ticks, keep or folder)
        found = measured(log, master, rounds, folder, _progress, space=space)
    _answer({"executors": executors, "ticks": ticks, **found}, as_tables, output)


@app.command("scale", epilog=example("python -m tests.bench scale --nodes 100 --seconds 20"))
def bench_scale(
    *,
    nodes: Annotated[
        list[int], typer.Option(min=10, help="Sizes of the cluster; ten executors a node.")
    ] = [10, 100, 300, 1000],  # noqa: B006
    seconds: Annotated[
        float, typer.Option(min=5, help="How long to look: at rest, with moves, at an agent.")
    ] = 40.0,
    journal: Annotated[bool, typer.Option(help="Let the controller keep a journal.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure how ZooKeeper, controller and agent bear a large cluster; no Storm.

    A real ZooKeeper, controller and agent; a thousand other agents, JVMs and Nimbus are imitated.
    """
    from tests.bench.scale.report import as_tables  # noqa: PLC0415
    from tests.bench.scale.run import Asked, bench  # noqa: PLC0415

    asked = Asked(tuple(nodes), seconds, journal)
    _answer(bench(asked, _progress), as_tables, output)


@app.command("page", epilog=example("python -m tests.bench page --asks 20"))
def bench_page(
    *,
    asks: Annotated[int, typer.Option(min=2, help="How often each is asked.")] = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the page and `nstorm explain` at 1,000 executors, and cycles while a page dies.

    A real ZooKeeper, controller and page; a hundred agents, JVMs and Nimbus are imitated.
    """
    from tests.bench.page import as_tables, bench  # noqa: PLC0415

    _answer(bench(asks, _progress), as_tables, output)


@app.command("gain", epilog=example("python -m tests.bench gain --case cpu --policy gather"))
def bench_gain(
    *,
    case: Annotated[
        list[str] | None, typer.Option(help="cpu, network, compute, page-views; else all.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Else otd, gather and three one-shot ones.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=2, help="The most rounds of a policy, of some 50 s each.")
    ] = 8,
    cycles: Annotated[
        bool, typer.Option("--cycles", help="Also measure after each move on the way there.")
    ] = False,
    trim: Annotated[
        bool, typer.Option("--trim", help="Small heaps, serial collector, idle bolts that sleep.")
    ] = False,
    own_cores: Annotated[
        float | None,
        typer.Option(
            help="Cores of each node, as on a cluster: a worker's capacity is nstorm's default, "
            "and policies decide at the load at which they are measured. Else all share them."
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(min=2, help="How many nodes there are.")] = 2,
    link: Annotated[
        str | None, typer.Option(help="Rate of each node's link, as 5mbit; else the case's.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the finished rounds of the file.")
    ] = False,
    file: Annotated[Path, typer.Option(help="Where finished rounds are kept.")] = Path(
        "build/bench/gain.jsonl"
    ),
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare Storm's placement with those of policies, in turn within one run, by moves.

    In a round each of two placements has its turn, at saturation and at 40 % of it. A policy is
    done once throughput, CPU and bytes per sentence are known within 3 %, or after the last round.
    """
    from tests.bench.gain.cases import CASES  # noqa: PLC0415
    from tests.bench.gain.report import as_tables, report  # noqa: PLC0415
    from tests.bench.gain.rounds import Rounds  # noqa: PLC0415
    from tests.bench.gain.run import (  # noqa: PLC0415
        POLICIES,
        AskedGain,
        is_finished,
        run_case,
        set_up,
    )

    cases, policies = case or list(CASES), policy or list(POLICIES)
    for option, wanted, known in (("case", cases, CASES), ("policy", policies, NAMES)):
        for name in set(wanted) - set(known):
            raise CommandError(f"--{option} {name}: {meant(name, known)}")
    measured = {name: replace(one, link=link or one.link) for name, one in CASES.items()}
    asked = AskedGain(policies, rounds, cycles, trim, own_cores, nodes)
    finished = Rounds(file, set_up(measured, asked), resume=resume)
    if is_finished(cases, asked, finished):
        _progress(f"{file} is finished: it has all rounds that were asked for")
    else:
        finished.refuse_another_set_up()
        for name in cases:
            run_case(name, measured[name], asked, finished, _progress)
    _answer(report(finished), as_tables, output)


@app.command(
    "downtime", epilog=example("python -m tests.bench downtime --duration 60 -M 1,16 --link 20mbit")
)
def bench_downtime(
    *,
    duration: Annotated[int, typer.Option(min=10, help="Seconds of a round.")] = 120,
    every: Annotated[
        int, typer.Option(min=5, help="Seconds from one redeployment to the next.")
    ] = 30,
    together: Annotated[
        str, typer.Option("-M", help="How many executors nstorm moves at once; each by itself.")
    ] = "1,4,8,16",
    load: Annotated[
        list[Load], typer.Option(help="Fed to the full, or 60 % of what that brings; both.")
    ] = list(Load),  # noqa: B006
    rate: Annotated[
        float | None, typer.Option(min=1, help="Sentences per second of the steady load.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How many of each system.")] = 1,
    others: Annotated[
        bool,
        typer.Option(
            "--others/--no-others", help="Also Storm's ways, and nstorm without lazy kill."
        ),
    ] = True,
    link: Annotated[
        str | None, typer.Option(help="Rate of each node's link, as 20mbit; without, loopback.")
    ] = None,
    own_cores: Annotated[
        float | None, typer.Option(help="Cores of each node, as on a cluster; else all share them.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the rounds that an interrupted run finished.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Redeploy executors by Storm's ways and by nstorm's, in turn, and count lost seconds.

    Finished rounds are kept in build/bench.
    """
    from tests.bench.downtime.kept import Kept  # noqa: PLC0415
    from tests.bench.downtime.report import as_tables, report  # noqa: PLC0415
    from tests.bench.downtime.run import BOLTS, FOLDER, bench  # noqa: PLC0415

    most = sum(BOLTS.values())
    numbers = together.split(",")
    if not all(number.isdecimal() and 0 < int(number) <= most for number in numbers):
        raise CommandError(f"-M {together}: type numbers from 1 to {most} with commas between")
    at_once = tuple(dict.fromkeys(map(int, numbers)))
    loads = tuple(sorted(set(load)))
    asked = Asked(duration, every, at_once, link, loads, rounds, rate, others, own_cores)
    nodes = "" if own_cores is None else f"-{own_cores:g}-cores"
    file = FOLDER / f"downtime-{link or 'loopback'}{nodes}.jsonl"
    kept = Kept(file, asked, resume=resume)
    bench(asked, kept, _progress)
    found = report(kept.rounds, kept.steady_tps)
    _answer(found, as_tables, output)


def _tuple_cost() -> dict[str, Any]:
    from tests.bench.jmh import build, tuple_cost  # noqa: PLC0415

    build()
    return tuple_cost(_progress)


def _progress(line: str) -> None:
    typer.echo(line, err=True)
