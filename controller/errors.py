"""Errors a user of the controller can do something about."""


class ControllerError(Exception):
    """Base of every error this package raises on purpose."""


class SnapshotError(ControllerError):
    """A snapshot file breaks the format; the message names the field."""


class CommandError(ControllerError):
    """A request of an operator was refused or not answered; the message is why."""


class RefusedError(CommandError):
    """The controller that leads refused a request; the message names it and why."""


class PolicyError(ControllerError):
    """A policy lacks a key of the snapshot or a package; the message names both."""


class TuneError(ControllerError):
    """A log cannot be tuned with; the message names what is missing and what to type."""
