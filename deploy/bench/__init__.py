"""Measures nstorm on a real cluster; every comparison is a ratio within one run."""
