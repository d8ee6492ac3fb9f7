"""Scenarios: what is read, and that odd ones are refused in one line that names the key."""

from pathlib import Path

import pytest

from deploy.sim import ScenarioError
from deploy.sim.restart_cost import System
from deploy.sim.scenario import What, parse, split

HEAD = "seconds: 60\nworkload: {name: wordcount}\n"


def refusal(more: str) -> str:
    with pytest.raises(ScenarioError) as error:
        parse(HEAD + more)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_run_is_the_head_with_its_own_keys_laid_over() -> None:
    scenario = parse(
        HEAD + "cluster: {nodes: 3, cores: 2}\nruns: {a: {}, b: {cluster: {cores: 8}}}"
    )
    a, b = scenario.runs
    assert (a.name, a.hardware.nodes, a.hardware.cores) == ("a", 3, 2.0)
    assert (b.name, b.hardware.nodes, b.hardware.cores) == ("b", 3, 8.0)
    assert a.system is System.NSTORM
    assert a.controller is None


def test_other_topologies_and_neighbours() -> None:
    (run,) = parse(
        HEAD
        + "slots: 3\nneighbours: [{node: n1, cores: 2, at_s: 5, for_s: 10}]\n"
        + "others: {b: {slots: 2, workload: {name: wordcount, splits: 3}, feed: {rate_tps: 7}}}"
    ).runs
    (other,) = run.others
    assert (run.slots, other.name, other.slots, other.feed.rate_tps) == (3, "b", 2, 7)
    assert [part.executors for part in other.topology.parts] == [24, 3, 2]
    assert run.neighbours[0].covers(14)
    assert not run.neighbours[0].covers(15)


def test_one_run_needs_no_name() -> None:
    assert [setting.name for setting in parse(HEAD).runs] == ["run"]


def test_events() -> None:
    lines = '["at 9: kill n0:6701", "at 9.5: slow n1 0.5", "every 20: keys", "at 1: feed .inf"]'
    kill, slow, keys, feed = parse(HEAD + f"events: {lines}").runs[0].happenings
    assert (kill.what, kill.who, kill.at_s, kill.every_s) == (What.KILL, "n0:6701", 9, 0)
    assert (slow.who, slow.value) == ("n1", 0.5)
    assert (keys.at_s, keys.every_s) == (20, 20)
    assert feed.value == float("inf")


@pytest.mark.parametrize("number", ["1e-05", "1e-5", "1E-5", "1.e-5", ".1e-4", "0.00001"])
def test_a_number_may_be_written_with_a_power_of_ten(number: str) -> None:
    events = f'["at 1e1: slow n1 {number}", "at 1.5: feed 2e+3"]'
    (run,) = parse(f"{HEAD}seconds: 6e2\nevents: {events}\nfigures: [a is {number} in b]").runs
    assert run.seconds == 600
    assert [(one.at_s, one.value) for one in run.happenings] == [(10, 1e-5), (1.5, 2000)]


def test_a_whole_number_may_be_written_as_one_with_a_point() -> None:
    assert parse(f"{HEAD}cluster: {{nodes: 3.0}}\nseed: 1e3").runs[0].hardware.nodes == 3


def test_what_is_generated_is_not_read() -> None:
    assert parse(HEAD + "---\n: : nonsense").runs
    assert split("a: 1\n---\nb\n") == ("a: 1\n", "b\n")
    assert split("a: 1\n") == ("a: 1\n", "")


@pytest.mark.parametrize(
    ("more", "start"),
    [
        ("nonsense: 1", "nonsense: unknown key"),
        ("cluster: {nodez: 1}", "cluster.nodez: unknown key, did you mean nodes?"),
        ("cluster: {3: 1}", "cluster: a key must be text"),
        ("runs: {a: 3}", "runs.a: must be an object, is 3"),
        ("runs: {a: {3: 1}}", "runs.a: a key must be text"),
        ("runs: {a: {cluster: {nodes: 0}}}", "runs.a.cluster.nodes: must be a whole number"),
        ('"a\\nb": 1', '"a\\nb": unknown key'),
        ("cluster: {nodes: 0}", "cluster.nodes: must be a whole number of at least 1 and"),
        ("cluster: {nodes: 1.5}", "cluster.nodes: must be a whole number"),
        ("cluster: {cores: 0}", "cluster.cores: must be"),
        (
            "cluster: {cores: .inf}",
            "cluster.cores: must be a number of at least 0.01 and at most 1e+15, is Inf",
        ),
        ("cluster: {cores: .nan}", "cluster.cores: must be"),
        ("cluster: 3", "cluster: must be an object, is 3"),
        ("feed: {rate_tps: many}", "feed.rate_tps: must be a number"),
        ("measure: {period_s: 0}", "measure.period_s: must be"),
        ("redeploy: {every_s: 0}", "redeploy.every_s: must be"),
        ("system: heron", "system: must be one of"),
        ("controller: {polici: gather}", "controller: nstorm.polici: unknown key"),
        ("runs: {}", "runs: there is none"),
        ("runs: {a: {seeed: 1}}", "runs.a.seeed: unknown key"),
        ("runs: [a]", 'runs: must be an object, is ["a"]'),
        ("baseline: b", "baseline: must be one of run"),
        ("seed: -1", "seed: must be"),
        ("seed: .inf", "seed: must be a whole number"),
        ("cluster: {nodes: .inf}", "cluster.nodes: must be a whole number"),
        pytest.param(f"cluster: {{cores: 1{'0' * 400}}}", "cluster.cores: must be a num", id="big"),
        pytest.param(f"seconds: 1{'0' * 5000}", "not YAML: Exceeds the limit", id="too big"),
        ("title: 2024-99-99", "not YAML: month must be in 1..12"),
        ("step_s: 0", "step_s: must be"),
        ("step_s: 2", "step_s: must be"),
        ("window_s: 60", "window_s: warm_s and window_s"),
        ("expect: [a is b]", "expect: 'a is b' is not"),
        ("figures: [a < b]", "figures: 'a < b' is not"),
        ("others: {b: {slots: 1, workload: {name: wordcount}}}", "slots: must be given where"),
        ("others: {sim: {slots: 1, workload: {name: wordcount}}}", "others: sim is the name of"),
        ("cluster: {link_tps: 1, link_bytes_s: 1}", "cluster: link_tps and link_bytes_s bound the"),
        (
            "neighbours: [{node: n7, cores: 1, at_s: 1, for_s: 1}]",
            "neighbours: must be on one of n0, n1, is on 'n7'",
        ),
        ("feed: {bursts: [{at_s: 1, for_s: 0, times: 2}]}", "feed.bursts[0].for_s: must be"),
        ('events: ["at 5: kill n9:6700"]', "events: 'at 5: kill n9:6700': must be one of"),
        ('events: ["at 5: kill"]', "events: 'at 5: kill' is not"),
        ('events: ["every 0: keys"]', "events: 'every 0: keys' is not"),
        ('events: ["at 5: slow n0 x"]', "events: 'at 5: slow n0 x': must be a number"),
        ('events: ["at 5: slow n0 ["]', "events: 'at 5: slow n0 [': must be a number"),
        ('events: ["at 1.2.3: keys"]', "events: 'at 1.2.3: keys': must be a number"),
        ("events: 5", "events: must be a list"),
    ],
)
def test_odd_scenarios_are_refused_by_the_key(more: str, start: str) -> None:
    assert refusal(more).startswith(start)


SPOUT = "{id: s, kind: spout, executors: 1, cost_us: 1}"
BOLT = "{id: b, kind: bolt, executors: 1, cost_us: 1}"
ROUND = "{source: b, target: b, grouping: shuffle}"


@pytest.mark.parametrize(
    ("workload", "start"),
    [
        ("{name: heron}", "workload.name: must be one of wordcount, graph, is"),
        ("{name: graph, words: 3}", "workload.words: unknown key"),
        ("{words: 3}", "workload.name: must be one of wordcount, graph, is missing"),
        (f"{{name: graph, parts: [{SPOUT}]}}", "workload: it has no bolt"),
        (
            f"{{name: graph, parts: [{SPOUT}, {SPOUT}]}}",
            "workload: parts must differ by id, and links be between parts",
        ),
        (
            f"{{name: graph, parts: [{SPOUT}], links: [{{source: s, target: b, grouping: near}}]}}",
            "workload: parts must differ by id, and links be between parts",
        ),
        (
            f"{{name: graph, parts: [{SPOUT}, {BOLT}]}}",
            "workload: links must lead to every part but the spouts",
        ),
        (
            f"{{name: graph, parts: [{SPOUT}, {BOLT}], links: [{ROUND}]}}",
            "workload: links may not lead round",
        ),
        (
            "{name: graph, parts: [{id: b, kind: bolt, executors: 0, cost_us: 1}]}",
            "workload.parts[0].executors: must be a whole number of at least 1 and",
        ),
        (
            f"{{name: graph, parts: [{SPOUT}], links: [{{source: s, target: s, grouping: all}}]}}",
            "workload.links[0].grouping: must be one of",
        ),
        (
            "{name: wordcount, ackers: -1}",
            "workload.ackers: must be a whole number of at least 0 and",
        ),
        ("{name: wordcount, words: 2.5}", "workload.words: must be a whole number"),
    ],
)
def test_odd_workloads_are_refused(workload: str, start: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse(f"workload: {workload}")
    assert str(error.value).startswith(start)


def test_what_is_no_mapping_is_refused() -> None:
    for text in ("", "[]", "a: [", "5"):
        with pytest.raises(ScenarioError):
            parse(text)


def test_every_golden_scenario_can_be_read() -> None:
    files = sorted((Path(__file__).parents[3] / "golden" / "scenarios").glob("*.txt"))
    assert files
    for file in files:
        assert parse(file.read_text()).title
