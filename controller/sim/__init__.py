"""The imagined world: a whole cluster in virtual time that the shipped controller decides about."""
