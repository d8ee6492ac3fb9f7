"""What bridge and shaping of a lab cost, by transfers in turn."""

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from deploy.lab import LabError
from deploy.lab.cluster import RUNS_DIR, sweep
from deploy.lab.daemons import clear, own
from deploy.lab.network import Network, plan_network

ROUNDS = 15
_BYTES = 200_000_000
# Far above what two cores of a small machine carry, so that it is the work that shows.
_WIDE = "10gbit"
# Times a transfer at its receiver, from the first byte to the last.
_RECEIVER = """
import resource, socket, sys, time
with socket.create_server((sys.argv[1], 7777)) as server:
    server.settimeout(60)
    print("listens", flush=True)
    taken, _ = server.accept()
    with taken:
        got, began = len(taken.recv(1)), time.monotonic()
        while data := taken.recv(65536):
            got += len(data)
        took_s = time.monotonic() - began
    print(got, took_s, sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
"""
_SENDER = """
import resource, socket, sys
with socket.create_connection((sys.argv[1], 7777), timeout=60) as link:
    block, left = bytes(65536), int(sys.argv[2])
    while left:
        left -= link.send(block[:left])
print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
"""


def transfer(
    network: Network | None, source: str, target: str, size_bytes: int = _BYTES
) -> tuple[float, float]:
    """Send between two addresses; give the time that it took and the CPU time of both ends."""
    inside = network.inside if network else lambda host: []
    receiver = [*inside(target), sys.executable, "-c", _RECEIVER, target]
    sender = [*inside(source), sys.executable, "-c", _SENDER, target, str(size_bytes)]
    with subprocess.Popen(receiver, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"
        sent = subprocess.run(sender, check=True, stdout=subprocess.PIPE, text=True, timeout=60)
        got, took_s, cpu_s = process.communicate(timeout=60)[0].split()
    assert int(got) == size_bytes
    return float(took_s), float(cpu_s) + float(sent.stdout)


def compare(networks: Mapping[str, Network | None]) -> dict[str, tuple[float, float]]:
    """Transfer over each in turn, round after round.

    Returns
    -------
    dict of str to (float, float)
        For all but the first, time and CPU time as multiples of the first's; medians over the
        rounds.
    """
    first, *others = networks
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in others}
    for _ in range(ROUNDS):
        taken = {name: transfer(network, *_ends(network)) for name, network in networks.items()}
        for name in others:
            pair = zip(taken[name], taken[first], strict=True)
            time_ratio, cpu_ratio = (value / base for value, base in pair)
            found[name].append((time_ratio, cpu_ratio))
    return {name: _medians(rows) for name, rows in found.items()}


def _ends(network: Network | None) -> tuple[str, str]:
    if network is None:
        return "127.0.0.2", "127.0.0.3"
    one, other = network.node_hosts
    return one, other


def _medians(rows: Sequence[tuple[float, float]]) -> tuple[float, float]:
    times, cpus = zip(*rows, strict=True)
    return statistics.median(times), statistics.median(cpus)


def run_network() -> dict[str, dict[str, float]]:
    """Measure what bridge and shaping cost.

    Returns
    -------
    dict of str to dict
        By network, time and CPU time as multiples of loopback's.

    Raises
    ------
    LabError
        This machine cannot have what is to be measured.
    """
    networks: dict[str, Network | None] = {"loopback": None}
    sweep()
    with ExitStack() as ends:
        for name, link in (("bridge", None), ("bridge-and-tbf", _WIDE)):
            run_dir = RUNS_DIR / f"bench-{name}-{os.getpid()}"
            network, cannot_show = plan_network(run_dir, 2, 0, None, link)
            if network is None or cannot_show:
                raise LabError("; ".join(cannot_show))
            # A folder with an owner is what `sweep` looks for.
            run_dir.mkdir(parents=True)
            own(run_dir)
            ends.callback(shutil.rmtree, run_dir)
            ends.callback(clear, run_dir)
            network.create()
            networks[name] = network
        return {
            name: {"time_ratio": round(time_ratio, 2), "cpu_ratio": round(cpu_ratio, 2)}
            for name, (time_ratio, cpu_ratio) in compare(networks).items()
        }
