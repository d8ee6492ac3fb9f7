"""The command ``nstorm``."""

from controller.cli.main import main

__all__ = ["main"]
