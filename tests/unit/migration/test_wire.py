"""Every format against its golden bytes, and everything that must be refused by name."""

import contextlib
import json
import re
import runpy
import zlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kvstore.envelope import pack
from migration import ModelError, WireError, model
from migration.model import LocalPlan, NodeLoad, Plan
from migration.wire import (
    acks_path,
    decode,
    encode,
    encode_local,
    load_path,
    packed,
    plan_path,
    plans_of,
    topology_path,
    unpacked,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
examples: dict[str, Any] = runpy.run_path(str(GOLDEN / "examples.py"))


def test_golden_files_are_what_the_code_writes() -> None:
    wanted = examples["contents"]()
    files = [path for path in GOLDEN.iterdir() if path.suffix in (".json", ".bin")]
    found = {path.name: path.read_bytes() for path in files}
    assert found == wanted


@pytest.mark.parametrize("name", sorted(examples["MESSAGES"]))
def test_a_golden_message_reads_back_as_it_was(name: str) -> None:
    message = examples["MESSAGES"][name]
    assert decode(type(message), (GOLDEN / f"{name}.json").read_bytes()) == message


def as_of_version_1(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out what version 1 did not have."""
    if "speaks" in value:
        value["speaks"] = 1
    if "components" in value:
        del value["speaks"]
    if "incarnation" not in value:
        value.pop("error", None)
    later = (
        "way",
        "ways",
        "mode",
        "opens",
        "ordered",
        "unordered",
        "silent",
        "storm",
        "closed",
        "undoes",
        "memory_mb",
        "worker_timeout_secs",
        "message_timeout_secs",
        "awaits_ahead",
    )
    return {key: one for key, one in value.items() if key not in later}


@pytest.mark.parametrize("path", sorted((GOLDEN / "v1").iterdir()), ids=lambda path: path.stem)
def test_what_the_last_version_wrote_is_read_as_what_it_meant(path: Path) -> None:
    if path.stem == "refused":
        for case in json.loads(path.read_text("utf-8")):
            with pytest.raises(WireError, match=re.escape(case["field"])):
                decode(getattr(model, case["format"]), case["text"].encode() * case.get("times", 1))
        return
    today = examples["MESSAGES"][path.stem]
    meant = json.loads(encode(today), object_hook=as_of_version_1)
    assert json.loads(path.read_bytes()) == meant
    text = json.dumps(meant, separators=(",", ":"), ensure_ascii=False)
    assert decode(type(today), path.read_bytes()) == decode(type(today), text.encode())


def test_the_example_of_the_page_is_read_and_written_as_printed() -> None:
    text = (
        '{"cluster":"6f1c","epoch":3,"version":17,"topology":"wc-1-1700000000","entries":['
        '{"id":"m12","executor":[7,7],"from":"s1:6700","to":"s2:6701","phase":"SWITCH",'
        '"base":["s1:6700",1700000000],"void":null,"way":"live","opens":"h2","ordered":true}]}'
    )
    plan = decode(Plan, text.encode())
    assert plan.entries[0].executor == model.ExecutorId(7, 7)
    assert plan.entries[0].source == model.Slot("s1", 6700)
    assert plan.entries[0].base == model.Base(model.Slot("s1", 6700), 1700000000)
    assert encode(plan).decode() == text


@pytest.mark.parametrize("case", json.loads((GOLDEN / "refused.json").read_text("utf-8")))
def test_a_bad_message_is_refused_and_the_field_named(case: dict[str, Any]) -> None:
    text = case["text"] * case.get("times", 1)
    with pytest.raises(WireError) as caught:
        decode(getattr(model, case["format"]), text.encode())
    assert caught.value.where == case["field"]
    assert str(caught.value).startswith(case["field"])


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(WireError, match="is no JSON"):
        decode(Plan, b"\xff\xfe\x80{")


@pytest.mark.parametrize("case", json.loads((GOLDEN / "read.json").read_text("utf-8")))
def test_what_another_version_writes_is_read_as_far_as_it_is_known(case: dict[str, Any]) -> None:
    assert encode(decode(Plan, case["text"].encode())).decode() == case["means"]


def test_a_whole_number_is_taken_for_a_fraction() -> None:
    text = (GOLDEN / "nodes.json").read_text("utf-8").replace("200.0", "200")
    read = decode(model.Nodes, text.encode())
    assert read == examples["NODES"]
    assert type(read.nodes[0].cpu_capacity) is float


def test_what_is_long_is_compressed_and_what_is_short_stays_readable() -> None:
    short, long = encode(examples["PLAN"]), b"0123456789" * 1000
    assert packed(short) == short
    assert len(packed(long)) < 200
    assert unpacked(packed(long)) == long
    assert unpacked(short) == short


def test_what_is_compressed_and_cut_or_damaged_is_refused() -> None:
    load = model.NodeLoad("s1", 5, (examples["WORKER_LOAD"],) * 20)
    whole = packed(encode(load))
    assert whole.startswith(b"\x1f\x8b")
    assert decode(NodeLoad, whole) == load
    for cut in range(2, len(whole)):
        with pytest.raises(WireError, match="NodeLoad"):
            decode(NodeLoad, whole[:cut])
    for at in range(2, len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x40
        with contextlib.suppress(WireError):
            assert decode(NodeLoad, bytes(damaged)) == load  # a header's date and system are free


def test_what_pretends_to_be_very_long_is_refused_before_it_is_read() -> None:
    bomb = zlib.compressobj(9, wbits=31)
    squeezed = b"".join(bomb.compress(bytes(2**20)) for _ in range(100)) + bomb.flush()
    assert len(squeezed) < 256 * 1024
    for data in (squeezed, b" " * (16 * 2**20 + 1)):
        with pytest.raises(WireError, match="is longer than 16,777,216 bytes"):
            decode(Plan, data)


def test_a_local_plan_keeps_what_this_version_does_not_know() -> None:
    later = encode(examples["PLAN"]).replace(b'"epoch":3', b'"epoch": 3,"later":["\xc3\xbc"]')
    local = encode_local("c", {"wc": later, "x": b'{"y":1} '})
    index = f'{{"cluster":"c","index":[["wc",{len(later)}],["x",8]],"plans":['
    assert local == index.encode() + later + b',{"y":1} ]}'
    assert plans_of(local)[0] == later
    assert decode(LocalPlan, encode_local("c", {"wc": later})).plans == (examples["PLAN"],)


def test_a_typical_move_is_small() -> None:
    plan = examples["PLAN"]
    assert len(pack(1, encode_local(plan.cluster, {plan.topology: encode(plan)}))) < 528


def test_empty_messages() -> None:
    assert encode(LocalPlan("c")) == b'{"cluster":"c","plans":[]}'
    assert encode(NodeLoad("s1", 5)) == b'{"node":"s1","time_ms":5,"workers":[],"left_out":0}'


def test_paths() -> None:
    assert topology_path("wc-1") == "/nstorm/topologies/wc-1"
    assert plan_path("wc-1") == "/nstorm/plans/wc-1"
    assert acks_path("s1") == "/nstorm/acks/s1"
    assert load_path("s1") == "/nstorm/load/s1"


ODD_NAMES = ["", "a\x1b[2J", "a\n", "a\x85b", "a\u2028", "a\u202eb", "x" * 513]


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_a_name_that_cannot_be_shown_is_refused_where_it_is_read(odd: str) -> None:
    """What others may write into ZooKeeper reaches terminals."""
    text = encode(examples["MESSAGES"]["plan"]).decode()
    for key in ("topology", "id", "opens", "from", "to"):
        named = f"{odd}:6700" if key in ("from", "to") else odd
        forged = re.sub(rf'"{key}":[^,}}]+', lambda _: f'"{key}":{json.dumps(named)}', text)  # noqa: B023
        with pytest.raises(WireError):
            decode(Plan, forged.encode())
    node = model.Node(odd, "h", 1.0, (), 0)
    for forged_nodes in (node, replace(node, id="n", host=odd)):
        with pytest.raises(WireError):
            decode(model.Nodes, encode(model.Nodes((forged_nodes,))))
    for message in (model.Candidacy(odd, "0", 2), model.NodeAcks(odd, 0, "0", 2, "c")):
        if odd:
            with pytest.raises(WireError):
                decode(type(message), encode(message))
    with pytest.raises(ModelError):
        model.Slot(odd, 6700)


@pytest.mark.parametrize("name", ["a b", "wörter", "node:1", "x" * 512, "_", "-o", "名"])
def test_the_names_of_storm_are_read(name: str) -> None:
    plan = Plan("c", 1, 0, name)
    assert decode(Plan, encode(plan)) == plan
    assert model.Slot.parse(f"{name}:6700") == model.Slot(name, 6700)


@pytest.mark.parametrize("supervisor", [".", "..", "a/b", "/"])
def test_a_supervisor_that_could_not_stand_in_zookeeper_is_refused(supervisor: str) -> None:
    with pytest.raises(ModelError):
        model.Slot.parse(f"{supervisor}:6700")


@pytest.mark.parametrize("host", ["node-1", "node_1.a.de", "::1", "fe80::1%eth0", "127.0.0.2"])
def test_the_hosts_of_storm_are_read(host: str) -> None:
    nodes = model.Nodes((model.Node("s1", host, 1.0, (), 0),))
    assert decode(model.Nodes, encode(nodes)) == nodes


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "$(touch x)", "a;b", "a'b", "a`b"])
def test_a_host_that_a_shell_would_take_apart_is_refused(host: str) -> None:
    nodes = model.Nodes((model.Node("s1", host, 1.0, (), 0),))
    with pytest.raises(WireError, match="host"):
        decode(model.Nodes, encode(nodes))


def test_what_a_worker_says_in_its_own_words_is_read_as_it_is() -> None:
    said = replace(examples["MESSAGES"]["worker_ack"], fault="at\x1b[2J\n\tcome")
    assert decode(model.WorkerAck, encode(said)) == said
