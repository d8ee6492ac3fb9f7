"""Measures the journal and replays of it: what they cost, and how that grows."""
