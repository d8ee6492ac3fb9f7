"""The alerts and a sum of the dashboard, by the rules of a real Prometheus."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from controller.storm.leader_status import read
from tests.integration.test_controller_live import NSTORM, new_root, played, wait_for, write_conf
from tests.scraping import (
    DASHBOARD,
    PROMETHEUS,
    RULES,
    alerts,
    dashboard_queries,
    free_port,
    need_prometheus,
)

MINUTES = 40
# What each alert is made of: series by the minute. Next to them stands what is well.
WRONG = {
    "NstormNoLeader": {'nstorm_leads{job="nstorm-controller",instance="a"}': "0"},
    "NstormTwoLeaders": {
        'nstorm_leads{job="nstorm-controller",instance="a"}': "1",
        'nstorm_leads{job="nstorm-controller",instance="b"}': "1",
    },
    "NstormDaemonIdle": {'nstorm_ready{instance="a"}': "0"},
    "NstormDaemonDown": {'up{job="nstorm-agent",instance="a"}': "0"},
    "NstormCycleStalled": {'nstorm_cycle_timestamp_seconds{instance="a"}': "0"},
    "NstormBlind": {
        'nstorm_decisions_total{topology="wc",outcome="STALE_METRICS",instance="a"}': "0+12",
        'nstorm_decisions_total{topology="wc",outcome="MOVED",instance="a"}': "0",
    },
    "NstormCycleFailed": {
        'nstorm_decisions_total{topology="",outcome="STAND_BACK",instance="a"}': "0+12"
    },
    "NstormMovesUndone": {'nstorm_moves_total{topology="wc",outcome="UNDONE",instance="a"}': "0+1"},
    "NstormMoveStuck": {'nstorm_moves_under_way{topology="wc",phase="STOP",instance="a"}': "1"},
    "NstormExecutorNotRunning": {'nstorm_executors_not_running{topology="wc",instance="a"}': "1"},
    "NstormHookErrors": {
        'nstorm_worker_hook_errors_total{topology="wc",port="1",instance="a"}': "0+1"
    },
    "NstormTuplesDropped": {
        'nstorm_worker_tuples_dropped_total{topology="wc",port="1",instance="a"}': "0+1"
    },
    "NstormNoHeadroom": {'nstorm_headroom_ratio{topology="wc",resource="cpu"}': "1.05"},
}
WELL = {
    'nstorm_leads{job="nstorm-controller",instance="a"}': "1",
    'nstorm_leads{job="nstorm-controller",instance="b"}': "0",
    'nstorm_ready{instance="a"}': "1",
    'up{job="nstorm-agent",instance="a"}': "1",
    'nstorm_cycle_timestamp_seconds{instance="a"}': "0+60",
    'nstorm_decisions_total{topology="wc",outcome="STALE_METRICS",instance="a"}': "0+1",
    'nstorm_decisions_total{topology="wc",outcome="MOVED",instance="a"}': "0+12",
    'nstorm_decisions_total{topology="",outcome="STAND_BACK",instance="a"}': "0",
    # Of a topology that an operator has deactivated.
    'nstorm_decisions_total{topology="off",outcome="STAND_BACK",instance="a"}': "0+12",
    'nstorm_resting{topology="off",instance="a"}': "1",
    'nstorm_resting{topology="wc",instance="a"}': "0",
    'nstorm_moves_total{topology="wc",outcome="UNDONE",instance="a"}': "1",
    'nstorm_moves_under_way{topology="wc",phase="STOP",instance="a"}': "0",
    'nstorm_moves_under_way{topology="wc",phase="SETTLE",instance="a"}': "1",
    'nstorm_executors_not_running{topology="wc",instance="a"}': "0",
    'nstorm_worker_hook_errors_total{topology="wc",port="1",instance="a"}': "7",
    'nstorm_worker_tuples_dropped_total{topology="wc",port="1",instance="a"}': "7",
    'nstorm_headroom_ratio{topology="wc",resource="cpu"}': "1.5",
}


def promtool(folder: Path, tests: list[dict[str, Any]]) -> None:
    """Let Prometheus try nstorm's rules and queries on series."""
    need_prometheus()
    path = folder / "tests.yml"
    path.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests})
    )
    command: list[str | Path] = [PROMETHEUS / "promtool", "test", "rules", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_for_what_it_names_and_for_nothing_else(tmp_path: Path) -> None:
    assert {rule["alert"] for rule in alerts()} == set(WRONG)
    tests = [
        {
            "interval": "1m",
            "name": name,
            "input_series": [
                {"series": series, "values": f"{value if '+' in value else value + '+0'}x{MINUTES}"}
                for series, value in {**WELL, **wrong}.items()
            ],
            "promql_expr_test": [
                {
                    "expr": 'count by(alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": f"{MINUTES}m",
                    "exp_samples": [
                        {"labels": f'{{alertname="{name}"}}', "value": 1} for _ in wrong and [0]
                    ],
                }
            ],
        }
        for name, wrong in {**WRONG, "nothing": {}}.items()
    ]
    promtool(tmp_path, tests)


@pytest.mark.parametrize(
    ("values", "fires"),
    [
        ("_x5 1000+0x35", {7: 1, 19: 1, 25: 0}),  # a new worker, whose first scrape has it
        ("7+0x5 _x24 7+0x10", {30: 0, 38: 0}),  # the agent was away, and nothing new is there
        ("7+0x5 _x24 9+0x10", {30: 1, 38: 1}),
    ],
)
def test_what_a_worker_did_before_it_was_scraped_is_seen(
    tmp_path: Path, values: str, fires: dict[int, int]
) -> None:
    tests = [
        {
            "interval": "1m",
            "name": name,
            "input_series": [
                {
                    "series": f'nstorm_worker_{name}_total{{topology="wc",port="1",instance="a"}}',
                    "values": values,
                },
                {"series": 'nstorm_leads{job="nstorm-controller"}', "values": "1+0x60"},
            ],
            "promql_expr_test": [
                {
                    "expr": "count(ALERTS) or vector(0)",
                    "eval_time": f"{minute}m",
                    "exp_samples": [{"labels": "{}", "value": number}],
                }
                for minute, number in fires.items()
            ],
        }
        for name in ("hook_errors", "tuples_dropped")
    ]
    promtool(tmp_path, tests)


def test_the_dashboard_counts_what_a_worker_did_before_it_was_scraped(tmp_path: Path) -> None:
    asked = [one for one in dashboard_queries() if "_dropped_" in one or "_errors_" in one]
    tests = [
        {
            "interval": "1m",
            "input_series": [
                {"series": f'nstorm_worker_{name}_total{{topology="wc"}}', "values": values}
                for name in ("hook_errors", "tuples_dropped")
            ],
            "promql_expr_test": [
                {
                    "expr": query,
                    "eval_time": "30m",
                    "exp_samples": [{"labels": "{}", "value": found}],
                }
                for query in asked
            ],
        }
        for values, found in (("_x5 1000+0x35", 1000), ("0+0x40", 0))
    ]
    assert len(asked) == 2
    promtool(tmp_path, tests)


def test_the_dashboard_names_who_leads_now() -> None:
    """A query over the time of the dashboard would show who has led within it, as 1."""
    (panel,) = (one for one in json.loads(DASHBOARD.read_text())["panels"] if one["id"] == 1)
    (target,) = panel["targets"]
    assert (target["expr"], target["instant"]) == ("nstorm_leads == 1", True)
    assert (target["legendFormat"], panel["options"]["textMode"]) == ("{{instance}}", "name")


@pytest.mark.zookeeper
def test_a_standby_shows_0_of_what_it_would_count_as_leader(zookeeper: str, tmp_path: Path) -> None:
    storm = new_root(zookeeper)
    first, second = (write_conf(tmp_path / f"{name}.yaml", storm) for name in "ab")
    port = free_port()
    with second.open("a") as file:
        file.write(f"nstorm.metrics.port: {port}\n")

    def shown() -> set[str]:
        with suppress(OSError), urlopen(f"http://localhost:{port}/metrics") as answer:
            return set(answer.read().decode().splitlines())
        return set()

    def controller(conf: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([NSTORM, "controller", "--conf", str(conf)])

    with played(storm) as puppets, controller(first) as leads:
        wait_for(lambda: read(puppets.session).controller)
        with controller(second) as waits:
            try:
                wait_for(lambda: MOVED_0 in shown(), 60)
                assert "nstorm_leads 0.0" in shown()
            finally:
                waits.terminate()
                leads.terminate()


def test_a_change_of_leader_changes_no_sum_of_the_dashboard(tmp_path: Path) -> None:
    """One controller leads, hangs, and leads again; then it ends. Another leads in between."""
    moves = 'nstorm_moves_total{topology="wc",outcome="MOVED",instance="%s"}'
    rules = [rule for rule in dashboard_queries() if 'outcome="MOVED"' in rule]
    (query,) = (rule.replace("$topology", "wc").replace("[24h]", "[2h]") for rule in rules)
    values = {"a": "0+1x10 10+0x10 11+1x9 _x90", "b": "0+0x10 1+1x9 10+0x9 11+1x89"}
    series = [{"series": moves % name, "values": of} for name, of in values.items()]
    # a: 20 in all; b: 10 while a hung, and 90 after a has ended.
    expected = {
        "expr": f"round({query})",
        "eval_time": "2h",
        "exp_samples": [{"labels": "{}", "value": 120}],
    }
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [expected]}
    promtool(tmp_path, [test])


MOVED_0 = 'nstorm_moves_total{outcome="MOVED",topology="wc-1"} 0.0'
