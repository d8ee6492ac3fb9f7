"""The sights and decisions of the controller, tick by tick, in files that a replay can read."""
