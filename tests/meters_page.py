"""Writes docs/meters.md from the table of meters.

``python -m tests.meters_page > docs/meters.md``
"""

from migration.meters import OF_EXECUTOR, OF_NODE, OF_WORKER, Meter

_HEAD = """# Meters

<!-- Generated: python -m tests.meters_page > docs/meters.md -->

Numbers that workers, executors and nodes report with their load, apart from the CPU, queues and
tuples of executors. A number that cannot be read is left out, and nowhere counted as 0.

`nstorm status -o json` has them by the name in the second column, under `meters` of a worker,
of an executor, to three digits, and of an agent. The metrics of the controller have those of
workers and nodes, as `nstorm_worker_…` and `nstorm_node_…`. The journal has each report as it came.
"""
_COLUMNS = "| in the report | shown as | what it is |\n|---|---|---|"
_WORKER = """What lives after a collection: a pool that was never collected counts with all that
it holds. Another one counts with no more than it holds now. What lives is not known before the
first collection, nor where a collector has no such figure.
What a collector does while the worker runs does not count for `gc_frac`.

All tuples that Storm tracks are counted at the spouts, not a sample. Both numbers are left out in a
topology without ackers, and until the first tuple of the worker is acked or has failed. So a spout
that wants no acks never has 0 of them.
"""
_EXECUTOR = """The thread of the executor is measured, and counts from 0 where another thread takes
its place. How many of the objects stay is not known from it. Some JVMs do not count them.

The state is that of a bolt that moves by `carry`, as it would be written. The worker looks at some
elements each minute, so it is rather too low. In the heap the same objects take more.
"""
_NODE = """Where agent and supervisor have a cgroup with a quota of CPU in common, both are those of
this cgroup. Of several, the one with the least quota counts. A quota that the agent alone has does
not count, so its container may have one. Within any quota, both are left out until a supervisor
with the hooks was seen.

The network is that of the agent's network namespace, without the loopback. Where it has devices,
other interfaces do not count: bridges and bonds pass on what goes through a device. Many virtual
machines do not know the speed of their interfaces.
"""


def page() -> str:
    """Write docs/meters.md."""
    return "\n".join(
        [
            _HEAD,
            f"## Of a worker\n\n{_COLUMNS}\n{_rows(OF_WORKER)}\n\n{_WORKER}",
            f"## Of an executor\n\n{_COLUMNS}\n{_rows(OF_EXECUTOR)}\n\n{_EXECUTOR}",
            f"## Of a node\n\n{_COLUMNS}\n{_rows(OF_NODE)}\n\n{_NODE}",
        ]
    )


def _rows(table: tuple[Meter, ...]) -> str:
    return "\n".join(f"| `{row.name}` | `{row.column}` | {_what(row)} |" for row in table)


def _what(row: Meter) -> str:
    return row.shown if row.rate is None else f"{row.shown} The report has the total."


if __name__ == "__main__":
    print(page(), end="")
