"""Searches at random for what breaks a property test: make explore SECONDS=7200.

`make test` tries the same examples each time; here every round has a seed of its own. What breaks
is printed as code to paste into the test's file, where `make test` tries it ever after. At the same
time a JVM moves bolts that it makes at random, until one is wrong: that is also printed.
"""

import argparse
import contextlib
import itertools
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

END_S = 60.0
ROOT = Path(__file__).parent.parent
MAVEN = ["mvn", "-q", "-B", "-f", "migration/jvm/pom.xml"]
MADE_BOLTS = [*MAVEN, "test", "-Dtest=MadeBoltsTest#othersEachTime", "-Dexplore=true"]


def notes(error: BaseException) -> Iterator[str]:
    """Give what Hypothesis has noted on an error, or on each of a group."""
    yield from getattr(error, "__notes__", ())
    for one in getattr(error, "exceptions", ()):
        yield from notes(one)


def to_keep(test: str, seed: int, noted: Sequence[str]) -> Iterator[str]:
    """Make code to paste of what Hypothesis has noted on the failure of a test."""
    steps = [note for note in noted if re.match(r"state( = |\.)", note)]
    if steps:
        machine = steps[0].removeprefix("state = ").removesuffix("()").lower()
        body = textwrap.indent("\n".join(steps), "    ")
        yield f"def test_what_broke_{machine}_{seed}():\n{body}"
    for note in noted:
        # What a test draws inside, with st.data(), cannot be given to it from outside.
        if (call := re.search(rf"\b{test}(\(.*\))", note, re.DOTALL)) and "data(...)" not in note:
            yield f"@example{call[1]}"
        if blob := re.search(r"@reproduce_failure\(.*?\)", note):
            yield f"# While Hypothesis and the strategies stay as they are:\n{blob[0]}"


class Reporter:
    """Prints a failure when it happens, and notes which tests began and which failed."""

    def __init__(self, seed: int, log: Path) -> None:
        self.seed = seed
        self.log = log

    def note(self, what: str, test: str) -> None:
        with self.log.open("a") as log:
            print(what, test, file=log)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note("began", nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and call.excinfo:
            self.note("failed", item.nodeid)
            out = item.config.get_terminal_writer()
            out.line(f"\n\nFAILED {item.nodeid} with seed {self.seed}")
            out.line(call.excinfo.exconly())
            test = getattr(item, "originalname", item.name)
            for code in to_keep(test, self.seed, list(notes(call.excinfo.value))):
                out.line(f"\n{code}")
            out.line()
        return report


def one_round(seed: int, log: Path, selection: Sequence[str]) -> int:
    """Try every selected property test with the examples of one seed."""
    quiet = ["-q", "--tb=no", "--no-header", "--no-summary", "-p", "no:cacheprovider"]
    chosen = ["-m", "hypothesis", "--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]
    return pytest.main([*quiet, *chosen, *selection], plugins=[Reporter(seed, log)])


def round_apart(seed: int, log: Path, selection: Sequence[str], left_s: float) -> int:
    """Do a round in a process of its own, which may crash."""
    command = [sys.executable, __file__, "--seed", str(seed), "--log", str(log)]
    # Away from the terminal, whose Ctrl-C would reach it twice.
    child = subprocess.Popen([*command, *selection], start_new_session=True)
    try:
        return child.wait(None if math.isinf(left_s) else max(0.0, left_s))
    finally:
        child.terminate()
        try:
            child.wait(END_S)
        finally:
            child.kill()


def noted(log: Path, what: str) -> list[str]:
    """Give the tests that began, or that failed."""
    lines = (line.split(" ", 1) for line in log.read_text().splitlines())
    return [test for word, test in lines if word == what]


def broken(log: Path) -> list[str]:
    """Give the tests that failed, each once."""
    return list(dict.fromkeys(noted(log, "failed")))


def search(log: Path, paths: Sequence[str], seconds: float) -> int:
    """Go round until the time is over or pytest cannot go on; give pytest's last answer."""
    start = time.monotonic()
    for turn in itertools.count(1):
        seed = secrets.randbits(32)
        selection = [*(f"--deselect={test}" for test in broken(log)), *paths]
        before = len(noted(log, "began"))
        code = round_apart(seed, log, selection, start + seconds - time.monotonic())
        began = noted(log, "began")
        if code < 0:
            print(f"FAILED {began[-1]} with seed {seed}: signal {-code} ended the process")
            log.write_text(f"{log.read_text()}failed {began[-1]}\n")
        elif code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return code
        so_far = f"{len(began) - before} tests, {time.monotonic() - start:.0f} s"
        print(
            f"round {turn}: seed {seed}, {so_far}, {len(noted(log, 'failed'))} failed", flush=True
        )
    return 0


@contextlib.contextmanager
def meanwhile(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a search of its own, which prints what it finds and ends then, or is ended."""
    # With all that it starts in a group, away from the terminal's.
    child = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        child.wait(END_S)


def main() -> int:
    """Read the command line; 1 where a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=math.inf, help="default: until Ctrl-C")
    parser.add_argument("--seed", type=int, help="one round with this seed")
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options, paths = parser.parse_known_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as stack:
        # A round has the search's: a folder of its own would stay behind where it crashes.
        log = options.log or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log"
        log.touch()
        if options.seed is not None:
            return one_round(options.seed, log, paths)
        code = 0
        bolts = None if paths else stack.enter_context(meanwhile(MADE_BOLTS))
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            code = search(log, paths, options.seconds)
        failed = broken(log)
        if bolts and bolts.poll():
            failed.append("made bolts")
    print(f"{len(failed)} failed", *failed, sep="\n")
    return 1 if failed else code


if __name__ == "__main__":
    sys.exit(main())
