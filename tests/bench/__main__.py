"""``python -m tests.bench``, in a checkout."""

from controller.cli.running import run
from tests.bench.command import app

run(app, "python -m tests.bench")
