"""Shows what was found as tables for people."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from tests.bench.frame import table

# The goals for a cluster of a thousand nodes at rest, and for an agent.
GOALS = {
    "into ZooKeeper, MB/s": "≤ 2",
    "out of ZooKeeper, MB/s": "≤ 5",
    "a cycle, ms of CPU": "≤ 250",
    "largest znode, bytes": "< 262144",
}


def as_tables(found: dict[str, Any]) -> Iterator[Table]:
    """Make tables for people."""
    clusters = found["clusters"]
    if clusters:
        for title, state in (("at rest", "rest"), ("with a move each 5 s", "moving")):
            rows = [_row(cluster, cluster[state]) for cluster in clusters]
            sizes = [f"{cluster['nodes']:,} nodes" for cluster in clusters]
            yield table(
                title,
                [
                    {
                        "": name,
                        **{size: row[name] for size, row in zip(sizes, rows, strict=True)},
                        "goal": GOALS.get(name, ""),
                    }
                    for name in rows[0]
                ],
            )
    if found["agent"]:
        yield table(
            "agent of a node with 1,000 executors",
            [
                {"": name, "found": value, "goal": "≤ 2" if name.startswith("cpu_percent") else ""}
                for name, value in found["agent"].items()
            ],
        )


def _row(cluster: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    leader, moves = state["controller"], state.get("moves")
    row = {
        "executors, topologies": f"{cluster['executors']}, {cluster['topologies']}",
        "pairs of tasks": cluster["pairs"],
        "into ZooKeeper, MB/s": state["into_mb_s"],
        "out of ZooKeeper, MB/s": state["out_mb_s"],
        "of that to agents and Nimbus": state["to_agents_mb_s"],
        "writes/s": state["writes_s"],
        "loads/s and acks/s": f"{state['loads_s']} {state['acks_s']}",
        "ZooKeeper, cores": state["zookeeper"]["cpu_cores"],
        "a cycle, ms of CPU": leader["cycle_cpu_ms"],
    }
    row |= {f"- {name}": spent for name, spent in leader["parts_ms"].items()}
    row |= {
        "steps between cycles": leader["steps_a_cycle"],
        "controller, MB of memory": leader["rss_mb"],
        "largest znode, bytes": cluster["largest_node"]["bytes"],
        "latest report, s late": state["late_s"],
        "load average": state["load_average"],
    }
    if moves:
        latency = state["plan_to_agent_ms"] or {}
        row |= {
            "moves": " ".join(f"{count} {name}" for name, count in moves["states"].items()),
            "PREPARE to STOPPED, s": moves["stopped_after_s"],
            "writes a move, beside the rest": moves["writes_a_move"],
            "nodes of a topology": cluster["nodes_a_topology"],
            "plan written to read by an agent, ms": " ".join(
                f"{name} {ms}" for name, ms in latency.items()
            ),
        }
    return row
