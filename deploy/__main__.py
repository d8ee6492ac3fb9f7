"""``python -m deploy``, in a checkout."""

from controller.cli.running import run
from deploy.command import app

run(app, "python -m deploy")
