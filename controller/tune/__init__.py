"""Tuning: which settings would have done best with the load of a journal."""
