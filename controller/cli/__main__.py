"""``python -m controller.cli`` is ``nstorm``."""

from controller.cli import main

main()
