"""Every format against its golden bytes, and everything that must be refused by name."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from kvstore.envelope import pack
from migration import WireError, model
from migration.model import LocalPlan, NodeLoad, Plan
from migration.wire import (
    acks_path,
    decode,
    encode,
    load_path,
    plan_path,
    topology_path,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
examples: dict[str, Any] = runpy.run_path(str(GOLDEN / "examples.py"))


def test_golden_files_are_what_the_code_writes():
    wanted = examples["contents"]()
    files = [path for path in GOLDEN.iterdir() if path.suffix in (".json", ".bin")]
    found = {path.name: path.read_bytes() for path in files}
    assert found == wanted


@pytest.mark.parametrize("name", sorted(examples["MESSAGES"]))
def test_a_golden_message_reads_back_as_it_was(name: str):
    message = examples["MESSAGES"][name]
    assert decode(type(message), (GOLDEN / f"{name}.json").read_bytes()) == message


def test_the_example_of_the_page_is_read_and_written_as_printed():
    text = (
        '{"cluster":"6f1c","epoch":3,"version":17,"topology":"wc-1-1700000000","entries":['
        '{"id":"m12","executor":[7,7],"from":"s1:6700","to":"s2:6701","phase":"SWITCH",'
        '"base":["s1:6700",1700000000],"void":null}]}'
    )
    plan = decode(Plan, text.encode())
    assert plan.entries[0].executor == model.ExecutorId(7, 7)
    assert plan.entries[0].source == model.Slot("s1", 6700)
    assert plan.entries[0].base == model.Base(model.Slot("s1", 6700), 1700000000)
    assert encode(plan).decode() == text


@pytest.mark.parametrize("case", json.loads((GOLDEN / "refused.json").read_text("utf-8")))
def test_a_bad_message_is_refused_and_the_field_named(case: dict[str, Any]):
    text = case["text"] * case.get("times", 1)
    with pytest.raises(WireError) as caught:
        decode(getattr(model, case["format"]), text.encode())
    assert caught.value.where == case["field"]
    assert str(caught.value).startswith(case["field"])


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(WireError, match="is no JSON"):
        decode(Plan, b"\xff\xfe\x80{")


def test_a_number_without_end_is_not_written():
    publication = examples["PUBLICATION"]
    node = model.Node("s1", "h", float("inf"), (), 0)
    with pytest.raises(WireError, match="Publication"):
        encode(model.replace(publication, nodes=(node,)))


def test_a_whole_number_is_taken_for_a_fraction():
    text = (GOLDEN / "publication.json").read_text("utf-8").replace("200.0", "200")
    read = decode(model.Publication, text.encode())
    assert read == examples["PUBLICATION"]
    assert type(read.nodes[0].cpu_capacity) is float


def test_a_typical_move_is_small():
    assert len(pack(1, encode(examples["LOCAL_PLAN"]))) < 512


def test_empty_messages():
    assert encode(LocalPlan("c")) == b'{"cluster":"c","plans":[]}'
    assert encode(NodeLoad("s1", 5)) == b'{"node":"s1","time_ms":5,"workers":[],"left_out":0}'


def test_paths():
    assert topology_path("wc-1") == "/nstorm/topologies/wc-1"
    assert plan_path("wc-1") == "/nstorm/plans/wc-1"
    assert acks_path("s1") == "/nstorm/acks/s1"
    assert load_path("s1") == "/nstorm/load/s1"
