"""Prints the figures of the five papers and of the shipped code, and why they differ."""
