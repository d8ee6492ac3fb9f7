"""Loops over the traffic: who talks to whom, what crosses between nodes, and what hops cost."""

import numpy as np

from controller.core.cluster import Floats, Ints, Rows, Singles
from controller.core.loops import require

# Sums in another order differ by less than this share, and less than this much.
ROUNDING = 1e-9
# What `numbers` reads: the bytes of 0, 9 and the minus, and the largest number of 64 bits.
_ZERO, _NINE, _MINUS, _MOST = 48, 57, 45, 2**63 - 1


def numbers(text: bytes) -> Ints:
    """Read the whole numbers of a text, whatever stands between them.

    What is larger than 64 bits counts as the largest number. Raises `ValueError` where a minus does
    not begin a number.
    """
    found = np.empty(len(text) // 2 + 1, dtype=np.int64)
    count = value = digits = 0
    sign = 1
    for i in range(len(text) + 1):
        code = text[i] if i < len(text) else 0
        if _ZERO <= code <= _NINE:
            digit = code - _ZERO
            value = 10 * value + digit if value <= (_MOST - digit) // 10 else _MOST
            digits += 1
        elif code == _MINUS and digits == 0 and sign == 1:
            sign = -1
        else:
            if code == _MINUS or (sign == -1 and digits == 0):
                raise ValueError("a minus that begins no number")
            if digits > 0:
                found[count] = sign * value
                count += 1
            value, digits, sign = 0, 0, 1
    return np.asarray(found)[:count]


def hops(one: int, other: int, node_of: Ints) -> int:
    """Compute how far workers are apart: 0 to itself, 1 within a node, 2 between nodes."""
    if one == other:
        return 0
    return 1 if node_of[one] == node_of[other] else 2


def index(source: Ints, target: Ints, count: int) -> tuple[Ints, Rows, Rows]:
    """Index traffic by executor, of `count` executors: `begin`, `peer` and `row` as in `Pairs`."""
    require(len(source) == len(target))
    begin = np.zeros(count + 1, dtype=np.int64)
    for k in range(len(source)):
        if source[k] != target[k]:
            begin[source[k] + 1] += 1
            begin[target[k] + 1] += 1
    for e in range(count):
        begin[e + 1] += begin[e]
    free = np.array(begin)
    peer = np.empty(begin[count], dtype=np.uint32)
    row = np.empty(begin[count], dtype=np.uint32)
    _fill(source, target, free, peer, row)
    _fill(target, source, free, peer, row)
    return np.asarray(begin), np.asarray(peer), np.asarray(row)


def _fill(one: Ints, other: Ints, free: Ints, peer: Rows, row: Rows) -> None:
    """Give each executor of `one` its peer in `other`, where its next entry is `free`."""
    for k in range(len(one)):
        if one[k] != other[k]:
            at = free[one[k]]
            peer[at] = other[k]
            row[at] = k
            free[one[k]] = at + 1


def crossing(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    rates: Floats,
    group: Ints,
    groups: int,
    place: Ints,
    node_of: Ints,
    nodes: int,
) -> Floats:
    """Add up what each group of pairs sends from each node and to it, (groups, 2, N)."""
    require(len(source) == len(target) == len(rates) == len(group))
    sent = np.zeros((groups, 2, nodes))
    for k in range(len(source)):
        one, other = node_of[place[source[k]]], node_of[place[target[k]]]
        if one != other:
            sent[group[k], 0, one] += rates[k]
            sent[group[k], 1, other] += rates[k]
    return np.asarray(sent)


def is_above(sent: Floats, limit: Floats) -> bool:
    """Check whether a group sends more over a direction of a link than its `limit`.

    Both are (groups, 2, N), and `sent` is as of `crossing`.
    """
    require(len(sent) == len(limit) and sent.shape[1] == limit.shape[1] == 2)
    require(sent.shape[2] == limit.shape[2])
    for g in range(len(sent)):
        for d in range(2):
            for n in range(sent.shape[2]):
                if sent[g, d, n] > limit[g, d, n]:
                    return True
    return False


def hop_bounds(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    tps: Floats,
    cost_s: Floats,
    far_s: float,
    place: Ints,
    node_of: Ints,
) -> Floats:
    """Compute what executors have to use, (E,), if their hops cost as much as `tps` has it.

    `cost_s` is by `hops`, (3,). Their own work is at least what hops to all peers cost that take
    `far_s` each.
    """
    require(len(source) == len(target) == len(tps) and len(cost_s) == 3)
    bound = np.zeros(len(place))
    for k in range(len(source)):
        one, other = source[k], target[k]
        if one != other:
            cost = tps[k] * (far_s + cost_s[hops(place[one], place[other], node_of)])
            bound[one] += cost
            bound[other] += cost
    return np.asarray(bound)


def hop_cores(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    tps: Floats,
    scale: Floats,
    cost_s: Floats,
    place: Ints,
    node_of: Ints,
) -> Floats:
    """Compute the CPU that each executor uses for hops in a placement, (E,), in cores."""
    require(len(source) == len(target) == len(tps) and len(cost_s) == 3)
    require(len(place) == len(scale))
    cores = np.zeros(len(place))
    for k in range(len(source)):
        one, other = source[k], target[k]
        spent = tps[k] * cost_s[hops(place[one], place[other], node_of)]
        cores[one] += spent
        cores[other] += spent
    for e in range(len(place)):
        cores[e] *= scale[e]
    return np.asarray(cores)


def load(  # noqa: PLR0917
    source: Ints,
    target: Ints,
    size_bytes: Floats,
    tps: Singles,
    cores: Singles,
    cost_s: Floats,
    place: Ints,
    recorded: Ints,
    node_of: Ints,
    nodes: int,
) -> tuple[Floats, float, float, float, float]:
    """Compute the load of one tick in a placement: CPU (E,), and traffic.

    The CPU is the recorded one, less the hops of the recorded placement, with those of this one,
    and never below zero. The traffic is that between nodes, that between workers (those of other
    nodes too), and all, in tuples/s. The last is what the fullest direction of a node's link
    carries, in bytes per second; NaN where no size is known.
    """
    require(len(source) == len(target) == len(size_bytes) == len(tps) and len(cost_s) == 3)
    require(len(place) == len(recorded) == len(cores))
    used = np.empty(len(cores))
    for e in range(len(cores)):
        used[e] = cores[e]
    crossing = leaving = total = fullest = 0.0
    sent, got, is_sized = np.zeros(nodes), np.zeros(nodes), False
    for k in range(len(source)):
        said, one, other = float(tps[k]), source[k], target[k]
        now = hops(place[one], place[other], node_of)
        total += said
        leaving += said if now >= 1 else 0.0
        crossing += said if now == 2 else 0.0
        if size_bytes[k] >= 0.0:
            is_sized = True
            if now == 2:
                sent[node_of[place[one]]] += said * size_bytes[k]
                got[node_of[place[other]]] += said * size_bytes[k]
        before = hops(recorded[one], recorded[other], node_of)
        more = said * (cost_s[now] - cost_s[before])
        used[one] += more
        used[other] += more
    for e in range(len(cores)):
        used[e] = max(used[e], 0.0)
    for n in range(nodes):
        fullest = max(fullest, sent[n], got[n])
    return np.asarray(used), crossing, leaving, total, fullest if is_sized else np.nan
