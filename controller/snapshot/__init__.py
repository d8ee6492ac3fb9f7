"""The snapshot format: one topology's places, load and traffic as JSON."""

from controller.snapshot.format import parse

__all__ = ["parse"]
