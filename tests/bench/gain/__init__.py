"""Measures what placements of several policies gain on a live cluster, against Storm's own."""
