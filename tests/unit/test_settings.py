"""README's table of settings, the agent and the controller know the same keys."""

import re
from pathlib import Path
from typing import Any

import pytest

import agent.config
import controller.config
from agent.errors import ConfigError as AgentConfigError
from controller.errors import ConfigError

README = (Path(__file__).parent.parent.parent / "README.md").read_text()
ROW = re.compile(r"^\| ((?:`[a-z.]+`(?:, )?)+) \|", re.MULTILINE)
SETTINGS = README.split("## Settings")[1].split("\n## ")[0]
DOCUMENTED = [key for row in ROW.findall(SETTINGS) for key in re.findall(r"`([a-z.]+)`", row)]


def refused(key: str, value: Any) -> list[str]:
    """Say who does not know a key at all, whatever it thinks of the value."""
    given = {f"nstorm.{key}": value, "storm.local.dir": "/tmp"}
    found = []
    for who, read in (("controller", controller.config.from_storm_yaml), ("agent", agent_reads)):
        try:
            read(given)
        except (ConfigError, AgentConfigError) as error:
            found += [who] if "unknown key" in str(error) else []
    return found


def agent_reads(given: dict[str, Any]) -> None:
    unknown = set(given) - agent.config.OWN_KEYS - agent.config.FOREIGN_KEYS - {"storm.local.dir"}
    if unknown:
        raise AgentConfigError(f"{unknown}: unknown key")


@pytest.mark.parametrize("key", DOCUMENTED)
def test_what_is_documented_is_known_to_both(key: str) -> None:
    assert refused(key, 1) == []


def test_what_the_agent_knows_is_documented() -> None:
    known = agent.config.OWN_KEYS | agent.config.FOREIGN_KEYS
    assert {key.removeprefix("nstorm.") for key in known} == set(DOCUMENTED)


def test_what_the_controller_knows_is_documented() -> None:
    given = dict.fromkeys(DOCUMENTED, None)
    taken = controller.config.build({}).keys
    assert set(taken) - {"vetoes"} <= set(given)
    assert refused("no.such.key", 1) == ["controller", "agent"]
