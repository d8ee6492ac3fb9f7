"""Whether nstorm would help a topology, from what is known before anything is installed."""
