"""Who gets notices: the records of `nstorm.notice`."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

SET = "(set)"  # in place of what may be a secret
_File = Annotated[str, Meta(min_length=1)]


class NoticeKind(StrEnum):
    MOVE = "move"  # a move has ended
    RUN = "run"  # a run of moves goes back, has gone back, or cannot
    GUARD = "guard"  # a guard is breached, or a topology pauses for one
    CAPACITY = "capacity"  # workers have too little, and no placement mends that


class Receiver(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where notices go: exactly one of `webhook`, `slack` and `mail` is there.

    Addresses and tokens are secrets: the record has files of them.
    """

    webhook: _File | None = None  # its first line is the address
    slack: _File | None = None  # the same
    token: _File | None = None  # of the webhook
    mail: Annotated[tuple[_File, ...], Meta(min_length=1)] | None = None  # a command
    kinds: Annotated[tuple[NoticeKind, ...], Meta(min_length=1)] = tuple(NoticeKind)

    @property
    def name(self) -> str:
        """Where notices go, without a secret."""
        command = self.mail[0] if self.mail else ""  # a password may be an argument
        return self.webhook or self.slack or command


def without_arguments(records: Any) -> Any:
    """Leave of each command that sends notices its first word: a password may be an argument.

    What are no such records may hold anything.
    """
    if not isinstance(records, list | tuple) or not all(isinstance(one, dict) for one in records):
        return SET
    found = [dict(one) for one in records]
    for one in found:
        if "mail" in one:
            command = one["mail"]
            is_list = isinstance(command, list | tuple)
            one["mail"] = [*command[:1], *[SET] * len(command[1:])] if is_list else SET
    return found
