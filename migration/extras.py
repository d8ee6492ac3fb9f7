"""How what is optional is installed."""


def pip_install(extra: str) -> str:
    """Write what to type in nstorm's folder: its name is not published, and its pins are there."""
    return f"pip install -c constraints.txt '.[{extra}]'"
