"""The switch of this node: the files that turn the hooks of its JVMs off."""

from contextlib import suppress
from pathlib import Path

from kvstore.logs import log
from kvstore.printable import one_line
from migration.wire import OFF_BY_CLUSTER, OFF_FILE


class Switch:
    """Passes on what ZooKeeper has, and knows what an operator has put there by hand."""

    def __init__(self, store_dir: Path) -> None:
        self._by_hand = store_dir / OFF_FILE
        self._by_cluster = store_dir / OFF_BY_CLUSTER
        self._said: str | None = None

    def follow(self, reason: bytes) -> None:
        """Take over what `/nstorm/off` holds: why all hooks are off, nothing while they are on."""
        if not reason:
            self._by_cluster.unlink(missing_ok=True)
        elif _read(self._by_cluster) != one_line(reason):
            self._by_cluster.parent.mkdir(parents=True, exist_ok=True)
            # JVMs look at whether it is there, and never at half of it.
            part = self._by_cluster.with_name(f"{OFF_BY_CLUSTER}.part")
            with suppress(OSError):  # on a full disk there is room for an empty file
                part.write_text(one_line(reason), "utf-8")
            part.rename(self._by_cluster)

    def reason(self) -> str | None:
        """Read why the hooks of this node are off; None while they are on."""
        here = (_read(self._by_hand), _read(self._by_cluster))
        reason = next((found or "no reason given" for found in here if found is not None), None)
        if reason != self._said:
            if reason is None:
                log.info("switched_on")
            else:
                log.warning("switched_off", reason=reason)
        self._said = reason
        return reason


def _read(file: Path) -> str | None:
    """Read a file's text; None if it is not there. One that cannot be read counts all the same."""
    try:
        return one_line(file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        return ""
