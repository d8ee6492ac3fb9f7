"""What is printed and drawn of an assessment, and that it does not promise what it cannot know."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from controller.assess.assessment import Assessment, Evidence, assess, lines
from controller.assess.page import page
from controller.cli.main import app
from controller.config import build
from controller.core.cluster import Cluster
from controller.core.pins import NO_HOOKS
from tests.recorded_world import record
from tests.snapshots import cluster, snapshot
from tests.storm_ui import ID, served


def judged(found: Any, slots: tuple[int, ...] = (1, 1)) -> Assessment:
    evidence = Evidence("a test", "high", ("nothing",))
    return assess(cluster(slots), found, build({}), evidence)


# Two pairs that talk, each apart, on workers with room for all.
APART = snapshot(["a", "b", "a", "b"], [0, 1, 1, 0], 0.05, [(0, 1, 100.0), (2, 3, 100.0)])


def test_what_would_be_gained_comes_first() -> None:
    found = judged(APART)
    assert found.inter_node_frac[0] > 0 == found.inter_node_frac[1]
    assert found.verdict.startswith("It would help by ")
    assert lines(found)[0] == f"{found.topology}: {found.verdict}"
    assert found.each_step_frac[0] == found.inter_node_frac[0]
    assert found.each_step_frac[-1] == found.inter_node_frac[1]
    assert len(found.moves) == len({executor for executor, _, _ in found.moves})
    assert sum(link.tps[1] for link in found.links) == 0


def test_where_it_would_not_help_it_is_stated_with_the_reason() -> None:
    together = APART.placed(np.zeros(4, np.int64))
    assert "all executors are on one node" in judged(together).verdict
    held = APART.holding(dict.fromkeys(range(4), "has threads"))
    assert "every executor stays" in judged(held).verdict
    assert [(s.reason, s.executors) for s in judged(held).stays] == [("has threads", 4)]
    stock = APART.holding(dict.fromkeys(range(3), NO_HOOKS))
    assert judged(stock).verdict.startswith(
        "It cannot be judged yet: 3 of 4 executors are in JVMs that have reported no hooks"
    )
    silent = APART.at(
        0.0, APART.place, APART.cpu_cores, APART.traffic.of_pairs(np.zeros(0, np.int64))
    )
    assert "cannot be judged" in judged(silent).verdict


def test_bytes_are_shown_only_where_each_size_is_known() -> None:
    assert judged(APART).inter_node_bytes_frac is None


def test_the_page_needs_nothing_else_and_shows_no_markup_of_others() -> None:
    drawn = page([judged(APART)])
    assert drawn.count("<svg") == 2
    assert drawn.count("<table>") == 1
    assert not re.search(r"""(?:src|href)=|url\(|@import|<script""", drawn)
    evil = judged(APART.holding({0: "<script>alert(1)</script>"}))
    assert "<script" not in page([evil])
    assert "&lt;script&gt;" in page([evil])


def test_a_cluster_is_assessed_by_its_ui(tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    with served() as url:
        words = ["assess", url, "--html", str(html), "-o", "json"]
        (found,) = json.loads(CliRunner().invoke(app, words).output)
        gone = CliRunner().invoke(app, ["assess", url, "--topology", "gone"])
    assert found["topology"] == ID
    assert (found["executors"], found["may_move"]) == (6, 5)
    assert found["inter_node_frac"][0] == 1.0 > found["inter_node_frac"][1]
    assert found["evidence"]["confidence"].startswith("medium: 50% of the tuples are split")
    assert ID in html.read_text()
    assert str(gone.exception) == f"no topology gone: there are {ID}"


def test_a_journal_is_assessed_by_its_newest_cycle(tmp_path: Path) -> None:
    reports = record(tmp_path)
    (found,) = json.loads(CliRunner().invoke(app, ["assess", str(tmp_path), "-o", "json"]).output)
    assert found["evidence"]["source"] == f"cycle {reports[-1].tick} of {tmp_path}"
    assert found["inter_node_frac"][0] == pytest.approx(reports[-1].inter_node_frac, abs=1e-4)


def test_people_read_hosts_of_a_journal_and_programs_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"9989472a-b859-4894-8e2a-dad5dfca7c4{n}-127.0.0.1" for n in range(2)]
    hosts = dict(zip(ids, ("left-host", "right-<host>"), strict=True))
    there = Cluster.build(ids, [(f"{one}:6700", one, 1.0) for one in ids])
    case = there, APART, Evidence("a test", "high"), hosts
    html = tmp_path / "report.html"
    held = there, APART.holding({0: f"waits for {ids[0]}"}), *case[2:]
    monkeypatch.setattr("controller.cli.assess._of_journal", lambda *_: [case, held])
    printed = CliRunner().invoke(app, ["assess", "journal", "--html", str(html)]).output
    assert "waits for left-host" in printed
    assert "from left-host" in html.read_text() and "right-&lt;host&gt;" in html.read_text()
    assert not [one for one in ids if one in printed + html.read_text()]
    (found, _) = json.loads(CliRunner().invoke(app, ["assess", "journal", "-o", "json"]).output)
    assert [node["node"] for node in found["nodes"]] == ids


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["/nowhere"], "/nowhere"),
        (["/nowhere", "--checked", "x"], "--checked: the journal has what stays already"),
        (["http://ui", "--checked", "/nowhere"], "--checked /nowhere: cannot be read"),
        (["http://ui" + "x" * 10_000], "http://ui" + "x" * 10),
    ],
)
def test_bad_input_is_refused_in_one_sentence(words: list[str], refused: str) -> None:
    said = str(CliRunner().invoke(app, ["assess", *words]).exception)
    assert said.startswith(refused)
    assert "\n" not in said
