"""Policies: pure functions that decide on moves, one file or folder each."""
