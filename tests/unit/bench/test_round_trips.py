"""What a JVM reports about itself, and who travels."""

from collections import Counter

import pytest

from deploy.lab import LabError
from deploy.lab.operator import Placement
from migration.model import ExecutorId, Slot
from tests.bench.round_trips import choose, live_objects, live_threads

DUMP = """4711:
2026-01-01 00:00:00
Full thread dump OpenJDK 64-Bit Server VM (17.0.1+1 mixed mode, sharing):

Threads class SMR info:
_java_thread_list=0x00, length=4, elements={
}

"main" #1 prio=5 os_prio=0 cpu=1.0ms elapsed=9.0s tid=0x01 nid=0x1 waiting on condition  [0x0]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
\tat java.lang.Thread.sleep(java.base@17.0.1/Native Method)
"C2 CompilerThread0" #7 daemon prio=9 os_prio=0 cpu=1.0ms elapsed=9.0s tid=0x02 nid=0x2 runnable
"Thread-7-count-executor[3, 3]" #30 prio=5 os_prio=0 cpu=1.0ms elapsed=9.0s tid=0x03 nid=0x3
"VM Thread" os_prio=0 cpu=1.0ms elapsed=9.0s tid=0x04 nid=0x4 runnable
"""
HISTOGRAM = """4711:
 num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:         26843        2342640  [B (java.base@17.0.1)
   2:            17            408  org.apache.storm.StormTimer$QueueEntry
  13:             9            216  com.codahale.metrics.Counter
Total         26869        2343264
"""


def test_threads_are_those_of_java_without_the_compilers() -> None:
    assert live_threads(DUMP) == 2


def test_objects_are_counted_by_class() -> None:
    instances, total_bytes = live_objects(HISTOGRAM)
    assert instances["org.apache.storm.StormTimer$QueueEntry"] == 17
    assert instances["com.codahale.metrics.Counter"] == 9
    assert (sum(instances.values()), total_bytes) == (26869, 2343264)
    with pytest.raises(LabError, match="no total"):
        live_objects("4711:\nThe VM is going down")


def test_who_travels_is_not_alone_and_goes_to_another_node() -> None:
    alone, home, near, far = (Slot("a", 1), Slot("a", 2), Slot("a", 3), Slot("b", 1))
    places = dict(enumerate([alone, home, home, near, far], start=1))
    slot_of = {ExecutorId(task, task): slot for task, slot in places.items()}
    staying = Counter(places.values())
    assert choose(Placement(slot_of, tuple(slot_of), staying)) == (ExecutorId(2, 2), home, far)
    with pytest.raises(LabError, match="no executor may leave"):
        choose(Placement(slot_of, (ExecutorId(1, 1),), staying))
