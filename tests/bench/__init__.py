"""Measures nstorm on a real cluster; every comparison is a ratio within one run."""

from enum import StrEnum


class Variant(StrEnum):
    """What makes a run of moves hard."""

    PLAIN = "plain"
    TICKS = "ticks"
    BATCH = "batch"
    BACK_PRESSURE = "back-pressure"
    SATURATED = "saturated"
