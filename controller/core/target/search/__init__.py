"""Looks for a cheap placement: partitions, refinements, annealing."""
