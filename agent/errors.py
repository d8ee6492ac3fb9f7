"""The errors of the agent."""


class AgentError(Exception):
    """What keeps an agent from its work, where, and what to do."""
