"""A near-optimal placement to walk to: partition, refine, adopt, order, follow."""
