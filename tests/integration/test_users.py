"""Two users' topologies next to each other: workers run as their users, and move all the same."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.operator import Operator, beside
from tests.clusters import CALM

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root starts workers of other users"),
]
USERS = {"adas": "nobody", "bobs": "daemon"}  # by topology
MOVES = int(os.environ.get("NSTORM_USERS_MOVES", "4"))
SUBMITTER = "debug.simple.transport.user"
CONF = {
    **CALM,
    "supervisor.run.worker.as.user": True,
    "supervisor.worker.launcher": str(REPOSITORY / "deploy/lab/worker_launcher.sh"),
    SUBMITTER: USERS["adas"],
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    jar = HOOKS_JAR if HOOKS_JAR.is_file() else None
    with plan_lab(f"users-{os.getpid()}", hooks_jar=jar, conf=CONF) as cluster:
        for topology, user in USERS.items():
            submit(cluster, topology, user)
        yield cluster


def submit(lab: Lab, topology: str, user: str) -> None:
    """Submit as a user: without a login, Nimbus takes all who speak to it for the same one."""
    conf = lab.layout.storm_yaml
    text = conf.read_text()
    now = re.sub(f"({SUBMITTER}.*: *).*", rf"\1{user}", text)
    if now != text:
        conf.write_text(now)
        lab.kill_daemon("nimbus")
        lab.start_daemon("nimbus")
    lab.wait_until("Nimbus leads", lambda: takes(lab, topology))
    folder = lab.layout.run_dir / "ledgers" / topology
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, user)


def takes(lab: Lab, topology: str) -> bool:
    """Submit it, unless the Nimbus before still counts as the leader."""
    with suppress(LabError):
        return bool(lab.submit(topology, {"topology.workers": 2}, 100))
    return False


def test_topologies_of_two_users_move_and_lose_nothing(lab: Lab) -> None:
    with ExitStack() as stack:
        for topology in USERS:
            lab.wait_ready(topology)
        first, *others = USERS
        operators = {first: stack.enter_context(beside(lab, first))}
        for topology in others:
            operators[topology] = Operator(operators[first]._session, topology)
            lab.wait_until("its workers answer", operators[topology].ready)
        for _ in range(MOVES):
            for operator in operators.values():
                move(operator)
    for topology in USERS:
        totals = lab.ledger(topology).totals()
        print(f"{topology}: emitted {totals.emitted}, failed {totals.failed}")
        assert totals.emitted > 0
        assert totals.failed == 0


def move(operator: Operator) -> None:
    placement = operator.placement()
    executor = placement.free[0]
    here = placement.slot_of[executor]
    to = next(to for to in placement.slot_of.values() if to.supervisor != here.supervisor)
    command = operator.follow(operator.ask(executor, to), lambda command: False)
    assert command.state == "MOVED", command.reason


def test_workers_run_as_their_users_and_have_what_is_theirs_alone(lab: Lab) -> None:
    for topology, user in USERS.items():
        topology_id = lab.topology_id(topology)
        owners = {Path(f"/proc/{pid}").owner() for pid in lab._workers_of(topology_id)}
        assert owners == {user}
        (other,) = {*USERS.values()} - {user}
        for node in lab.nodes:
            folder = node.store_dir / "u" / user
            plan = folder / f"{topology_id}.plan.bin"
            assert may(user, "cat", plan)
            assert not may(other, "cat", plan)
            assert not may(other, "touch", plan)
            assert not may(other, "touch", folder / "new")
            assert not may(other, "ls", folder)
            for all_of_them in ("plan", "s"):
                assert not may(user, "ls", node.store_dir / all_of_them)
            assert not [*(node.store_dir / "w").glob("*")]


def may(user: str, *command: object) -> bool:
    done = subprocess.run(
        [*map(str, command)], user=user, group=user if user == "daemon" else "nogroup",
        extra_groups=[], capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 or b"ermission denied" in done.stderr, done.stderr
    return done.returncode == 0


def test_doctor_names_wrong_rights(lab: Lab) -> None:
    (node, *_) = lab.nodes
    folder = node.store_dir / "u" / "nobody"
    assert "workers have users of their own" not in doctor(node.conf_dir / "storm.yaml")
    folder.chmod(0o2755)
    told = doctor(node.conf_dir / "storm.yaml")
    folder.chmod(0o2770)
    assert f"{folder} has mode 2755, not 2770" in " ".join(told.split())


def doctor(conf: Path) -> str:
    command = [sys.executable, "-m", "controller.cli", "doctor", "--conf", str(conf)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
