"""Made-up hours of topologies on shared nodes, as the stage of hours leaves them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from controller.core.cluster import Floats
from controller.core.times import HOUR_S
from controller.pipeline.schemas import HOURS
from controller.weeks.hours import Hours

# A Monday, 0:00 UTC.
FIRST_DAY = 20_465
FIRST_HOUR = FIRST_DAY * 24


def made(cores: Mapping[str, Mapping[str, Floats]], **given: Any) -> Hours:
    """Take hours as `made_rows` lays them out."""
    return Hours.of(made_rows(cores, **given))


def made_rows(
    cores: Mapping[str, Mapping[str, Floats]],
    *,
    capacity: Mapping[str, float],
    latency_ms: Mapping[str, Floats] | None = None,
    input_tps: Mapping[str, Floats] | None = None,
    seen_s: float = HOUR_S,
) -> pa.Table:
    """Lay hours out: the CPU of each topology on each node, (H,), is its peak as well.

    Where it is NaN the node was not there; on all nodes, the topology was not measured.
    """
    rows = []
    for name, by_node in cores.items():
        topology = f"{name}-1-7"
        each = np.array(list(by_node.values()))
        whole = np.where(np.isnan(each).all(axis=0), np.nan, np.nan_to_num(each).sum(axis=0))
        for hour, used in enumerate(whole.tolist()):
            if np.isnan(used):
                continue
            known = {"topology": topology, "hour": FIRST_HOUR + hour}
            latency = (latency_ms or {}).get(name)
            rows.append(
                {
                    **known,
                    "seen_s": seen_s,
                    "cores": used,
                    "peak_cores": used,
                    "input_tps": float((input_tps or {}).get(name, whole * 100)[hour]),
                    "latency_p50_ms": None if latency is None else float(latency[hour]),
                }
            )
            rows += [
                {
                    **known,
                    "unit": node,
                    "node": node,
                    "capacity_cores": capacity[node],
                    "cores": float(one[hour]),
                    "peak_cores": float(one[hour]),
                }
                for node, one in by_node.items()
                if not np.isnan(one[hour])
            ]
    return pa.Table.from_pylist(rows, HOURS)


def rhythm(days: int) -> Floats:
    """Twice as much at 19:00 UTC as on average, and less at weekends; (H,)."""
    hour = np.arange(24 * days)
    of_day = 1 + np.cos((hour % 24 - 19) * np.pi / 12)
    of_week = np.where(hour // 24 % 7 >= 5, 0.6, 1.0)
    return np.array(0.2 + of_day * of_week)
