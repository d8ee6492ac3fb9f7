"""Predicts the rate that a mapping of threads to slots reaches (001, section 8.5)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from controller.policies.model_driven.mapping import Placed, at
from controller.policies.profiles import Performance


def task_rate(table: Sequence[Performance], slots: Sequence[int], *, evenly: bool = True) -> float:
    """Predict what a task takes in at most, in tuples/s, with its threads on these slots.

    A shuffle grouping gives every thread the same share (`evenly`). So the slot that is the first
    to have too much decides: the least of I(q)·Σq / q, with I interpolated. So the text explains
    its 80 t/s for 60 + 60 + 40 threads of Table. Its 280 t/s for MBA and SAM on 20 slots is the sum
    of I(q): every slot gets what it can take. What other tasks do on the slot is not in the model.
    """
    threads = Counter(slots).values()
    if not evenly:
        return sum(at(table, q).rate_tps for q in threads)
    total = sum(threads)
    return min((at(table, q).rate_tps * total / q for q in threads), default=0.0)


def predicted_rate(
    tables: Mapping[str, Sequence[Performance]],
    relative: Mapping[str, float],
    placed: Placed,
    *,
    evenly: bool = True,
) -> float:
    """Predict the rate into the topology that all its tasks keep up with; infinite if nothing
    limits it.

    `relative` is what each task takes in when one tuple/s comes in. Tasks without a table do not
    limit the rate.
    """
    limits = (
        task_rate(table, placed[task], evenly=evenly) / relative[task]
        for task, table in tables.items()
        if relative[task] > 0
    )
    return min(limits, default=float("inf"))
