"""The switch of this node: the files that turn the hooks of its JVMs off."""

from pathlib import Path

from kvstore.errors import StoreError
from kvstore.foreign import first_bytes, replace_file
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
            try:
                replace_file(self._by_cluster, one_line(reason).encode())
            except OSError:  # on a full disk there is room for an empty file
                self._touch()

    def _touch(self) -> None:
        try:
            replace_file(self._by_cluster, b"")
        except OSError as error:
            raise StoreError(f"cannot switch the hooks off: {error}") from error

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
        return one_line(first_bytes(file))
    except FileNotFoundError:
        return None
    except OSError:
        return ""
