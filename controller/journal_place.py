"""Where the journal of this machine is, by its storm.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migration.settings import Reader, values
from migration.storm_yaml import own_keys

_KEY = "journal.dir"


def keys_with_journal(document: Mapping[str, Any]) -> dict[str, Any]:
    """Take out the ``nstorm.*`` keys, with the journal's place where they do not name it."""
    own = own_keys(document)
    local_dir = document.get("storm.local.dir")
    if isinstance(local_dir, str) and Path(local_dir).is_absolute():
        own.setdefault(_KEY, str(Path(local_dir) / "nstorm-journal"))
    return own


def journal_dir(document: Mapping[str, Any]) -> Path | None:
    """Read only the journal's place: other settings may be wrong."""
    own = keys_with_journal(document)
    folder = values({_KEY: own[_KEY]} if _KEY in own else {}, (Reader.CONTROLLER,))[_KEY]
    return Path(folder) if folder else None
