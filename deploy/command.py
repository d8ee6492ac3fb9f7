"""``python -m deploy``: a real Storm cluster on this machine, the demo on it, an imagined one."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from controller.cli.running import new_app
from controller.errors import CommandError
from controller.output import example
from deploy.lab import LabError
from deploy.lab.trouble import Shape, Waves, burn, burning, feed
from deploy.lab.workloads import WORKLOADS, conf_of
from deploy.sim.command import simulate

if TYPE_CHECKING:
    from deploy.lab.cluster import Lab

# What a command needs is imported in it: all of it together takes longer to load than most
# commands take to run.
app = new_app()
lab_app = typer.Typer(
    help="Run a real Storm cluster on this machine.",
    no_args_is_help=True,
    epilog=example(
        "python -m deploy lab up",
        "python -m deploy lab submit wc --rate 1000",
        "python -m deploy lab down",
    ),
)

Name = Annotated[str, typer.Option(help="Name of the lab; several may run side by side.")]


class Scheduler(StrEnum):
    """Those that come with Storm."""

    DEFAULT = "default"
    RAS = "ras"
    ISOLATION = "isolation"
    MULTITENANT = "multitenant"


_SCHEDULERS = {
    Scheduler.RAS: "org.apache.storm.scheduler.resource.ResourceAwareScheduler",
    Scheduler.ISOLATION: "org.apache.storm.scheduler.IsolationScheduler",
    Scheduler.MULTITENANT: "org.apache.storm.scheduler.multitenant.MultitenantScheduler",
}


_REFUSED = {
    "worker.childopts": "the lab loads the hooks by it: set `topology.worker.childopts`",
    "storm.zookeeper.root": "the lab chooses it: give `--beside NAME` for another root",
}


class Secure(StrEnum):
    """Ways by which ZooKeeper knows its clients."""

    DIGEST = "digest"
    TLS = "tls"
    KERBEROS = "kerberos"


class Java(StrEnum):
    """Versions to try Storm on."""

    V17 = "17"
    V21 = "21"
    V25 = "25"


@lab_app.command(
    epilog=example(
        "python -m deploy lab up --nodes 3 --slots 2",
        "python -m deploy lab up --nodes 3 --cores 0.7 --link 20mbit --nimbus 2",
        "python -m deploy lab up --scheduler ras --set topology.component.cpu.pcore.percent=5",
    )
)
def up(
    *,
    name: Name = "lab",
    nodes: Annotated[int, typer.Option(min=1, help="How many supervisors.")] = 2,
    slots: Annotated[int, typer.Option(min=1, help="How many slots each has.")] = 2,
    cores: Annotated[
        float | None, typer.Option(help="Cores of each node; makes it a network namespace.")
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            help="Rate of each node's link, as 20mbit, or one for each, as 20mbit,5mbit; makes it "
            "a network namespace."
        ),
    ] = None,
    nimbus: Annotated[
        int, typer.Option(min=1, help="How many Nimbuses; from 2 on with network namespaces.")
    ] = 1,
    stock: Annotated[
        bool, typer.Option("--stock", help="Storm as it is, without the hooks and agents.")
    ] = False,
    trim: Annotated[
        bool | None,
        typer.Option(
            "--trim/--no-trim",
            help="Small heap, serial collector, idle executors that sleep at once; or all as "
            "Storm has it, which network namespaces have unless told otherwise.",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        Scheduler, typer.Option(help="Storm's scheduler in Nimbus.")
    ] = Scheduler.DEFAULT,
    beside: Annotated[
        str | None, typer.Option(help="The lab whose ZooKeeper serves this one, too.")
    ] = None,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="A Kafka broker beside it, for the workload kafka.")
    ] = False,
    secure: Annotated[
        Secure | None, typer.Option(help="How ZooKeeper knows its clients; without, not at all.")
    ] = None,
    java: Annotated[
        Java | None, typer.Option(help="Java of all JVMs; without, the machine's own.")
    ] = None,
    storm: Annotated[
        str | None,
        typer.Option(help="Version of Storm; without, the one compiled against."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key of every storm.yaml."),
    ] = None,
) -> None:
    """Start ZooKeeper, Nimbus, supervisors and agents.

    Prints as JSON where they are; `conf` is the storm.yaml to give to the other commands. Before
    anything starts, standard error has what this machine cannot show.
    """
    from deploy.lab.cluster import HOOKS_JAR, plan_lab, sweep  # noqa: PLC0415

    conf = conf_of(settings or [])
    for key in conf.keys() & _REFUSED.keys():
        raise CommandError(f"--set {key}: {_REFUSED[key]}")
    if scheduler is not Scheduler.DEFAULT:
        conf["storm.scheduler"] = _SCHEDULERS[scheduler]
    try:
        sweep()
    except LabError as error:
        typer.echo(error, err=True)
    lab = plan_lab(
        name,
        nodes=nodes,
        slots=slots,
        hooks_jar=None if stock else HOOKS_JAR,
        conf=conf,
        cores=cores,
        link=link,
        nimbuses=nimbus,
        trimmed=trim,
        java_version=None if java is None else int(java),
        storm_version=storm,
        beside=beside,
        kafka=kafka,
        secure="" if secure is None else secure.value,
    )
    for line in lab.layout.options.cannot_show:
        typer.echo(f"cannot be shown here: {line}", err=True)
    try:
        lab.up(owned=True)
        if not stock:
            lab.start_agents()
        lab.release()
    except BaseException:
        lab.down()
        raise
    typer.echo(_describe(lab))


@lab_app.command(epilog=example("python -m deploy lab down"))
def down(name: Name = "lab") -> None:
    """End every process of the lab; its logs stay."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    attach(name).down()


@lab_app.command("status", epilog=example("python -m deploy lab status"))
def show(name: Name = "lab") -> None:
    """Show what runs, as JSON."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    typer.echo(_describe(attach(name)))


@lab_app.command(
    epilog=example(
        "python -m deploy lab submit wc --rate 1000",
        "python -m deploy lab submit pages --workload page-views --rate 500",
        "python -m deploy lab submit heap --workload heap --set workload.heap.mb=64",
    )
)
def submit(
    topology: Annotated[str, typer.Argument(help="Name of the topology.")] = "wc",
    *,
    rate: Annotated[float, typer.Option(min=0, help="Sentences per second.")] = 1000.0,
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "wordcount",
    sentence_bytes: Annotated[
        int | None, typer.Option(help="Size of a sentence; by default that of its words.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE of the topology's configuration; may be repeated."),
    ] = None,
    name: Name = "lab",
) -> None:
    """Submit a workload, wait until it runs, print its id."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    conf = conf_of(settings or [])
    if sentence_bytes is not None:
        conf["workload.sentence.bytes"] = sentence_bytes
    lab = attach(name)
    submitted = lab.submit(topology, conf, rate_tps=rate, workload=workload)
    lab.wait_ready(topology)
    typer.echo(submitted)


@lab_app.command("judge", epilog=example("python -m deploy lab judge wc"))
def verdict(
    topology: Annotated[str, typer.Argument(help="Name of the topology.")] = "wc",
    limit: Annotated[float, typer.Option(min=0, help="Seconds to wait for all acks.")] = 30.0,
    name: Name = "lab",
) -> None:
    """Pause a topology and check that nothing was lost; the exit code is 1 when something was.

    Afterwards it has the rate again that it had.
    """
    from deploy.lab.cluster import attach  # noqa: PLC0415
    from deploy.lab.workloads import judge  # noqa: PLC0415

    found = judge(attach(name).ledger(topology), limit)
    typer.echo(found)
    if not found.ok:
        raise typer.Exit(1)


@lab_app.command(
    "feed",
    epilog=example(
        "python -m deploy lab feed wc --rate 500 --times 3.25 --for 180 --every 1200",
        "python -m deploy lab feed wc --shape day --rate 500 --times 4 --every 600",
    ),
)
def feed_topology(
    topology: Annotated[str, typer.Argument(help="Name of the topology.")] = "wc",
    *,
    shape: Annotated[Shape, typer.Option(help="How its input changes.")] = Shape.BURST,
    rate: Annotated[float, typer.Option(min=1, help="The least sentences per second.")] = 500.0,
    times: Annotated[float, typer.Option(min=1, help="The most, as times the least.")] = 3.25,
    lasts: Annotated[float, typer.Option("--for", min=1, help="Seconds of a burst.")] = 180.0,
    every: Annotated[float, typer.Option(min=1, help="Seconds from one to the next.")] = 1200.0,
    count: Annotated[int, typer.Option(min=1, help="How many bursts, or days.")] = 3,
    name: Name = "lab",
) -> None:
    """Feed a topology with bursts or days; afterwards it has the rate again that it had."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    waves = Waves(shape, rate, times, min(lasts, every), every)
    feed(attach(name).ledger(topology), waves.at, count * every)


@lab_app.command(
    "burn", epilog=example("python -m deploy lab burn 10.77.0.2 --cores 0.5 --for 600")
)
def burn_cpu(
    node: Annotated[str, typer.Argument(help="Address of a node, as `lab status` has it.")],
    *,
    cores: Annotated[float, typer.Option(min=0.01, max=64, help="How many cores.")] = 0.5,
    lasts: Annotated[float, typer.Option("--for", min=1, help="Seconds.")] = 600.0,
    name: Name = "lab",
) -> None:
    """Burn CPU on a node, as processes outside of Storm do."""
    from deploy.lab.cluster import attach  # noqa: PLC0415

    burn(burning(attach(name).layout, node, cores, lasts))


def _describe(lab: "Lab") -> str:
    described: dict[str, Any] = {
        "zookeeper": lab.zookeeper,
        "conf": str(lab.layout.storm_yaml),
        "nodes": {node.supervisor_id: node.host for node in lab.nodes},
        "workers": lab.worker_pids(),
        "topologies": lab.topologies(),
        "cannot_show": lab.layout.options.cannot_show,
    }
    network = lab.layout.options.network
    if network is not None:
        links = network.link_bps or [*network.links_bps] or None
        bounds = {"node_cores": network.cores, "node_link_bps": links}
        described |= {name: bound for name, bound in bounds.items() if bound is not None}
    return json.dumps(described, indent=1)


@app.command(epilog=example("python -m deploy demo"))
def demo() -> None:
    """Show nstorm at work, live, and write a report with a picture.

    Starts a Storm cluster with a WordCount and lets the controller move executors. Then it compares
    the new placement with Storm's, in turn, by moves; some 5 minutes. Each of its two nodes has
    cores of its own, as root and with cgroups; else they share all cores. The report is left in
    build/demo, with the pairs that there are if a switch cannot be made. Exit code 0 if nothing was
    lost, else 1. Ctrl-C ends it cleanly.
    """
    try:
        # Late: the lab needs no matplotlib, and it takes long to load.
        from deploy.demo.play import OUT_DIR, run_demo  # noqa: PLC0415
        from deploy.demo.report import is_lossless, lines  # noqa: PLC0415
        from deploy.demo.screen import Screen  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(f"the demo needs {error.name}: type: make setup") from None
    console = Console()
    with Screen(console) as screen:
        report = run_demo(screen)
    for line in lines(report):
        typer.echo(line)
    typer.echo(f"written: {OUT_DIR / 'report.json'} and {OUT_DIR / 'report.png'}")
    if not is_lossless(report):
        raise typer.Exit(1)


app.command(epilog=example("python -m deploy simulate tests/golden/scenarios/drift.txt"))(simulate)
app.add_typer(lab_app, name="lab")


@app.callback()
def _root() -> None:
    """Try nstorm in a checkout: a lab, a demo in it, and an imagined cluster."""
