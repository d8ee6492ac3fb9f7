"""Runs a real Storm cluster on one machine, for the demo, the tests and the benchmarks."""

from controller.errors import ControllerError


class LabError(ControllerError):
    """Names what the lab could not do, where, and what to do about it."""
