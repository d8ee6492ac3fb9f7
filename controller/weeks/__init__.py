"""``nstorm report``: what a log of weeks shows."""
