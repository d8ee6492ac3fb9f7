"""Faults in the middle of moves, on a real Storm cluster: ``python -m tests.chaos``."""
