"""The bench of large clusters runs, on a small one."""

import pytest

from tests.bench.scale.report import as_tables
from tests.bench.scale.run import Asked, bench

pytestmark = pytest.mark.zookeeper


def test_a_small_cluster_is_measured() -> None:
    said: list[str] = []
    found = bench(Asked(sizes=(10,), seconds=6.0, journal=True), said.append)
    (cluster,) = found["clusters"]
    assert (cluster["executors"], cluster["topologies"]) == (100, 1)
    for state in ("rest", "moving"):
        assert cluster[state]["writes_s"] > 1
        assert cluster[state]["out_mb_s"] > 0
        assert cluster[state]["controller"]["cycle_cpu_ms"] > 0
        assert cluster[state]["controller"]["parts_ms"]["journal"] > 0
    assert "MOVED" in cluster["moving"]["moves"]["states"]
    assert cluster["largest_node"]["bytes"] < cluster["largest_node"]["limit"]
    assert found["agent"]["load_bytes"] > 1000
    assert len(list(as_tables(found))) == 3
    assert said[0] == "10 nodes"
