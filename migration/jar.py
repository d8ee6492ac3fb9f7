"""Where the jar with the hooks is, and the Java that runs it."""

import os
import shutil
from importlib.resources import files
from pathlib import Path

from migration import ConfigError


def path() -> Path:
    """Find the jar that a `-javaagent:` in storm.yaml names; a `ConfigError` if it is not built."""
    found = Path(str(files("migration") / "jvm" / "target" / "nstorm-hooks.jar"))
    if not found.is_file():
        raise ConfigError(
            f"{found}: the jar was not built; with a JDK of 17 or later and Maven, type in a "
            "checkout: make setup"
        )
    return found


def java(home: str = "") -> str | None:
    """Find the Java in `home`, else in JAVA_HOME, else on the path; None without one."""
    home = home or os.environ.get("JAVA_HOME", "")
    return shutil.which("java", path=f"{home}/bin" if home else None)
