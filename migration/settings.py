"""Every key of nstorm in one table; parsers, hints, sweeps and docs/settings.md come from it."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kvstore.endpoint import Endpoint
from migration import ConfigError

PREFIX = "nstorm."
# A number without an upper bound of its own; one that is infinite would pass a comparison.
UNBOUNDED = 1e9


class Kind(StrEnum):
    NUMBER = "number"
    COUNT = "whole number"
    CHOICE = "one of a few words"
    NAMES = "list of names"
    WORDS = "a value for each component"
    LISTS = "a list of names for each component"
    RECORDS = "list of records"
    SWITCH = "true or false"
    FOLDER = "directory, or off"
    TEXT = "text"


class Reader(StrEnum):
    """Which process reads a key; the value is its heading in docs/settings.md."""

    CONTROLLER = "The controller"
    AGENT = "The agent"
    HOOKS = "The hooks"
    ACCESS = "Agent, controller, commands and the hooks in Nimbus"
    DECIDE = "`nstorm decide` alone"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key: a row of the table."""

    key: str  # without the leading ``nstorm.``
    kind: Kind
    default: Any  # None where leaving the key out means something else than any value
    sentence: str
    reader: Reader = Reader.CONTROLLER
    unit: str = ""
    least: float = 0.0
    most: float = UNBOUNDED
    unset: str = ""  # in words, what holds where the default is None or empty
    # Of a `CHOICE` or of `WORDS`; empty where only the reader knows them, as it knows its policies.
    choices: tuple[str, ...] = ()
    tunable: bool = False  # whether a sweep may vary it
    tried: tuple[Any, ...] = ()  # the values of a sweep by default
    only_for: str = ""  # the only policy that reads it

    def read(self, value: Any, choices: Sequence[str] = ()) -> Any:
        """Check a value, as YAML or JSON gives it; `choices` are words that only the reader knows.

        Returns what `read` and JSON give back unchanged: a float, an int, a bool, a text, or a
        sorted list of names. If the value cannot be, a `ConfigError` begins with the key.
        """
        words = choices or self.choices
        given = value
        if self.kind is Kind.FOLDER and (value is False or value == "off"):
            given = ""  # YAML 1.1 reads off as false, but not in quotes
        elif isinstance(value, float) and value.is_integer():
            given = int(value)
        try:
            found = msgspec.convert(given, self._type(words))
        except msgspec.ValidationError:
            raise ConfigError(
                f"{PREFIX}{self.key}: must be {self._must(words)}, is {value!r}"
            ) from None
        return sorted(set(found)) if self.kind is Kind.NAMES else found

    def _type(self, words: Sequence[str]) -> Any:
        bounds = Meta(ge=self.least, le=self.most)
        word: Any = Literal[tuple(words) or ("",)]
        return {
            Kind.NUMBER: Annotated[float, bounds],
            Kind.COUNT: Annotated[int, Meta(ge=int(self.least), le=int(self.most))],
            Kind.CHOICE: word,
            Kind.NAMES: list[str],
            Kind.WORDS: dict[str, word],
            Kind.LISTS: dict[str, Annotated[list[str], Meta(min_length=1)]],
            Kind.RECORDS: list[dict[str, Any]],
            Kind.SWITCH: bool,
            Kind.FOLDER: str,
            Kind.TEXT: Annotated[str, Meta(min_length=1)],
        }[self.kind]

    def _must(self, words: Sequence[str]) -> str:
        bounds = f"of at least {self.least:g} and at most {self.most:,.10g}"
        return {
            Kind.NUMBER: f"a number {bounds}",
            Kind.COUNT: f"a whole number {bounds}",
            Kind.CHOICE: f"one of {', '.join(words)}",
            Kind.NAMES: "a list of names",
            Kind.LISTS: "a list of names for each component",
            Kind.WORDS: f"one of {', '.join(words)} for each component",
            Kind.RECORDS: "a list of records with keys",
            Kind.SWITCH: "true or false",
            Kind.FOLDER: "a directory, or off",
            Kind.TEXT: "text",
        }[self.kind]


_TPS = "tuples/s"
# The order is that of docs/settings.md, and that in which a sweep draws its samples.
# A row takes a few lines: ruff would give each of its values its own.
# fmt: off
SETTINGS: tuple[Setting, ...] = (
    Setting("mode", Kind.CHOICE, "advise",
        "The mode of a topology without a mode of its own, from `nstorm mode` or from "
        "`topology.nstorm.mode` in its configuration. `observe` only measures. `advise` also "
        "shows the moves that the controller would make. `approve` makes them after `nstorm "
        "approve`, and `auto` makes them at once.",
        choices=("observe", "advise", "approve", "auto")),
    Setting("mode.max", Kind.CHOICE, None,
        "The most far-reaching mode that `topology.nstorm.mode` in a topology's own configuration "
        "may set. A mode that goes less far is always allowed.",
        choices=("observe", "advise", "approve", "auto"), unset="that of `nstorm.mode`"),
    Setting("policy", Kind.CHOICE, "gather",
        "The policy that decides; `nstorm decide --help` lists the names.",
        tunable=True, tried=("gather", "otd")),
    Setting("load.high", Kind.NUMBER, 0.85,
        "Above this share of its CPU or heap a worker is overloaded, and the policy relieves it.",
        least=0.01, most=1.0, tunable=True, tried=(0.6, 0.7, 0.8, 0.85, 0.9, 0.95)),
    Setting("load.low", Kind.NUMBER, 0.6,
        "A worker at or below this share of its CPU is low. It may not exceed `load.high`, and "
        "defaults to min(0.6, `load.high`).",
        most=1.0, tunable=True, tried=(0.3, 0.45, 0.6, 0.75), only_for="otd"),
    Setting("headroom.min", Kind.NUMBER, 2.0,
        "By what factor the input should be able to grow until a node is full, at its peak. The "
        "node that leaves least is relieved where others have room. On the way to another "
        "placement as much is left, where it is now. Where the way ends, it may grow by as much "
        "as before it.",
        least=1.0, most=100.0, only_for="gather"),
    Setting("asc.threshold", Kind.NUMBER, 0.002,
        "A move for traffic must gain more than this share of all traffic. In a topology of E "
        "executors, more than 40, the share is multiplied by 40 / E.",
        most=1.0, tunable=True, tried=(0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)),
    Setting("asc.threshold.tps", Kind.NUMBER, None,
        "The same threshold as an absolute number. Where it is set, `asc.threshold` has no effect.",
        unit=_TPS, unset="`asc.threshold` counts", tunable=True),
    Setting("target.gain", Kind.NUMBER, 0.025,
        "A placement is adopted only if it gains more than this share of today's weighted traffic "
        "between workers. While the loads jitter, it has to gain more than twice this share.",
        most=1.0, only_for="gather"),
    Setting("target.move.price", Kind.NUMBER, 0.01,
        "The price of moving every executor, as a share of today's weighted traffic between "
        "workers. It is twice this share while the loads jitter.",
        most=1.0, only_for="gather"),
    Setting("target.fill", Kind.NUMBER, 0.95,
        "The part of `load.high` that a placement may use of a worker.",
        least=0.1, most=1.0, only_for="gather"),
    Setting("weight.node", Kind.NUMBER, 0.8,
        "The weight of a tuple between two nodes when moves are compared. One of the two weights "
        "must be above 0.",
        tunable=True),
    Setting("weight.worker", Kind.NUMBER, 0.2,
        "The weight of a tuple between two workers when moves are compared.", tunable=True),
    # Longer than twenty cycles: noise brings fewer executors back to the node they left.
    Setting("cooldown.executor.secs", Kind.NUMBER, 105.0,
        "How long an executor is in cool-down after a move. From the second move on that was "
        "undone, the time doubles with each, up to a day.",
        unit="s", tunable=True, tried=(15, 30, 60, 105, 240, 600)),
    Setting("min.age.secs", Kind.NUMBER, 0.0,
        "Decisions do not move an executor for this time after Storm has started it: with its "
        "topology, by a rebalance, or after its worker died. Storm's own start time counts.",
        unit="s", unset="none"),
    Setting("cycle.secs", Kind.NUMBER, 5.0,
        "The time between two decisions.",
        unit="s", least=0.1, most=3600.0, tunable=True, tried=(2, 5, 10, 20, 60)),
    Setting("load.ewma", Kind.NUMBER, 0.3,
        "The weight of the newest load report in the moving average.",
        least=0.01, most=1.0, tunable=True, tried=(0.1, 0.2, 0.3, 0.5, 1.0)),
    Setting("max.moves.per.cycle", Kind.COUNT, 1,
        "The most moves that the whole cluster may have between PREPARE and STOP at a time, and "
        "the most of one decision. Executors that exchange their places begin at once. An "
        "exchange may exceed this number only while no other move is under way.",
        least=1, most=1000, tunable=True, tried=(1, 2, 4)),
    Setting("max.moves.per.hour", Kind.COUNT, None,
        "The most moves that begin in the whole cluster within an hour, including those of "
        "operators. The last decision may exceed it. The history has the last 200 moves.",
        least=1, most=200, unset="no limit"),
    Setting("max.moves.per.host.hour", Kind.COUNT, None,
        "The same for the moves from or to one host.",
        least=1, most=200, unset="no limit"),
    Setting("windows", Kind.NAMES, (),
        "When decisions may begin moves. Five fields of cron name the open minutes, and a zone "
        "follows, such as `* 2-4 * * MON-FRI Europe/Berlin` for each night from 2 to 5.",
        unset="always"),
    Setting("guard", Kind.RECORDS, (),
        "Signals of yours that moves must not harm. Each record has a `limit`, and `secs` for how "
        "long the signal may be above it (30 by default). The signal is `signal: ack.p99.ms`, "
        "`signal: failed.tps`, or a `query` in PromQL and the `url` of the server that answers it. "
        "`topology` names the only topology that it is for. While a signal is above its limit or "
        "cannot be read, no new moves begin. Where a run of moves breaches it, the run goes back "
        "and the topology pauses.",
        unset="none"),
    Setting("notice", Kind.RECORDS, (),
        "Who gets a notice of moves, of runs that go back, of breached guards and of capacity that "
        "is missing. Each record has one receiver. `webhook` is a file whose first line is an "
        "address, which gets JSON, and `token` one with a bearer token for it. `slack` is a file "
        "with the address of an incoming webhook. `mail` is a command, as a list, that gets an "
        "e-mail on its standard input. `kinds` names some of `move`, `run`, `guard` and "
        "`capacity`; all by default.",
        unset="none"),
    Setting("worker.cpu.capacity", Kind.NUMBER, None,
        "What each worker may use for itself, where something limits it, such as a cgroup.",
        unit="cores", least=0.01,
        unset="workers share what their node has: `supervisor.cpu.capacity` / 100"),
    Setting("link.capacity.mbit", Kind.NUMBER, None,
        "What the link of each node can carry in one direction, where it is less than its "
        "interface can. The agent reads it too: in the file of one node it is that of this node.",
        unit="Mbit/s", least=0.01,
        unset="the speed of the node's interface, where that can be read"),
    Setting("lazy.kill.ms", Kind.COUNT, 2000,
        "A source that still has work after this time is stopped, and its queue is handed on.",
        unit="ms", most=3_600_000),
    Setting("prepare.limit.secs", Kind.NUMBER, 20.0,
        "How long a move waits until the executor is built and prepared at its target. After that "
        "it is undone.",
        unit="s", least=1.0, most=3600.0),
    Setting("excluded.topologies", Kind.NAMES, (),
        "Names or ids of topologies that nstorm never changes.", unset="none"),
    Setting("excluded.components", Kind.NAMES, (),
        "Components whose executors are never moved.", unset="none"),
    Setting("excluded.hosts", Kind.NAMES, (),
        "Hosts from which and to which no executor is moved. In a snapshot, ids of nodes.",
        unset="none"),
    Setting("journal.dir", Kind.FOLDER, "",
        "Where the controller writes its journal; `off` for none.",
        unset="`storm.local.dir`/nstorm-journal"),
    Setting("journal.days", Kind.NUMBER, 14.0,
        "The controller deletes older parts of the journal.", unit="days", least=0.01),
    Setting("journal.size.mb", Kind.NUMBER, 1024.0,
        "The controller deletes the oldest parts of the journal above this size.",
        unit="MB", least=1.0),
    Setting("metrics.port", Kind.COUNT, None,
        "The port where the controller serves `/metrics`, `/healthz` and `/readyz`.",
        least=1, most=65535, unset="nothing listens"),
    Setting("metrics.host", Kind.TEXT, "localhost",
        "The address or host name where controller and agent serve their metrics; `0.0.0.0` is "
        "every address of the machine. Everybody who reaches it can read them, unless there is a "
        "token."),
    Setting("metrics.tls.certificate", Kind.TEXT, None,
        "The PEM file of the certificate with which controller and agent serve their metrics by "
        "TLS. It is read at the start.",
        unset="no TLS"),
    Setting("metrics.tls.key", Kind.TEXT, None,
        "The PEM file of its key.", unset="the certificate's file has it"),
    Setting("metrics.token", Kind.TEXT, None,
        "A file with a token: only requests with `Authorization: Bearer TOKEN` are answered. It is "
        "read for each.",
        unset="everybody is answered"),
    Setting("aniello.alpha", Kind.NUMBER, 0.0,
        "Policies `aniello-*`: 0 puts equally many executors into each worker, 1 lets nearly all "
        "go into one.",
        most=1.0),
    Setting("aniello.beta", Kind.NUMBER, 0.5,
        "Policy `aniello-offline`: after this share of the components, upstream first, empty "
        "slots are used by force.",
        most=1.0),
    Setting("aniello.gamma", Kind.NUMBER, None,
        "Policy `aniello-online`: the most CPU of a worker, as a multiple of the mean.",
        least=1.0, unset="no limit"),
    Setting("agent.sync.secs", Kind.NUMBER, 3.0,
        "How often the agent reads its plans in ZooKeeper, in case a watch fails.",
        Reader.AGENT, unit="s", least=0.1, most=3600.0),
    Setting("load.secs", Kind.NUMBER, None,
        "How often the agent reports the load of its node; a new leader gets a report sooner.",
        Reader.AGENT, unit="s", least=0.1, most=3600.0,
        unset="0.8 of `cycle.secs`, but from 1 to 4 s, so that each cycle finds a new report"),
    Setting("agent.metrics.port", Kind.COUNT, None,
        "The port where the agent serves `/metrics`, `/healthz` and `/readyz`.",
        Reader.AGENT, least=1, most=65535, unset="nothing listens"),
    Setting("store.dir", Kind.TEXT, None,
        "The absolute path of the folder with the LMDB files of agent and hooks; the hooks also "
        "read it.",
        Reader.AGENT, unset="`storm.local.dir`/nstorm"),
    Setting("supervisor.id", Kind.TEXT, None,
        "The id of this node's supervisor.", Reader.AGENT,
        unset="the id that the node's JVMs report"),
    Setting("worker.poll.ms", Kind.COUNT, 50,
        "How often a worker reads the plan.", Reader.HOOKS, unit="ms", least=1, most=60_000),
    Setting("unverified", Kind.CHOICE, "watch",
        "What a JVM does whose Storm has code that the hooks do not know. `watch`: it counts and "
        "reports, and moves nothing. `move`: it moves all the same.",
        Reader.HOOKS, choices=("watch", "move")),
    Setting("cleanup", Kind.NAMES, (),
        "Components whose `cleanup()` is called when an executor has moved away. The key may also "
        "stand in the topology's own configuration.",
        Reader.HOOKS, unset="none"),
    Setting("move", Kind.WORDS, MappingProxyType({}),
        "How executors of a component move. `live`: also if its bolt keeps state, which the new "
        "copy then lacks. `carry`: with the fields of `state`, whatever else its code does. "
        "`drain`: once its bolt keeps no tuple, and without its other state. `renew`: its source "
        "ends before the new copy opens its resources. `never`: its executors stay. The key may "
        "also stand in the topology's own configuration.",
        Reader.HOOKS,
        unset="as its state requires", choices=("live", "carry", "drain", "renew", "never")),
    Setting("state", Kind.LISTS, MappingProxyType({}),
        "The fields of a component's bolt that travel when it moves, or that hold tuples if it is "
        "drained. The key may also stand in the topology's own configuration.",
        Reader.HOOKS, unset="the fields that its code changes"),
    Setting("state.classes", Kind.NAMES, (),
        "Classes, or packages that end in `.*`, whose objects may travel although no field's type "
        "leads to them. The key may also stand in the topology's own configuration.",
        Reader.HOOKS, unset="none"),
    Setting("state.rehearsed", Kind.SWITCH, False,
        "Whether a worker rehearses a transfer before the pause of its first moves with state. It "
        "writes and reads a map, and sends zeros ahead of its first large state. A rehearsal "
        "takes 0.1 s of CPU and 40 MB of heap, and the first large state travels twice. The key "
        "may also stand in the topology's own configuration.",
        Reader.HOOKS),
    Setting("secure", Kind.CHOICE, None,
        "With `required`, no process of nstorm works with a ZooKeeper that does not know who it "
        "is.",
        Reader.ACCESS, choices=("required",), unset="a ZooKeeper without credentials is also used"),
    Setting("zookeeper.jaas", Kind.TEXT, None,
        "The JAAS file whose section `Client` has the credentials of agent, controller and "
        "commands at ZooKeeper. The hooks in Nimbus use Nimbus' own.",
        Reader.ACCESS, unset="that of `java.security.auth.login.config`, as a key or in the "
        "options of supervisor or Nimbus"),
    Setting("zookeeper.tls.ca", Kind.TEXT, None,
        "The PEM file with the authorities that vouch for ZooKeeper. Needed where "
        "`storm.zookeeper.ssl.enable` is true.",
        Reader.ACCESS, unset="no TLS"),
    Setting("zookeeper.tls.certificate", Kind.TEXT, None,
        "The PEM file with the certificate of this process, where ZooKeeper asks for one.",
        Reader.ACCESS, unset="none"),
    Setting("zookeeper.tls.key", Kind.TEXT, None,
        "The PEM file with the key of that certificate, without a password.",
        Reader.ACCESS, unset="none"),
    Setting("acl.controller", Kind.NAMES, (),
        "Who may do at ZooKeeper what a controller does, such as `sasl:nstorm-controller`. Any of "
        "these four keys needs `storm.zookeeper.superACL`, which names Nimbus.",
        Reader.ACCESS, unset="the identity of Nimbus"),
    Setting("acl.agent", Kind.NAMES, (), "The same for agents.", Reader.ACCESS,
        unset="the identity of Nimbus"),
    Setting("acl.operator", Kind.NAMES, (), "The same for those whose commands change something.",
        Reader.ACCESS, unset="the identity of Nimbus"),
    Setting("acl.reader", Kind.NAMES, (), "The same for those whose commands only look.",
        Reader.ACCESS, unset="the identity of Nimbus"),
    Setting("vetoes", Kind.SWITCH, False,
        "Whether a decision on a file keeps the rules of a live run. An executor that has moved "
        "is then in cool-down, and a worker without executors is a free slot.",
        Reader.DECIDE),
)
# fmt: on
DEFAULT: Mapping[str, Any] = MappingProxyType({row.key: row.default for row in SETTINGS})
_ROWS = MappingProxyType({row.key: row for row in SETTINGS})
TRIED: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {row.key: row.tried for row in SETTINGS if row.tried}
)
# Those that a sweep varies by default come first, also where changes are listed.
TUNABLE = (*TRIED, *(row.key for row in SETTINGS if row.tunable and not row.tried))


def setting(key: str) -> Any:
    """Make a field of a dataclass for the value of a key, by default that of the table."""
    return field(default=DEFAULT[key], metadata={"key": key})


def fields_read(kind: Any, read: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields that `setting` has made in a dataclass, of keys that `values` has read."""
    return {f.name: read.get(f.metadata["key"]) for f in fields(kind) if "key" in f.metadata}


def values(
    given: Mapping[str, Any],
    readers: Iterable[Reader],
    choices: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Take the keys of some readers, checked, with the defaults for the others.

    All keys are without the leading ``nstorm.``; `choices` are words of a `CHOICE` that the table
    does not have. A key whose default is None and that is not given is left out. If a value cannot
    be, a `ConfigError` begins with its key.
    """
    wanted = frozenset(readers)
    found: dict[str, Any] = {}
    for row in SETTINGS:
        if row.reader not in wanted or (row.default is None and given.get(row.key) is None):
            continue
        if row.key in given:
            found[row.key] = row.read(given[row.key], (choices or {}).get(row.key, ()))
        else:
            empty = {Kind.NAMES: list, Kind.RECORDS: list, Kind.WORDS: dict, Kind.LISTS: dict}.get(
                row.kind
            )
            found[row.key] = empty() if empty else row.default
    return found


def link_mbit(given: Mapping[str, Any]) -> float | None:
    """Give `link.capacity.mbit`, which is the controller's, to an agent."""
    row = _ROWS["link.capacity.mbit"]
    value = given.get(row.key)
    return None if value is None else float(row.read(value))


def load_s(given: Mapping[str, Any]) -> float:
    """Give `load.secs`, or what holds where it is not given; `cycle.secs` is the controller's to
    refuse.
    """
    if given.get("load.secs") is not None:
        return float(_ROWS["load.secs"].read(given["load.secs"]))
    cycle_s: float = DEFAULT["cycle.secs"]
    with suppress(ConfigError):
        cycle_s = _ROWS["cycle.secs"].read(given.get("cycle.secs"))
    return min(max(0.8 * cycle_s, 1.0), 4.0)


def metrics_at(given: Mapping[str, Any], port_key: str) -> Endpoint | None:
    """Give the endpoint where a daemon serves its metrics; None if it serves none."""
    if given.get(port_key) is None:
        return None

    def read(key: str) -> Any:
        value = given.get(key, DEFAULT[key])
        return None if value is None else _ROWS[key].read(value)

    files = ("metrics.tls.certificate", "metrics.tls.key", "metrics.token")
    certificate, key, token = (None if (f := read(one)) is None else Path(f) for one in files)
    if key is not None and certificate is None:
        raise ConfigError(f"{PREFIX}metrics.tls.key: needs {PREFIX}metrics.tls.certificate")
    return Endpoint(read("metrics.host"), int(read(port_key)), certificate, key, token)


def prefixed_values(document: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Take the keys of one reader out of a storm.yaml, as `values` does."""
    given = {k.removeprefix(PREFIX): v for k, v in document.items() if k.startswith(PREFIX)}
    return values(given, (reader,))


def refuse_unknown(given: Mapping[str, Any]) -> None:
    """Refuse a key that is not in the table: to pass it over would be worse than no start.

    Keys are without the leading ``nstorm.``. The `ConfigError` names each such key, and what
    was meant.
    """
    if problems := list(unknown(given)):
        raise ConfigError("; ".join(problems))


def unknown(given: Mapping[str, Any]) -> Iterator[str]:
    """Name each key that is not in the table, and the one that was meant."""
    for key, value in given.items():
        if key not in DEFAULT:
            shown = PREFIX + _shown(key)
            near = difflib.get_close_matches(key, sorted(DEFAULT), n=1)
            hint = f", did you mean {PREFIX}{near[0]}?" if near else ""
            is_nested = isinstance(value, dict)
            yield nested(shown, value) if is_nested else f"{shown}: unknown key{hint}"


def wrong(given: Mapping[str, Any], choices: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Return what is wrong with each value that cannot be; `choices` as in `values`."""
    for row in SETTINGS:
        try:
            values({row.key: given[row.key]} if row.key in given else {}, (row.reader,), choices)
        except ConfigError as error:
            yield str(error)


def _shown(key: str) -> str:
    return key if key.isprintable() else json.dumps(key)


def nested(key: str, value: Any) -> str:
    """Return how to write a key that holds others."""
    flat, inmost = key, value
    while isinstance(inmost, dict) and inmost:
        name, inmost = next(iter(inmost.items()))
        flat = f"{flat}.{_shown(str(name))}"
    example = (
        f"{flat}: {json.dumps(inmost, default=str)}" if flat != key else f"{PREFIX}mode: advise"
    )
    return f"{key}: keys within keys are not read; write each flat, like Storm's own: {example}"
