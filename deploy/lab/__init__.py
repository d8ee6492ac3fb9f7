"""Runs a real Storm cluster on one machine, for the demo, the tests and the benchmarks."""


class LabError(Exception):
    """Says what the lab could not do, where, and what to do about it."""
