"""Writes the golden byte vectors that the Python and the Java tests read.

Run it after a wanted change of a format, and read the difference before keeping it. `v1/` has what
the last version of the protocol wrote, and stays as it is; a new version puts today's in its place.
"""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from kvstore.envelope import pack
from migration.model import (
    AppliedPlan,
    Base,
    Candidacy,
    Component,
    Counters,
    Edge,
    Entry,
    EntryAck,
    EntryState,
    ExecutorId,
    ExecutorLoad,
    ExecutorWay,
    LocalPlan,
    Messaging,
    NimbusReport,
    Node,
    NodeAcks,
    NodeLoad,
    Nodes,
    PersistedSlot,
    Phase,
    PinnedExecutor,
    PlacedExecutor,
    Plan,
    PlanVersion,
    Publication,
    PublishedTopology,
    Slot,
    SupervisorAck,
    Way,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from migration.wire import encode

FOLDER = Path(__file__).parent

CLUSTER = "6f1c2c1e-5a0e-4d6c-9a57-0b9a2f6f3c11"
TOPOLOGY = "wc-1-1700000000"
# Ids as Storm makes them: a UUID and the host's address.
HERE = "0e9d9bd5-93a5-4f08-8c3e-7d1c8a6c9a10-127.0.0.2"
THERE = "7c0a3fd2-1b8e-4f5b-8a52-9b1d4a5c2e77-127.0.0.3"
SOURCE, TARGET = Slot(HERE, 6700), Slot(THERE, 6701)

MOVE = Entry(
    id="m12",
    executor=ExecutorId(7, 7),
    source=SOURCE,
    target=TARGET,
    phase=Phase.SWITCH,
    base=Base(SOURCE, 1700000000),
)
VOIDED = Entry(
    id="m9",
    executor=ExecutorId(3, 4),
    source=TARGET,
    target=SOURCE,
    phase=Phase.STOP,
    base=Base(TARGET, 1700000005),
    void='Storm assigned it elsewhere ("rebalance")\n',
)
PLAN = Plan(CLUSTER, 3, 17, TOPOLOGY, (MOVE,))

SOURCE_ACK = WorkerAck(
    topology=TOPOLOGY,
    slot=SOURCE,
    pid=4711,
    incarnation="4711-1700000000000",
    hooks="0.2.0",
    speaks=2,
    time_ms=1700000012345,
    cluster=CLUSTER,
    epoch=3,
    version=17,
    entries=(
        EntryAck("m12", EntryState.ROUTED, SOURCE),
        EntryAck("m9", EntryState.NONE, None, True),
    ),
    executors=(ExecutorId(-1, -1), ExecutorId(1, 1), ExecutorId(7, 7)),
    pinned=(
        PinnedExecutor(ExecutorId(-1, -1), "system"),
        PinnedExecutor(ExecutorId(1, 1), "spout"),
    ),
    ways=(ExecutorWay(ExecutorId(1, 1), Way.SPOUT),),
    counters=Counters(forwarded=12, parked=3, dropped=0, errors=1, unordered=2),
    fault="prepare of split[7,7]",
    storm="2.8.3",
)
# Text that JSON writers like to differ in: controls, quotes, slashes, letters beyond ASCII.
ODD_TEXT = 'a "b" \\ c/d \b\f\n\r\t\x01\x1f\x7f ü 漢 🌩 \u2028'
FRESH_ACK = WorkerAck(
    topology=TOPOLOGY,
    slot=TARGET,
    pid=4800,
    incarnation="4800-1700000000001",
    hooks="0.2.0",
    speaks=2,
    time_ms=1700000012346,
    cluster="",
    epoch=0,
    version=-1,
    error=ODD_TEXT,
)
OFF_ACK = replace(
    FRESH_ACK,
    error=None,
    executors=(ExecutorId(8, 8),),
    storm="2.8.3",
    off="a fault (operator ada)",
)
GUARDED_ACK = replace(OFF_ACK, off=UNSET, messaging=Messaging(("sasl",), ("sasl", "tls")))
SUPERVISOR_ACK = SupervisorAck(
    supervisor=HERE,
    pid=4000,
    hooks="0.2.0",
    speaks=2,
    time_ms=1700000012000,
    cluster=CLUSTER,
    plans=(AppliedPlan(TOPOLOGY, 3, 17),),
    slots=(PersistedSlot(6700, TOPOLOGY, (ExecutorId(1, 1), ExecutorId(7, 7))),),
    storm="2.8.3",
    error="Storm 2.8.3 has code that these hooks do not know: Slot.handleRunning",
)
USERS_ACK = replace(
    SUPERVISOR_ACK,
    slots=(PersistedSlot(6700, TOPOLOGY, (ExecutorId(1, 1),), "ada"),),
    error=None,
)
WORKER_LOAD = WorkerLoad(
    topology=TOPOLOGY,
    slot=SOURCE,
    incarnation="4711-1700000000000",
    time_ms=1700000012345,
    process_cpu_ns=9_876_543_210,
    executors=(
        ExecutorLoad(ExecutorId(1, 1), "spout", 1_234_567_890, 0, "spout"),
        ExecutorLoad(ExecutorId(7, 7), "split", 2_345_678_901, 17, None),
    ),
    traffic=traffic_of([(1, 7, 123456), (7, 2147483647, 9223372036854775807)]),
    folded=((7, "count", 4711),),
)
METERED = replace(
    WORKER_LOAD,
    executors=(),
    traffic=traffic_of(()),
    folded=(),
    meters={
        "heap_live_bytes": 104_857_600,
        "heap_max_bytes": 805_306_368,
        "gc_ms": 0,
        "transfer_queue_tuples": 17,
    },
)
SIZED = replace(
    METERED,
    meters=UNSET,
    sizes=(("split", "count", 4711, 123_456), ("split", "__acker", 4711, 2**63 - 1)),
)
MEASURED = replace(
    METERED,
    meters=UNSET,
    executors=WORKER_LOAD.executors,
    executor_meters={"allocated_bytes": (-1, 2**63 - 1)},
)
TIMED = replace(METERED, meters={"acked_tuples": 9_100}, latency=((0, 12), (22, 444), (73, 1)))
PUBLICATION = Publication(
    topology=TOPOLOGY,
    name="wc",
    status="ACTIVE",
    refresh_poll_secs=10,
    components=(Component("spout", "spout", 2), Component("split", "bolt", 6, 128.5)),
    edges=(Edge("spout", "split", "default", "shuffle"),),
    executors=(
        PlacedExecutor(ExecutorId(7, 7), "split", SOURCE, 1700000000),
        PlacedExecutor(ExecutorId(8, 8), "split", None, None),
    ),
    speaks=2,
    mode="approve",
    worker_timeout_secs=120,
    message_timeout_secs=45,
)
NODES = Nodes(
    (
        Node(HERE, "127.0.0.2", 200.0, (6700, 6701), 2, memory_mb=800.0),
        Node(THERE, "n3", 87.5, (6700, 6701), 1, "bad"),
    )
)
NIMBUS = NimbusReport(
    time_ms=1700000010000,
    hooks="0.2.0",
    speaks=2,
    scheduler="org.apache.storm.scheduler.DefaultScheduler",
    topologies=(
        PublishedTopology(TOPOLOGY, PlanVersion(3, 17)),
        PublishedTopology("new-2-1700000009", undoes="isolated"),
        PublishedTopology("vast-3-1700000001", None, "it needs 300,000 bytes"),
    ),
    storm="2.8.3",
)
LOCAL_PLAN = LocalPlan(CLUSTER, (PLAN,))

MESSAGES: dict[str, Any] = {
    "plan": PLAN,
    "plan_void": Plan(CLUSTER, 3, 18, TOPOLOGY, (MOVE, VOIDED)),
    "plan_empty": Plan(CLUSTER, 1, 0, TOPOLOGY),
    "local_plan": LOCAL_PLAN,
    "publication": PUBLICATION,
    "nodes": NODES,
    "nimbus": NIMBUS,
    "candidacy": Candidacy("nimbus-1:4711", "0.2.0", 2),
    "node_acks": NodeAcks(
        HERE, 1700000012400, "0.2.0", 2, CLUSTER, (SOURCE_ACK, FRESH_ACK), SUPERVISOR_ACK
    ),
    "node_acks_held": NodeAcks(THERE, 1700000012400, "0.2.0", 2, CLUSTER, held=(PLAN,)),
    "node_acks_empty": NodeAcks(THERE, 1700000012400, "0.2.0", 2, CLUSTER),
    "node_acks_off": NodeAcks(
        THERE, 1700000012400, "0.2.0", 2, CLUSTER, (OFF_ACK,), off="a fault (operator ada)"
    ),
    "worker_ack": SOURCE_ACK,
    "worker_ack_off": OFF_ACK,
    "worker_ack_guarded": GUARDED_ACK,
    "worker_ack_fresh": FRESH_ACK,
    "supervisor_ack": SUPERVISOR_ACK,
    "supervisor_ack_users": USERS_ACK,
    "node_load": NodeLoad(HERE, 1700000012400, (WORKER_LOAD,)),
    "worker_load": WORKER_LOAD,
    "worker_load_meters": METERED,
    "worker_load_sizes": SIZED,
    "worker_load_latency": TIMED,
    "worker_load_executors": MEASURED,
    "node_load_meters": NodeLoad(
        HERE,
        1700000012400,
        (METERED,),
        meters={"machine_cpu_ns": 98_765_432_100, "machine_cores": 1.5},
    ),
}


def _envelopes() -> dict[str, bytes]:
    payload = encode(LOCAL_PLAN)
    good = pack(1700000012345, payload)
    damaged = bytearray(good)
    damaged[len(good) // 2] ^= 1
    return {
        "local_plan": good,
        "worker_ack": pack(2, encode(SOURCE_ACK)),
        "empty_payload": pack(1, b""),
        "highest_version": pack(2**63 - 1, b"{}"),
        "bad_crc": bytes(damaged),
        "bad_magic": _sealed(b"MTSN" + good[4:-4]),
        "bad_schema": _sealed(good[:4] + struct.pack(">H", 2) + good[6:-4]),
        "bad_length": _sealed(good[:14] + struct.pack(">I", len(payload) + 1) + good[18:-4]),
        "short": good[:-1],
        "short_frame": good[:17],
        "nothing": b"",
    }


def _sealed(body: bytes) -> bytes:
    """Give a wrong body a right checksum, so that only the one thing is wrong."""
    return body + struct.pack(">I", zlib.crc32(body))


def _refused() -> list[dict[str, str]]:
    """List texts that must be refused, with the field to name."""
    plan, entry = encode(PLAN).decode(), "Plan.entries[0]"
    timed = encode(TIMED).decode()
    twice = encode(MOVE_TWICE).decode().replace("m13", "m12")
    cases = [
        ("Plan", "Plan", "\x00\x01garbage"),
        ("Plan", "Plan", ""),
        ("Plan", "Plan", plan[:-1]),
        ("Plan", "Plan", plan + "}"),
        ("Plan", "Plan", "[" * 100_000),
        ("Plan", "Plan", "[]"),
        ("Plan", "Plan", plan.replace('"epoch":3', '"epoch":NaN')),
        ("Plan", "Plan.epoch", plan.replace('"epoch":3', '"epoch":"3"')),
        ("Plan", "Plan.epoch", plan.replace('"epoch":3', '"epoch":3.0')),
        ("Plan", "Plan.epoch", plan.replace('"epoch":3', '"epoch":true')),
        ("Plan", "Plan.epoch", plan.replace('"epoch":3', '"epoch":9223372036854775808')),
        ("Plan", "Plan.version", plan.replace('"version":17,', "")),
        ("Plan", "Plan.topology", plan.replace(f'"{TOPOLOGY}"', "null")),
        ("Plan", "Plan.topology", plan.replace(f'"{TOPOLOGY}"', '""')),
        ("Plan", "Plan.epoch", plan.replace('"epoch":3', '"epoch":-1')),
        ("Plan", f"{entry}.from", plan.replace(f'"from":"{SOURCE}",', "")),
        ("Plan", f"{entry}.void", plan.replace('"void":null', '"void":false')),
        ("Plan", f"{entry}.phase", plan.replace('"SWITCH"', "5")),
        ("Plan", f"{entry}.way", plan.replace('"live"', "null")),
        ("Plan", f"{entry}.executor", plan.replace("[7,7]", "[7]")),
        ("Plan", f"{entry}.executor", plan.replace("[7,7]", "[7,6]")),
        ("Plan", f"{entry}.executor", plan.replace("[7,7]", '"7-7"')),
        ("Plan", f"{entry}.executor[1]", plan.replace("[7,7]", "[7,null]")),
        ("Plan", f"{entry}.from", plan.replace(f'"from":"{SOURCE}"', '"from":"6700"')),
        ("Plan", f"{entry}.to", plan.replace(f'"to":"{TARGET}"', '"to":"s2:70000"')),
        ("Plan", f"{entry}.base[0]", plan.replace(f'["{SOURCE}",', '["s1:+6700",')),
        ("Plan", "Plan", twice),
        ("Plan", "Plan", twice.replace("m12", "m13", 1).replace("[8,8]", "[7,7]")),
        (
            "LocalPlan",
            "LocalPlan.plans[0].epoch",
            encode(LOCAL_PLAN).decode().replace('"epoch":3', '"epoch":null'),
        ),
        (
            "Nodes",
            "Nodes.nodes[0].cpu_capacity",
            encode(NODES).decode().replace("200.0", '"200"'),
        ),
        (
            "WorkerAck",
            "WorkerAck.entries[0].state",
            encode(SOURCE_ACK).decode().replace('"ROUTED"', "7"),
        ),
        ("WorkerLoad", "WorkerLoad.latency[2][0]", timed.replace("[73,", "[74,")),
        ("WorkerLoad", "WorkerLoad.latency[0][0]", timed.replace("[0,", "[-1,")),
        ("WorkerLoad", "WorkerLoad.latency[1][1]", timed.replace("[22,444]", "[22,-444]")),
        ("WorkerLoad", "WorkerLoad.latency[1]", timed.replace("[22,444]", "[22,444,0]")),
        ("WorkerLoad", "WorkerLoad", timed.replace("[22,444]", "[0,444]")),
    ]
    return [{"format": kind, "field": field, "text": text} for kind, field, text in cases]


def _read() -> list[dict[str, str]]:
    """List texts that an older or a newer version writes, with what they mean in this one."""
    plan = encode(PLAN).decode()
    empty = encode(MESSAGES["plan_empty"]).decode()
    unknown = encode(Plan(CLUSTER, 3, 17, TOPOLOGY, (replace(MOVE, phase=Phase.UNKNOWN),))).decode()
    leaping = encode(Plan(CLUSTER, 3, 17, TOPOLOGY, (replace(MOVE, way=Way.UNKNOWN),))).decode()
    move = replace(MOVE, phase=Phase.OPEN, opens="127.0.0.3")
    opening = encode(Plan(CLUSTER, 3, 17, TOPOLOGY, (move,))).decode()
    renewed = replace(MOVE, phase=Phase.QUIET, way=Way.RENEW)
    renewing = encode(Plan(CLUSTER, 3, 17, TOPOLOGY, (renewed,))).decode()
    kept = replace(MOVE, ordered=True)
    ordered = encode(Plan(CLUSTER, 3, 17, TOPOLOGY, (kept,))).decode()
    cases = [
        (plan.replace('"epoch":3', '"epoch":3,"later":{"a":[1,{"b":null}]}'), plan),
        (plan.replace('"phase"', '"later":1e999,"phase"'), plan),
        (plan.replace(',"void":null', ""), plan),
        (plan.replace("[7,7]", '[7,7,"later"]'), plan),
        (plan.replace('"epoch":3', '"epoch":1,"epoch":3'), plan),
        (plan.replace("SWITCH", "LEAP"), unknown),
        (plan.replace("live", "leap"), leaping),
        (plan.replace(',"way":"live"', ""), plan),
        (plan.replace(',"opens":null', ""), plan),
        (plan.replace(',"ordered":false', ""), plan),
        (ordered, ordered),
        (opening, opening),
        (renewing, renewing),
        (empty.replace(',"entries":[]', ""), empty),
    ]
    return [{"text": text, "means": means} for text, means in cases]


MOVE_TWICE = Plan(
    CLUSTER,
    3,
    17,
    TOPOLOGY,
    (MOVE, Entry("m13", ExecutorId(8, 8), SOURCE, TARGET, Phase.PREPARE, Base(SOURCE, 1))),
)
ENVELOPES = _envelopes()
REFUSED = _refused()
READ = _read()


def contents() -> dict[str, bytes]:
    """Return what each golden file has to hold."""
    files = {f"{name}.json": encode(message) for name, message in MESSAGES.items()}
    files |= {f"{name}.bin": data for name, data in ENVELOPES.items()}
    # The very deep nest would make the file unreadable: a reader repeats it `times` times.
    refused = [_folded(case) for case in REFUSED]
    files["refused.json"] = (json.dumps(refused, indent=1, ensure_ascii=False) + "\n").encode()
    files["read.json"] = (json.dumps(READ, indent=1, ensure_ascii=False) + "\n").encode()
    return files


def _folded(case: dict[str, str]) -> dict[str, str | int]:
    text = case["text"]
    deep = len(text) > 1000 and len(set(text)) == 1
    folded: dict[str, str | int] = {"text": text[0], "times": len(text)} if deep else {}
    return case | folded


if __name__ == "__main__":
    for name, data in contents().items():
        (FOLDER / name).write_bytes(data)
