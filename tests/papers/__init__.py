"""Prints the figures of the five papers beside what the shipped code gives, and why they differ."""
