"""Gives tests a real ZooKeeper and a real Storm cluster, and fails whoever leaks."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import psutil
import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from deploy.lab.cluster import HOOKS_JAR, RUNS_DIR, Lab, only_zookeeper, plan_lab, sweep
from deploy.lab.home.assemble import ZOOKEEPER_VERSION
from kvstore.logs import log
from tests.clusters import CALM

# The same examples each time, and no verdict that a slow machine can change.
settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Other examples each time, for explore.py, which needs neither them twice nor their explanation.
settings.register_profile(
    "explore",
    settings.get_profile("same"),
    derandomize=False,
    phases=set(Phase) - {Phase.explain},
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("same")

LOOPS = Path(__file__).parent.parent / "controller" / "core" / "loops"
LEAK_GRACE_S = 60.0


def pytest_configure() -> None:
    """Run no test with loops that were compiled from other sources."""
    for source in LOOPS.glob("*.pxd"):
        compiled = source.with_suffix(EXTENSION_SUFFIXES[0])
        made_s = compiled.stat().st_mtime if compiled.exists() else 0.0
        if made_s < max(file.stat().st_mtime for file in (source, source.with_suffix(".py"))):
            pytest.exit(f"{compiled} is missing or older than its sources: type  make setup", 2)


def container_engine_missing() -> str | None:
    """Give the reason why no container can be started; None when one can."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        return None
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(host.removeprefix("unix://"))
        except OSError as error:
            return f"no container engine at {host}: {error}"
    return None


@pytest.fixture(scope="session")
def container_engine() -> None:
    """Skip where no container can be started."""
    if missing := container_engine_missing():
        pytest.skip(missing)


@pytest.fixture(scope="session")
def container_zookeeper(container_engine: None) -> Iterator[str]:
    """Address of a ZooKeeper in a container."""
    container = DockerContainer(f"zookeeper:{ZOOKEEPER_VERSION}").with_exposed_ports(2181)
    container.waiting_for(LogMessageWaitStrategy("binding to port"))
    with container:
        yield f"{container.get_container_host_ip()}:{container.get_exposed_port(2181)}"


@pytest.fixture(scope="session")
def local_zookeeper() -> Iterator[str]:
    """Address of a ZooKeeper that is a process of this machine."""
    sweep()
    with only_zookeeper("zookeeper") as lab:
        yield lab.zookeeper


@pytest.fixture(scope="session")
def zookeeper(request: pytest.FixtureRequest) -> str:
    """Address of a ZooKeeper: in a container where an engine runs, else a local process."""
    missing = container_engine_missing()
    kind = "local_zookeeper" if missing else "container_zookeeper"
    address: str = request.getfixturevalue(kind)
    log.info("zookeeper_for_tests", kind=kind, address=address, reason=missing)
    return address


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """One Storm cluster for the session, with the hooks when their jar is built."""
    sweep()
    hooks_jar = HOOKS_JAR if HOOKS_JAR.is_file() else None
    with plan_lab(f"tests-{os.getpid()}", hooks_jar=hooks_jar, conf=CALM) as cluster:
        log.info("lab_for_tests", hooks_jar=str(hooks_jar), zookeeper=cluster.zookeeper)
        yield cluster


def _foreign_processes() -> set[psutil.Process]:
    """Give this process' descendants that belong to no lab; `Lab.down` sees to the others."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            command = " ".join(process.cmdline())
            ended = process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            continue
        if not ended and str(RUNS_DIR) not in command:
            found.add(process)
    return found


@pytest.fixture(autouse=True)
def usual_logging() -> Iterator[None]:
    """Undo what a command under test has set: it logs to a standard error that ends with it."""
    yield
    log.to(None)
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread or a process behind."""
    threads, processes = set(threading.enumerate()), _foreign_processes()
    yield
    deadline = time.monotonic() + LEAK_GRACE_S
    while True:
        leaked = [*(set(threading.enumerate()) - threads), *(_foreign_processes() - processes)]
        if not leaked or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert not leaked, f"left behind: {leaked}"
