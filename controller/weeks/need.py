"""What a topology, or all together, would need next month: by the highest hour of each whole day.

The logarithm of that hour's CPU is fitted to a trend, and to the day of the week where the log has
three of them. The need is the highest of the next 30 days. Its interval has the error of both, and
what days differ by.
"""

import numpy as np
from msgspec import Struct

from controller.core.cluster import Floats, Ints
from controller.core.peaks import HOURS_OF_DAY
from controller.core.squares import Squares
from controller.core.times import DAY_S
from controller.weeks.hours import Hours

MONTH_DAYS, WEEK_DAYS = 30, 7
# What is whole was measured for this share of the day.
WHOLE_FRAC = 0.9
# Of fewer whole days nothing is concluded: of the hours of a day, a trend, the days of a week.
LEAST_DAYS, LEAST_TREND_DAYS, LEAST_WEEKS_DAYS = 3, 14, 21
SURE_FRAC, SHOWN_DAYS = 0.95, 35
# A smaller trend is next to nothing.
LEAST_WEEK_FRAC = 0.001
_DRAWS = 4000
# 1970-01-01 was a Thursday; Monday is 0.
_FIRST_WEEKDAY = 3

Between = tuple[float, float, float]  # low end, middle and high end of an interval of `SURE_FRAC`


class Forecast(Struct, frozen=True):
    """What comes, if it goes on like this."""

    cores: Between  # of the busiest hour of the next month
    week_frac: Between  # by what share the daily peak grows in a week
    daily: tuple[Between, ...]  # cores of the highest hour of each day


class TopologyNeed(Struct, frozen=True):
    """The CPU of a topology by time, and what it would need."""

    topology: str
    daily: tuple[tuple[int, float], ...]  # whole days since 1970, and cores of their highest hour
    peak_cores: float  # the highest hour of the last week
    headroom_factor: float | None  # the least of the last week; None without load
    forecast: Forecast | None  # None where the log is too short
    # As times the mean; None with too few days, or without CPU. Of one of them it is None, as in
    # what follows, where nothing was measured.
    by_hour: tuple[float | None, ...] | None  # (24,), UTC
    by_weekday: tuple[float | None, ...] | None  # (7,), from Monday on
    # The days since 1970, and the factors of their hours.
    headroom: tuple[tuple[int, tuple[float | None, ...]], ...]
    verdict: str


def needs(hours: Hours) -> list[TopologyNeed]:
    """Look at each topology."""
    return [_need(hours, t) for t in range(len(hours.topologies))]


def need_of_all(hours: Hours) -> Forecast | None:
    """Forecast what all topologies need together; None where the log is too short."""
    seen = np.fmax.reduce([one.seen_s for one in hours.topologies])
    whole = _whole(hours, seen)
    peaks = _highest(hours.by_day(hours.used_cores.sum(axis=0)))
    return forecast(hours.days[whole], peaks[whole])


def forecast(days: Ints, peaks: Floats) -> Forecast | None:
    """Forecast the highest of the next days; None where there are too few.

    Parameters
    ----------
    days : array
        (D,), numbers of days since 1970, rising.
    peaks : array
        (D,), the CPU of the highest hour of each, in cores.
    """
    days, peaks = days[peaks > 0], peaks[peaks > 0]
    if len(days) < LEAST_TREND_DAYS:
        return None
    last, weekly = int(days[-1]), len(days) >= LEAST_WEEKS_DAYS
    found = Squares.of(np.log(peaks), _columns(days - last, days, weekly=weekly))
    future = np.arange(last + 1, last + 1 + MONTH_DAYS)
    random = np.random.default_rng(0)
    lengths, axes = np.linalg.eigh(found.inverse)
    # How far the variance may be from what the days show, and the coefficients with it.
    scale = np.sqrt(found.free / random.chisquare(found.free, _DRAWS) * found.variance)
    root = axes * np.sqrt(np.maximum(lengths, 0.0) * found.fewer)
    error = root @ random.standard_normal((len(lengths), _DRAWS)) * scale
    draws = found.coefficients[:, np.newaxis] + error
    noise = random.standard_normal((MONTH_DAYS, _DRAWS)) * scale
    to_come = _columns(future - last, future, weekly=weekly) @ draws + noise
    return Forecast(
        _between(np.exp(np.minimum(to_come.max(axis=0), 100.0))),
        _between(np.expm1(np.minimum(draws[1], 100.0))),
        tuple(_between(np.exp(np.minimum(day, 100.0))) for day in to_come),
    )


def _columns(since: Ints, days: Ints, *, weekly: bool) -> Floats:
    """Make columns of a level, weeks, and days of the week against Sunday, (D, 2) or (D, 8)."""
    weekday = (days + _FIRST_WEEKDAY) % WEEK_DAYS
    of_week = (weekday[:, np.newaxis] == np.arange(WEEK_DAYS - 1)) * 1.0
    of_week -= (weekday == WEEK_DAYS - 1)[:, np.newaxis]
    columns = [np.ones(len(days)), since / WEEK_DAYS, *(of_week.T if weekly else ())]
    return np.column_stack(columns)


def _between(draws: Floats) -> Between:
    rest = (1 - SURE_FRAC) / 2
    low, middle, high = np.quantile(draws, (rest, 0.5, 1 - rest)).tolist()
    return low, middle, high


def _whole(hours: Hours, seen_s: Floats) -> Ints:
    """List the days that were measured whole, by their place in the log."""
    return np.flatnonzero(np.nansum(hours.by_day(seen_s), axis=1) >= WHOLE_FRAC * DAY_S)


def _highest(by_day: Floats) -> Floats:
    found: Floats = np.nan_to_num(by_day).max(axis=1)
    return found


def _need(hours: Hours, t: int) -> TopologyNeed:
    one = hours.topologies[t]
    whole = _whole(hours, one.seen_s)
    highest = _highest(hours.by_day(one.peak_cores))
    to_come = forecast(hours.days[whole], highest[whole])
    by_day = hours.by_day(hours.headroom[t])
    week = slice(-WEEK_DAYS * HOURS_OF_DAY, None)
    left = hours.headroom[t][week]
    least = None if np.isnan(left).all() else float(np.nanmin(left))
    peak = float(np.nan_to_num(one.peak_cores[week]).max())
    count = len(whole)
    return TopologyNeed(
        topology=one.name,
        daily=tuple(zip(hours.days[whole].tolist(), highest[whole].tolist(), strict=True)),
        peak_cores=peak,
        headroom_factor=least,
        forecast=to_come,
        by_hour=_rhythm(hours.by_day(one.cores)[whole]) if count >= LEAST_DAYS else None,
        by_weekday=_by_weekday(hours, one.cores, whole) if count >= LEAST_WEEKS_DAYS else None,
        headroom=tuple(
            (day, tuple(None if np.isnan(one) else float(one) for one in row))
            for day, row in list(zip(hours.days.tolist(), by_day, strict=True))[-SHOWN_DAYS:]
        ),
        verdict=_verdict(count, peak, least, to_come),
    )


def _rhythm(table: Floats) -> tuple[float | None, ...] | None:
    """Give the mean of each column as times that of all; None where that is 0."""
    known = [column[~np.isnan(column)] for column in table.T]
    means = [float(column.mean()) if len(column) else None for column in known]
    whole = float(np.mean([mean for mean in means if mean is not None]))
    return tuple(mean and mean / whole for mean in means) if whole > 0 else None


def _by_weekday(hours: Hours, cores: Floats, whole: Ints) -> tuple[float | None, ...] | None:
    of_day = np.nanmean(hours.by_day(cores)[whole], axis=1)
    weekday = (hours.days[whole] + _FIRST_WEEKDAY) % WEEK_DAYS
    table = np.full((len(whole), WEEK_DAYS), np.nan)
    table[np.arange(len(whole)), weekday] = of_day
    return _rhythm(table)


def _verdict(days: int, peak: float, headroom: float | None, to_come: Forecast | None) -> str:
    if headroom is None or peak <= 0:
        return "It used no CPU in the last week."
    now = (
        f"Its busiest hour of the last week took {peak:.3g} cores, and there is room for "
        f"{headroom:.3g} times that."
    )
    if to_come is None:
        return (
            f"{now} What comes is not known: for a trend {LEAST_TREND_DAYS} whole days are needed, "
            f"and the log has {days}."
        )
    low, middle, high = to_come.cores
    grows = to_come.week_frac
    trend = (
        f"It grows by {grows[1]:.1%} a week ({grows[0]:.1%} to {grows[2]:.1%})."
        if grows[0] > LEAST_WEEK_FRAC
        else f"It falls by {-grows[1]:.1%} a week ({-grows[2]:.1%} to {-grows[0]:.1%})."
        if grows[2] < -LEAST_WEEK_FRAC
        else f"No trend is seen ({grows[0]:.1%} to {grows[2]:.1%} a week)."
    )
    room = peak * headroom
    enough = (
        "That fits."
        if high <= room
        else "That does not fit."
        if low > room
        else "That may not fit."
    )
    return (
        f"{now} {trend} Next month its busiest hour needs {middle:.3g} cores "
        f"({low:.3g} to {high:.3g}, {SURE_FRAC:.0%} confidence). {enough}"
    )
