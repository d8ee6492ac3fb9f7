"""Measures decisions: how fast they are, how much memory they take, how good the end is."""
