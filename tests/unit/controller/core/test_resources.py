"""A resource is a row of its meters, a row of the resource, and what measures it."""

import json
import re
import subprocess
import sys

from controller.core.resources import RESOURCES, SPACES
from migration.meters import OF_WORKER
from migration.settings import setting
from tests.unit.test_imports import ROOT, sources

# Where the product names the heap of a worker because of what limits a placement.
PLACES = {
    "controller/core/resources.py",
    "migration/jvm/src/main/java/nstorm/load/WorkerMeters.java",
    "migration/meters.py",
}
# Where the product names CPU, and why a space has no need to be named there.
NAMES_CPU = {
    "it is measured in nanoseconds of processor time, which spaces have no use for": {
        "controller/core/layout.py",
        "controller/core/metrics.py",
        "migration/jvm/src/main/java/nstorm/load/LoadSampler.java",
        "migration/jvm/src/main/java/nstorm/wire/report/ExecutorLoad.java",
        "migration/jvm/src/main/java/nstorm/wire/report/WorkerLoad.java",
        "migration/model.py",
    },
    "load is what is relieved, and its limits are those of each resource": {
        "controller/core/capacity.py",
        "controller/core/cluster.py",
        "controller/core/fit.py",
        "controller/core/limits.py",
        "controller/core/reserve.py",
        "controller/core/resources.py",
        "controller/core/view.py",
        "controller/cycle.py",
    },
    "what nstorm costs and saves is CPU": {
        "controller/core/learnt.py",
        "controller/core/slow_host.py",
        "controller/replay/rerun.py",
    },
    "a format that people and programs read has its keys": {
        "controller/assess/assessment.py",
        "controller/assess/page.py",
        "controller/cli/status_document.py",
        "controller/journal/rows.py",
        "controller/storm/leader_status.py",
        "controller/page/static/page.js",
        "controller/replay/recording.py",
        "controller/report.py",
        "controller/snapshot.py",
        "controller/storm/answer_records.py",
        "controller/storm/status.py",
    },
    "tables of other programs have its columns": {
        "controller/ingest/command.py",
        "controller/ingest/prometheus.py",
        "controller/ingest/signs.py",
        "controller/ingest/tables.py",
        "controller/ingest/world.py",
    },
    "a report of past hours, which decides nothing": {
        "controller/pipeline/hours.py",
        "controller/pipeline/schemas.py",
        "controller/pipeline/ticks.py",
        "controller/weeks/disturbed.py",
        "controller/weeks/hosts.py",
        "controller/weeks/hours.py",
        "controller/weeks/run.py",
    },
    "a paper's own scheduler": {
        "controller/policies/aniello.py",
        "controller/policies/model_driven/mapping.py",
        "controller/policies/model_driven/policies.py",
        "controller/policies/profiles.py",
    },
}
CPU_KEY = re.compile(
    r"\b(cpu_(cores|frac|ns|var)|process_(cores|cpu_ns)|(high|low)_frac"
    r"|(worker_)?(capacity|high|load|room)_cores|cpuNs|processCpuNs)\b"
    r"|import CPU\b|^CPU = ",
    re.MULTILINE,
)


def test_the_table_names_what_there_is() -> None:
    names = [row.name for row in RESOURCES] + [space.name for space in SPACES]
    assert len(set(names)) == len(names)
    for row in RESOURCES:
        assert setting(row.limit) is not None
        assert setting(row.low) is not None
    units = {row.unit for row in RESOURCES}
    assert len(units) == len(RESOURCES), "the metric of a capacity is named by its unit alone"
    columns = {meter.column for meter in OF_WORKER}
    assert all({space.held, space.most} <= columns for space in SPACES)


def test_a_row_in_both_tables_is_all_that_a_resource_needs_next_to_what_measures_it() -> None:
    """It limits placements, and is seen from the report to the status, without another file."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.made_up_resource"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    disk = {"disk_used_bytes": 30, "disk_bytes": 120}
    assert json.loads(done.stdout) == {
        "report": disk,
        "picture": [30, 30, 30, 30],
        "snapshot": [768, 768],
        "fit": "a disk too much",
        "move": True,
        "search": [2, 2],
        "refusal": "with all of it back, a disk would be too full",
        "status": [[disk, {"disk": 0.25}]] * 4,
    }


def test_no_more_files_name_a_space() -> None:
    """The number on the page of contributors follows this one."""
    names = "|".join(name for space in SPACES for name in (space.held, space.most))
    assert files_with(re.compile(names)) == PLACES
    page = (ROOT / "docs" / "contributing.md").read_text()
    row = re.search(r"^\| \*\*a resource\*\*[^|]*\| (\d+) files", page, re.M)
    assert row is not None and int(row[1]) == len(PLACES)


def test_each_file_that_names_cpu_has_a_reason() -> None:
    listed = [path for paths in NAMES_CPU.values() for path in paths]
    assert files_with(CPU_KEY) == set(listed)


def files_with(pattern: re.Pattern[str]) -> set[str]:
    """Name the files of the product in which it is found."""
    product = [p for name in ("agent", "controller", "migration") for p in sources(ROOT / name)]
    product += (ROOT / "migration" / "jvm" / "src" / "main").rglob("*.java")
    product += (ROOT / "controller" / "page" / "static").glob("*.js")
    return {p.relative_to(ROOT).as_posix() for p in product if pattern.search(p.read_text())}
