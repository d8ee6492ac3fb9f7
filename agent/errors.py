"""The errors of the agent."""


class AgentError(Exception):
    """What keeps an agent from its work, where, and what to do."""


class ConfigError(AgentError):
    """A setting that is unknown or cannot be; the message begins with its key."""
