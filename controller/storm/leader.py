"""Leads while no other controller does, under an epoch that fences every write."""

import uuid
from contextlib import suppress
from importlib.metadata import version

from kvstore.election import Candidate
from kvstore.errors import ConflictError, NodeExistsError, NoNodeError
from kvstore.logs import log
from kvstore.zookeeper import Session
from migration import wire
from migration.model import Candidacy

RENEWED_AT_ONCE = 100


class Leader:
    """One controller's part in the election, under a name for people who look.

    The version of the leader's own node would not fence, because it starts at 0 each time. The
    epoch is the version of a node that outlives all leaders.
    """

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        candidacy = wire.encode(Candidacy(name, version("nstorm"), wire.SPEAKS))
        self._candidate = Candidate(session, wire.LEADER, candidacy)
        self._epoch: int | None = None
        self._interruptions = session.interruptions

    @property
    def epoch(self) -> int | None:
        """The epoch to write under; None while another leads or the connection wavers."""
        if self._session.interruptions != self._interruptions:
            self._epoch = None
        return self._epoch

    def refresh(self) -> None:
        """Look at the queue, and take an epoch if this controller has become its head."""
        interruptions = self._session.interruptions
        if interruptions != self._interruptions:
            log.warning("leader_stepped_down", reason="the connection to ZooKeeper was interrupted")
            self._epoch = None
            self._interruptions = interruptions
        if not self._candidate.leads():
            self._epoch = None
        elif self._epoch is None:
            self._epoch = self._take_epoch()
            log.info("leader_elected", epoch=self._epoch)

    def renew(self, above: int) -> int | None:
        """Take a higher epoch while leading, because JVMs have read plans of higher ones.

        None if another controller has taken one in the meantime. It may be lower than requested: so
        that nothing else waits for long, the next call goes on.
        """
        epoch = self.epoch
        for _ in range(RENEWED_AT_ONCE):
            if epoch is None or epoch > above:
                break
            try:
                epoch = self._session.set(wire.EPOCH, b"", epoch)
            except (ConflictError, NoNodeError):
                epoch = None
        self._epoch = epoch
        log.info("leader_renewed", epoch=epoch, above=above)
        return epoch

    def step_down(self) -> None:
        """Stop leading at once, because a fenced write was refused."""
        self._epoch = None

    def resign(self) -> None:
        """Leave the queue, for a quick hand-over."""
        self._epoch = None
        self._candidate.resign()

    def _take_epoch(self) -> int:
        uuid_now = str(uuid.uuid4()).encode()
        for path, data in ((wire.CLUSTER, uuid_now), (wire.PLANS, b""), (wire.EPOCH, b"")):
            # An earlier leader may have been first.
            with suppress(NodeExistsError):
                self._session.create(path, data)
        return self._session.set(wire.EPOCH, b"")
