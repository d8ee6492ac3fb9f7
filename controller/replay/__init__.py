"""The recorded world: what a controller would have done with the load of a journal."""
