"""A Storm on a ZooKeeper that demands credentials: moves, commands, and what is closed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pytest

from controller.storm.collect import LiveCluster
from controller.storm.leader_status import STATUS
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.operator import Operator, beside
from kvstore.ensemble import Grant
from kvstore.errors import AccessError
from kvstore.zookeeper import Session, _kazoo_acl
from migration import wire
from migration.model import MOVING, ExecutorId, Slot, Way
from tests.clusters import CALM

pytestmark = pytest.mark.cluster
NAME = "secured"
MOVES_EACH = int(os.environ.get("NSTORM_SECURED_MOVES", "1"))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    jar = HOOKS_JAR if HOOKS_JAR.is_file() else None
    with plan_lab(f"{NAME}-{os.getpid()}", hooks_jar=jar, conf=CALM, secure="digest") as cluster:
        yield cluster


def other(slot: Slot, operator: Operator) -> Slot:
    """Choose a worker on the other node."""
    slots = sorted({*operator.placement().slot_of.values()}, key=str)
    return next(to for to in slots if to.supervisor != slot.supervisor)


def test_executors_move_each_by_its_way_and_nothing_fails(lab: Lab) -> None:
    lab.submit(NAME, rate_tps=300)
    lab.wait_ready(NAME)
    ledger = lab.ledger(NAME)
    moved: dict[Way, int] = {}
    with beside(lab, NAME) as operator:
        ways = operator.ways()
        of_way = {way: [e for e in ways if ways[e] is way] for way in {*ways.values()}}
        of_way[Way.LIVE] = list(operator.placement().free)
        for way, executors in of_way.items():
            for turn in range(MOVES_EACH if executors else 0):
                move(operator, executors[turn % len(executors)])
                moved[way] = moved.get(way, 0) + 1
        told = doctor(lab)
    print(f"moved {moved}, failed {ledger.totals().failed}")
    assert {Way.SPOUT, Way.ACKER, Way.LIVE} <= {*moved}
    assert ledger.totals().failed == 0
    assert "may use" not in told
    assert "note: the identity" not in told


def move(operator: Operator, executor: ExecutorId) -> None:
    to = other(operator.placement().slot_of[executor], operator)
    command = operator.follow(operator.ask(executor, to), lambda command: False)
    assert command.state == "MOVED", command.reason


def doctor(lab: Lab) -> str:
    conf = str(lab.layout.storm_yaml)
    command = [sys.executable, "-m", "controller.cli", "doctor", "--conf", conf]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_every_node_is_closed_to_the_world(lab: Lab) -> None:
    with Session(lab.ensemble) as session:
        session.connect()
        assert LiveCluster.of_session(session).topologies()
        left, seen = [wire.ROOT], []
        while left:
            path = left.pop()
            seen.append(path)
            with suppress(AccessError):
                left += [f"{path}/{child}" for child in session.children(path) or ()]
        assert {wire.PLANS, wire.ACKS, wire.NIMBUS, STATUS} <= {*seen}
        assert {grant.scheme for path in seen for grant in session.grants(path)} == {"sasl"}


@pytest.mark.parametrize("folder", [wire.PLANS, wire.ACKS])
def test_rights_that_are_tightened_under_a_move_lose_nothing(lab: Lab, folder: str) -> None:
    """Neither the next step of the plan can be written then, nor what its workers answer."""
    ledger = lab.ledger(NAME)
    before = ledger.totals().failed
    with beside(lab, NAME) as operator, Session(lab.ensemble, deadline_s=60) as nimbus:
        nimbus.connect()
        nodes = [f"{folder}/{child}" for child in nimbus.children(folder) or ()]
        rights = {node: nimbus.grants(node) for node in nodes}
        assert {one.may for grants in rights.values() for one in grants} == {"crwda"}
        executor = operator.placement().free[0]
        path = operator.ask(executor, other(operator.placement().slot_of[executor], operator))
        operator.follow(path, lambda command: command.state in MOVING)
        tighten(nimbus, rights, "crda")
        time.sleep(10)
        at = operator.look(path).state
        tighten(nimbus, rights, "crwda")
        command = operator.follow(path, lambda command: False)
        print(f"{folder}: stood in {at}, then {command.state}: {command.reason}")
        assert at in MOVING
        assert command.ended
        assert operator.entries() == 0
    assert ledger.totals().failed == before


def tighten(nimbus: Session, rights: Mapping[str, Sequence[Grant]], may: str) -> None:
    for node, grants in rights.items():
        nimbus._client.set_acls(node, [_kazoo_acl(one._replace(may=may)) for one in grants])
