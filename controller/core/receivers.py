"""Who gets notices: the records of `nstorm.notice`."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

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
