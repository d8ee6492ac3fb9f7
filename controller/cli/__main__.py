"""``python -m controller.cli`` is ``nstorm``."""

from controller.cli.main import main

main()
