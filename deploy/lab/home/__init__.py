"""The parts of a Storm home that are ours, and how the rest is assembled."""
