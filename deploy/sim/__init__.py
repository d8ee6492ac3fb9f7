"""The imagined world: a whole cluster in virtual time that the shipped controller decides about."""

from controller.errors import ControllerError


class ScenarioError(ControllerError):
    """A scenario cannot be run; the message names the key."""
