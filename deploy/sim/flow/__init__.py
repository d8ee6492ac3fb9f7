"""What is simulated: topologies, the tuples that flow through them, and what is measured of it."""
