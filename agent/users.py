"""What agent and workers exchange where these have users of their own: one folder a user.

Its supervisor makes the folder and gives it away, and closes all else in the store to these users.
"""

from __future__ import annotations

import grp
import pwd
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from kvstore.envelope import pack
from kvstore.foreign import replace_file
from kvstore.logs import log
from migration.model import LocalPlan, names_a_node
from migration.wire import USER_FOLDERS, encode_local

_PLAN = ".plan.bin"
# Of a folder that is given away: the user and Storm's group have all rights, and others none.
_GIVEN = stat.S_ISGID | 0o770


class UserPlans:
    """Keeps the plan of each topology in the folder of its user, who alone may read it there."""

    def __init__(self, store_dir: Path) -> None:
        self._folder = store_dir / USER_FOLDERS
        # What the file of each topology holds, nothing where an agent before this one wrote it.
        self._written: dict[Path, bytes] = dict.fromkeys(self._folder.glob(f"*/*{_PLAN}"), b"")
        self._given: tuple[LocalPlan, Mapping[str, str]] | None = None
        self._said: dict[Path, str] = {}

    def write(
        self, plans: LocalPlan, texts: Mapping[str, bytes], users: Mapping[str, str] | None
    ) -> None:
        """Write what is new, and remove the plans of topologies that have no worker here any more.

        `texts` are the plans as they came, `users` has the user of each topology of this node.
        None, while no supervisor has named them, keeps all as it is.
        """
        if users is None or self._is_written(plans, users):
            return
        held = {plan.topology: texts[plan.topology] for plan in plans.plans}
        # Also where there is no plan yet: a worker that has read nothing takes part in no move.
        wanted = {
            self._folder / user / f"{topology}{_PLAN}": encode_local(
                plans.cluster, {name: held[name] for name in held if name == topology}
            )
            for topology, user in users.items()
            if names_a_node(user) and names_a_node(topology)
        }
        for path in self._written.keys() - wanted.keys():
            with suppress(OSError):
                path.unlink()
            self._written.pop(path)
        # What is not wanted any more is never written, and would make each turn encode all again.
        for path in self._said.keys() - wanted.keys():
            self._said.pop(path)
        for path, payload in wanted.items():
            if self._written.get(path) != payload or not _is_there(path):
                self._write(path, payload)
        self._given = plans, users

    def _is_written(self, plans: LocalPlan, users: Mapping[str, str]) -> bool:
        if self._said or self._given is None or self._given[0] is not plans:
            return False
        return self._given[1] == users and all(map(_is_there, self._written))

    def _write(self, path: Path, payload: bytes) -> None:
        try:
            replace_file(path, pack(time.time_ns() // 1_000_000, payload))
        except OSError as error:
            self._written.pop(path, None)
            if self._said.get(path) != str(error):
                self._said[path] = str(error)
                log.error("plan_not_written", file=str(path), reason=str(error))
        else:
            self._written[path] = payload
            self._said.pop(path, None)


def _is_there(path: Path) -> bool:
    """Whether a plan is seen; its user may close his folder, and the write then has the reason."""
    with suppress(OSError):
        return path.exists()
    return False


def wrong_rights(store_dir: Path) -> Iterator[str]:
    """Find what lets other users into the store, or keeps them out of their own folder."""
    try:
        for name, others in (("", 0o1), (USER_FOLDERS, 0o1), ("plan", 0o0), ("s", 0o0)):
            folder = store_dir / name
            found = folder.stat().st_mode & 0o7
            if found != others:
                has = "may only enter" if others else "have no rights in"
                yield f"others {has} {folder}, and its mode is {_mode(folder)}"
        group = store_dir.stat().st_gid
        for folder in sorted((store_dir / USER_FOLDERS).iterdir()):
            yield from _wrong_folder(folder, group)
    except OSError as error:
        yield str(error)


def _wrong_folder(folder: Path, group: int) -> Iterator[str]:
    found = folder.lstat()
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = str(found.st_uid)
    if owner != folder.name:
        yield f"{folder} belongs to {owner}"
    if found.st_gid != group:
        yield f"{folder} is of group {_group(found.st_gid)}, and the store of {_group(group)}"
    if stat.S_IMODE(found.st_mode) != _GIVEN:
        yield f"{folder} has mode {_mode(folder)}, not {_GIVEN:04o}"


def _mode(folder: Path) -> str:
    return f"{stat.S_IMODE(folder.lstat().st_mode):04o}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
