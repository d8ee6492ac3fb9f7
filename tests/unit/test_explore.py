"""`make explore` prints what breaks as code to paste, and goes on; `make test` does not search."""

import os
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import settings

from tests.explore import meanwhile

EXPLORE = Path(__file__).parent.parent / "explore.py"
PROFILE = """
from hypothesis import settings
settings.register_profile("explore", derandomize=True, print_blob=True)
"""
TESTS = """
import os
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

@given(st.lists(st.integers(0, 9)), st.booleans())
def test_breaks(numbers, other):
    assert sum(numbers) < 5

@given(st.data())
def test_crashes(data):
    if data.draw(st.booleans()):
        os.abort()

class Adding(RuleBasedStateMachine):
    @initialize(start=st.integers(1, 2))
    def begin(self, start):
        self.total = start

    @rule(more=st.integers(0, 3))
    def add(self, more):
        self.total += more

    def teardown(self):
        assert self.total < 5

TestAdding = Adding.TestCase

def test_takes_no_example():
    assert False
"""
PASTED = """
    state.begin(start=2)
    state.add(more=3)
    state.teardown()
"""


def test_the_examples_are_always_the_same_and_no_clock_judges() -> None:
    default = settings.default
    assert default is not None
    assert default.derandomize
    assert default.database is None
    assert default.deadline is None


def test_it_goes_on_until_nothing_is_left_that_does_not_break(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(PROFILE)
    (tmp_path / "test_broken.py").write_text(TESTS)
    command: list[str | Path] = [sys.executable, EXPLORE, "test_broken.py"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "@example(\n    numbers=[5],\n    other=False," in done.stdout
    assert "def test_what_broke_adding_" in done.stdout
    assert PASTED in done.stdout
    assert "FAILED test_broken.py::test_breaks with seed" in done.stdout
    assert done.stdout.endswith(
        "3 failed\ntest_broken.py::test_breaks\n"
        "test_broken.py::test_crashes\ntest_broken.py::TestAdding::runTest\n"
    )


def test_it_finds_the_tests_from_where_make_runs_it() -> None:
    one = "tests/property/controller/policies/test_rest.py::test_safe_never_returns_to_a_placement"
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command: list[str | Path] = [sys.executable, EXPLORE, "--seed", "1", one]
    root = EXPLORE.parent.parent
    done = subprocess.run(command, cwd=root, env=plain, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_what_searches_meanwhile_ends_with_all_that_it_has_started() -> None:
    with meanwhile(["bash", "-c", "sleep 600 & wait"]) as child:
        assert child.poll() is None
    assert child.returncode < 0
    # What has ended stays until its parent reads its exit code: in a container nobody may.
    alive = ["pgrep", "--runstates", "D,I,R,S,T", "--pgroup", str(child.pid)]
    end_s = time.monotonic() + 60
    while subprocess.run(alive, check=False, capture_output=True).returncode == 0:
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_what_finds_something_meanwhile_has_ended_by_itself() -> None:
    with meanwhile(["false"]) as child:
        assert child.wait(60) == 1
