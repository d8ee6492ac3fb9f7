"""Sends bytes from one address of a lab to another, and takes the time."""

import subprocess
import sys

from deploy.lab.network import Network

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
    network: Network | None, source: str, target: str, size_bytes: int
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
