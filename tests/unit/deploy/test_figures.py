"""The figures of a window: what is worked out of the counters at both ends."""

import struct
from collections import Counter
from pathlib import Path

import pytest

from deploy.lab import LabError
from deploy.lab.figures import Counters, Figures, device_bytes, figures, gc_pause_s
from deploy.lab.ledger import LedgerWindow
from tests.messages import replace

BEFORE = Counters(
    time_s=100.0,
    pids={"s1:1": 11, "s2:1": 12},
    cpu_s={"s1:1": 50.0, "s2:1": 70.0},
    gc_s={"s1:1": 1.0, "s2:1": 2.0},
    link_bytes={("n1", "in"): 0, ("n1", "out"): 10, ("n2", "in"): 10, ("n2", "out"): 0},
    within_bytes={"n1": 5, "n2": 5},
    busy_s=1000.0,
    idle_s=500.0,
)
AFTER = replace(
    BEFORE,
    time_s=110.0,
    cpu_s={"s1:1": 56.0, "s2:1": 72.0},
    gc_s={"s1:1": 1.1, "s2:1": 2.3},
    link_bytes={("n1", "in"): 300, ("n1", "out"): 710, ("n2", "in"): 710, ("n2", "out"): 300},
    within_bytes={"n1": 505, "n2": 505},
    busy_s=1015.0,
    idle_s=505.0,
)
SECONDS = [LedgerWindow(100 + t, acked=20, latency=Counter({100: 20})) for t in range(10)]


def taken(
    before: Counters = BEFORE, after: Counters = AFTER, link_bps: int | None = 1000
) -> Figures:
    return figures(before, after, SECONDS, 0.4, link_bps)


def test_costs_are_those_of_a_sentence() -> None:
    found = taken()
    assert found.acked_tps == 20
    assert found.cpu_us_per_sentence == pytest.approx(8e6 / 200)
    # Each byte counts where it left: 700 from n1, 300 from n2.
    assert found.link_bytes_per_sentence == pytest.approx(5)
    assert found.fullest_link_bytes_per_sentence == pytest.approx(3.5)
    assert found.inter_node_byte_frac == pytest.approx(1000 / 2000)
    assert found.gc_frac == pytest.approx((0.1 + 0.3) / 2 / 10)


def test_what_is_full_is_named() -> None:
    found = taken()
    assert found.fullest_link == "n1 out"
    assert found.fullest_link_frac == pytest.approx(700 * 8 / 10 / 1000)
    assert found.fullest_worker == "s1:1"
    assert found.worker_cores_max == pytest.approx(0.6)
    assert found.worker_cores_mean == pytest.approx(0.4)
    assert found.machine_busy_frac == pytest.approx(0.75)


def test_what_could_not_be_taken_is_missing_and_not_zero() -> None:
    nothing = {"link_bytes": {}, "within_bytes": {}, "gc_s": {"s1:1": 1.0}}
    found = taken(replace(BEFORE, **nothing), replace(AFTER, **nothing), None)
    assert found.link_bytes_per_sentence is None
    assert found.inter_node_byte_frac is None
    assert found.gc_frac is None
    assert (found.fullest_link, found.fullest_link_frac) == (None, None)
    assert taken(link_bps=None).fullest_link_frac is None


def test_nothing_acked_has_no_cost() -> None:
    found = figures(BEFORE, AFTER, [LedgerWindow(100)], None, None)
    assert (found.acked_tps, found.cpu_us_per_sentence) == (0, None)
    assert (found.ack_p50_ms, found.link_bytes_per_sentence) == (None, None)


def test_a_worker_that_was_restarted_is_named() -> None:
    with pytest.raises(LabError, match="s2:1"):
        taken(after=replace(AFTER, pids={"s1:1": 11, "s2:1": 13}))


def test_a_device_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "7" / "net").mkdir(parents=True)
    (tmp_path / "7" / "net" / "dev").write_text(
        "Inter-|   Receive                  |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n"
        "    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n"
        "  eth0: 2345 9 0 0 0 0 0 0 678 8 0 0 0 0 0 0\n"
    )
    assert device_bytes(7, "eth0", tmp_path) == (2345, 678)
    with pytest.raises(LabError, match="eth1"):
        device_bytes(7, "eth1", tmp_path)


def entry(name: str, value: int) -> bytes:
    padded = name.encode() + b"\0" * (8 - len(name) % 8)
    value_at = 20 + len(padded)
    fields = struct.pack("<iiiBBBBi", value_at + 8, 20, 0, ord("J"), 0, 1, 3, value_at)
    return fields + padded + struct.pack("<q", value)


def counters(*entries: bytes) -> bytes:
    body = b"".join(entries)
    header = b"\xca\xfe\xc0\xc0" + bytes([1, 2, 0, 1])
    return header + struct.pack("<iiqii", 32 + len(body), 0, 0, 32, len(entries)) + body


def test_pauses_of_all_collectors_of_a_jvm_add_up(tmp_path: Path) -> None:
    folder = tmp_path / "hsperfdata_somebody"
    folder.mkdir()
    (folder / "7").write_bytes(
        counters(
            entry("sun.os.hrt.frequency", 1000),
            entry("sun.gc.collector.0.time", 1500),
            entry("sun.gc.collector.1.time", 500),
            entry("sun.gc.collector.0.invocations", 99),
        )
    )
    assert gc_pause_s(7, tmp_path) == 2.0


@pytest.mark.parametrize("data", [b"", b"garbage of some length, longer than a header", counters()])
def test_a_jvm_that_tells_nothing_has_no_figure(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "hsperfdata_somebody").mkdir()
    (tmp_path / "hsperfdata_somebody" / "7").write_bytes(data)
    assert gc_pause_s(7, tmp_path) is None
    assert gc_pause_s(8, tmp_path) is None
