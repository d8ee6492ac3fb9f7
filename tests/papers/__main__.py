"""``python -m tests.papers``, in a checkout."""

from controller.cli.running import run
from tests.papers.command import app

run(app, "python -m tests.papers")
