"""What the spouts get: a rate, with bursts, the curve of a day, and noise."""

import math
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from controller.core.quantities import MOST, Count, Quantity
from deploy.sim.flow.workload import Unbounded

Positive = Annotated[float, Meta(gt=0, le=MOST)]
# For how long what is drawn of the noise holds.
NOISE_S = 1.0


class Span(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A time, once or again and again."""

    at_s: Quantity
    for_s: Positive
    every_s: Quantity = 0.0  # after how long it comes again; 0: never

    def covers(self, now_s: float) -> bool:
        since_s = now_s - self.at_s
        if since_s >= 0 and self.every_s:
            since_s = math.fmod(since_s, self.every_s)
        return 0 <= since_s < self.for_s


class Burst(Span, frozen=True, kw_only=True):
    """A time at which the spouts get more, or less, than else."""

    times: Quantity


class Day(Struct, frozen=True, forbid_unknown_fields=True):
    """A curve that begins at the rate, rises to a multiple of it in its middle, and falls."""

    minutes: Positive
    times: Quantity


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """What the spouts get."""

    rate_tps: Unbounded = math.inf  # of all spouts together; infinite: as much as goes
    # Sentences in flight that one spout executor allows (topology.max.spout.pending). All of them
    # together should be what comes through in three steps or more, or else the steps bind.
    pending: Count = 5000
    # When what is lost no longer counts as in flight (topology.message.timeout.secs).
    timeout_s: Quantity = 30.0
    bursts: tuple[Burst, ...] = ()
    day: Day | None = None
    noise: Quantity = 0.0  # sigma of the log-normal factor on the rate, drawn each second


class Tap:
    """Gives how many times its rate a feed has at a moment."""

    def __init__(self, feed: Feed, random: np.random.Generator) -> None:
        self._feed, self._random = feed, random
        self._drawn_s, self._noise = -math.inf, 1.0

    def times(self, now_s: float) -> float:
        """Compute the factor; moments must not go back."""
        feed, times = self._feed, 1.0
        for burst in feed.bursts:
            if burst.covers(now_s):
                times *= burst.times
        if feed.day is not None:
            height = 0.5 - 0.5 * math.cos(2 * math.pi * now_s / (60 * feed.day.minutes))
            times *= 1 + (feed.day.times - 1) * round(height, 9)
        if feed.noise and now_s >= self._drawn_s + NOISE_S:
            wrong = math.exp(feed.noise * self._random.standard_normal() - feed.noise**2 / 2)
            self._drawn_s, self._noise = now_s, round(wrong, 9)
        return times * self._noise
