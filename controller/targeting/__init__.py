"""Carries the memory of `target` from decision to decision, and runs its search."""
