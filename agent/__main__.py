"""``python -m agent`` is ``nstorm-agent``."""

import sys

from agent.command import main

sys.exit(main(sys.argv[1:]))
