"""Simulates clusters in which a policy may serve an input worse than Storm's placement does."""
