"""The meaning of a move: the values, their bytes, the protocol, and its errors."""


class MigrationError(Exception):
    """A plan, a report, a setting or the protocol's own table is wrong."""


class ConfigError(MigrationError):
    """A setting that is unknown or cannot be; the message begins with its file or key."""


class ModelError(MigrationError, ValueError):
    """A value that cannot exist: a reversed task range, two entries of one executor."""


class StalePlanError(MigrationError):
    """A plan that is older than the one already held."""


class WireError(MigrationError, ValueError):
    """Bytes that break a format of PROTOCOL.md.

    A field's path, such as ``Plan.entries[0].executor``, is `where`.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem
