"""Finds the best placement there is, or proves how good one can be; too slow to run live."""
