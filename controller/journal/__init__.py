"""What the controller saw and did, tick by tick, in files that a replay can read."""
