"""A ZooKeeper session with typed calls, each with a deadline; the only user of kazoo.

kazoo queues calls while the connection is away and reports a lost session only once it is back, so
a caller could wait for ever. Here nothing is queued: a call without a connection fails at once. A
call that failed by its deadline may still have happened; versions show it.
"""

from __future__ import annotations

import os
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple, Self

from kazoo import exceptions as kazoo_errors  # type: ignore[import-untyped]
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.handlers.threading import (  # type: ignore[import-untyped]
    KazooTimeoutError,
    SequentialThreadingHandler,
)
from kazoo.protocol.serialization import GetData, stat_struct  # type: ignore[import-untyped]
from kazoo.security import ACL, Id  # type: ignore[import-untyped]

from kvstore.ensemble import OPEN, Ensemble, Grant, who_may
from kvstore.errors import (
    AccessError,
    ConflictError,
    NodeExistsError,
    NoNodeError,
    NotConnectedError,
    SessionLostError,
    ZooKeeperError,
)

ANY_VERSION = -1
# kazoo doubles the pause between two attempts up to an hour, so that long outages lasted twice.
_RECONNECT = {"max_tries": -1, "max_delay": 5.0}
# Answers of 256 kB at the most are no more than 25 MB together.
_READ_AT_ONCE = 100
_MAY = {letter: 1 << bit for bit, letter in enumerate("rwcda")}
_REFUSALS = (
    kazoo_errors.NoAuthError,
    kazoo_errors.AuthFailedError,
    kazoo_errors.InvalidACLError,
    kazoo_errors.SASLException,
    kazoo_errors.SessionClosedRequireSaslError,
)
_MULTI_HEADER, _INT = Struct("!i?i"), Struct("!i")


class PollHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Handles kazoo's calls by polls.

    kazoo's own handler makes an epoll for each wait, some five for one read of a node. A poll takes
    half the CPU and a third of the time.
    """

    def select(
        self,
        rlist: Sequence[Any],
        wlist: Sequence[Any],
        xlist: object,
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Wait until sockets can be read or written, as `select.select`, for `timeout` seconds."""
        poll = select.poll()
        for socket in rlist:
            poll.register(socket, select.POLLIN)
        for socket in wlist:
            poll.register(socket, select.POLLOUT)
        # A broken socket counts as ready: the next call fails on it.
        ready = {fd for fd, _ in poll.poll(None if timeout is None else max(1000 * timeout, 0))}
        found = [[s for s in sockets if s.fileno() in ready] for sockets in (rlist, wlist)]
        return found[0], found[1], []


@dataclass(frozen=True, slots=True)
class Stored:
    """The data of a node; the version rises with each write, mzxid with each write anywhere.

    `mtime_ms` is when it was written, by the clock of the ensemble's leader.
    """

    data: bytes
    version: int
    mzxid: int
    mtime_ms: int = 0


class _MultiRead(NamedTuple):
    """ZooKeeper's request for many nodes, known to its servers from 3.6 on."""

    paths: tuple[str, ...]
    type: int = 22

    def serialize(self) -> bytes:
        """Write a header and a read without a watch for each node, and the header of the end."""
        header = _MULTI_HEADER.pack(GetData.type, False, -1)
        reads = (header + GetData(path, None).serialize() for path in self.paths)
        return b"".join(reads) + _MULTI_HEADER.pack(-1, True, -1)

    @staticmethod
    def deserialize(answer: bytes, offset: int) -> list[Stored | Exception | None]:
        """Read what each node holds; None for one that is not there, an error for a closed one."""
        found: list[Stored | Exception | None] = []
        while True:
            kind, done, _ = _MULTI_HEADER.unpack_from(answer, offset)
            offset += _MULTI_HEADER.size
            if done:
                return found
            if kind == GetData.type:
                data, stat = GetData.deserialize(answer, offset)
                offset += _INT.size + len(data or b"") + stat_struct.size
                found.append(_stored(data or b"", stat))
                continue
            (code,) = _INT.unpack_from(answer, offset)
            offset += _INT.size
            error = kazoo_errors.EXCEPTIONS[code]()
            if not isinstance(error, kazoo_errors.NoNodeError | kazoo_errors.NoAuthError):
                raise error
            found.append(None if isinstance(error, kazoo_errors.NoNodeError) else error)


@dataclass(frozen=True, slots=True)
class Waiting:
    """That ZooKeeper is away: where it was sought, how often, and when it is tried again."""

    hosts: str
    attempt: int
    retry_in_s: float
    error: str
    refused: bool = False  # that it does answer, and does not let us in


class Session:
    """One session with a ZooKeeper ensemble.

    A leader steps down as soon as `interruptions` has risen since its election. Until the session
    is reported lost, a rival may have led for a while.
    """

    def __init__(
        self,
        ensemble: Ensemble | str,  # the hosts alone stand for an open one
        *,
        # After this long without a connection the ensemble ends the session.
        session_timeout_s: float = 10.0,
        deadline_s: float = 5.0,  # how long a call may take
        # Called with CONNECTED, SUSPENDED or LOST from kazoo's own thread; it must not block.
        on_state: Callable[[str], None] = lambda state: None,
    ) -> None:
        self._ensemble = Ensemble(ensemble) if isinstance(ensemble, str) else ensemble
        self.hosts = self._ensemble.hosts
        self.deadline_s = deadline_s
        self.interruptions = 0
        self.lost = False
        self._on_state = on_state
        self._session_timeout_s = session_timeout_s
        self._away_since_s = 0.0
        self._denied: str | None = None  # why a log-in was
        self._client = self._new_client()

    def _new_client(self) -> Any:
        ensemble, tls = self._ensemble, self._ensemble.tls
        if ensemble.keytab is not None:
            # Of the process: it has one identity. No file keeps its tickets.
            os.environ["KRB5_CLIENT_KTNAME"] = f"FILE:{ensemble.keytab}"
            os.environ["KRB5CCNAME"] = "MEMORY:nstorm"
        secured: dict[str, Any] = {}
        if tls is not None:
            secured = {
                "use_ssl": True,
                "ca": str(tls.ca),
                "certfile": tls.certificate and str(tls.certificate),
                "keyfile": tls.key and str(tls.key),
                "check_hostname": tls.checks_host,
            }
        client = KazooClient(
            hosts=self.hosts,
            timeout=self._session_timeout_s,
            handler=PollHandler(),
            connection_retry=_RECONNECT,
            auth_data=list(ensemble.auth),
            sasl_options=None if ensemble.sasl is None else dict(ensemble.sasl),
            **secured,
        )
        client.add_listener(lambda state: self._listen(client, state))
        if ensemble.sasl is not None:
            self._hear_denials(client)
        if tls is not None:
            self._hear_certificates(client)
        return client

    def _hear_denials(self, client: Any) -> None:
        """Note why ZooKeeper denies a log-in: of most reasons kazoo's thread would die."""
        log_in = client._connection._authenticate_with_sasl

        def heard(host: str, timeout: float) -> None:
            try:
                log_in(host, timeout)
            except (kazoo_errors.ConnectionDropped, KazooTimeoutError):
                raise
            except Exception as error:  # of the library of Kerberos as well
                self._denied = " ".join(str(error.__cause__ or error).split())
                raise kazoo_errors.AuthFailedError(self._denied) from error

        client._connection._authenticate_with_sasl = heard

    def _hear_certificates(self, client: Any) -> None:
        """Note why TLS fails, which kazoo takes for a connection that has dropped."""
        connect = client._connection._connect

        def heard(*where: Any) -> Any:
            try:
                return connect(*where)
            except kazoo_errors.ConnectionDropped as error:
                if isinstance(error.__context__, ssl.SSLError):
                    self._denied = _tls_reason(error.__context__)
                raise

        client._connection._connect = heard

    def _listen(self, client: Any, state: str) -> None:
        if client is not self._client:
            return
        if state != "CONNECTED":
            self.interruptions += 1
            self._away_since_s = time.monotonic()
        self.lost = self.lost or state == "LOST"
        self._on_state(state)

    @property
    def connected(self) -> bool:
        return bool(self._client.connected) and not self.lost

    def connect(
        self,
        *,
        retry_s: float = 5.0,
        on_wait: Callable[[Waiting], None] = lambda waiting: None,
        stop: threading.Event | None = None,
    ) -> bool:
        """Connect, and keep trying; False if `stop` was set before there was a connection.

        Between two attempts `on_wait` is called each second, for a countdown that people can see.
        """
        stop = stop or threading.Event()
        attempt = 0
        while not stop.is_set():
            attempt += 1
            # kazoo's own start() looks for the root, without a deadline, and warns people of it.
            self._client.start_async().wait(self.deadline_s)
            refusal = self._refusal()
            if refusal is None and self._client.connected:
                return True
            self._renew()
            for left_s in _countdown(retry_s):
                why = refusal or "no answer"
                on_wait(Waiting(self.hosts, attempt, left_s, why, refusal is not None))
                if stop.wait(min(1.0, left_s)):
                    break
        return False

    def _refusal(self) -> str | None:
        """Return why ZooKeeper does not let us in; None if it does, or does not answer.

        kazoo takes itself for connected before ZooKeeper has looked at credentials.
        """
        try:
            if self._client.connected:
                self._wait(self._client.exists_async("/"))
        except kazoo_errors.NoAuthError:
            return None  # it knows us: what we may is another question
        except _REFUSALS:
            return self._refused()
        except (KazooTimeoutError, kazoo_errors.KazooException):
            pass  # the connection has dropped: perhaps because of the credentials
        return None if self._denied is None else self._refused()

    def _refused(self) -> str:
        if self._ensemble.tls is not None and self._denied is not None:
            return f"{self._denied}: docs/security.md has what to look at"
        reason = self._denied
        if not reason and self._ensemble.keytab is not None:
            # A client takes the time of the KDC: only ZooKeeper sees that their clocks differ.
            reason = "without a reason: compare `date -u` of ZooKeeper and KDC, and see its log"
        who, why = self._ensemble.who, f" ({reason})" if reason else ""
        return (
            f"ZooKeeper refuses the credentials of {who}{why}: correct them in the storm.yaml, or "
            "what it names"
            if who
            else "ZooKeeper demands credentials: name them in the storm.yaml, as docs/security.md "
            "shows"
        )

    def _renew(self) -> None:
        """Take a fresh client: one that failed to start stays half stopped."""
        failed, self._client = self._client, self._new_client()
        self.lost, self._denied = False, None
        failed.stop()
        failed.close()

    def read(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        """Read a node, None if it is not there, and watch it if wanted.

        `on_change` is called once from kazoo's thread when the node is written, made or deleted, or
        when the connection drops; it must not block. Read again with it to go on watching.
        """
        with self._call("read", path):
            found = self._look(self._client.get_async, path, on_change)
        return None if found is None else _stored(*found)

    def read_many(self, paths: Sequence[str]) -> list[Stored | AccessError | None]:
        """Read nodes by a hundred at once, without a watch.

        None for each that is not there, and the reason for each that is closed to us.
        """
        with self._call("read", f"{len(paths)} nodes"):
            asked = []
            for first in range(0, len(paths), _READ_AT_ONCE):
                some = [self._client.chroot + path for path in paths[first : first + _READ_AT_ONCE]]
                answer = self._client.handler.async_result()
                # kazoo has no such request, and no other way to send one of one's own.
                self._client._call(_MultiRead(tuple(some)), answer)
                asked.append(answer)
            found = [one for answer in asked for one in self._wait(answer)]
        return [
            self._no_access("read", path) if isinstance(one, Exception) else one
            for path, one in zip(paths, found, strict=True)
        ]

    def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str] | None:
        """List a node's children, sorted; None if the node is not there. Watches as `read`."""
        with self._call("list", path):
            found = self._look(self._client.get_children_async, path, on_change)
        return None if found is None else sorted(found)

    def _look(
        self, ask: Callable[..., Any], path: str, on_change: Callable[[], None] | None
    ) -> Any:
        watch = _watch(on_change)
        try:
            return self._wait(ask(path, watch))
        except kazoo_errors.NoNodeError:
            # Made between the two calls, it would be missed: then read it after all.
            if watch is None or self._wait(self._client.exists_async(path, watch)) is None:
                return None
            return self._wait(ask(path, watch))

    def exists(self, path: str, on_change: Callable[[], None] | None = None) -> Stored | None:
        """Return a node's versions without its data, None if it is not there."""
        with self._call("look at", path):
            stat = self._wait(self._client.exists_async(path, _watch(on_change)))
        return None if stat is None else _stored(b"", stat)

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Create a node, its parents too; return its path, longer than asked for a sequence.

        A `NodeExistsError` if it is there. A `NoNodeError` if the session's root is not there: only
        its owner may make that.
        """

        def make() -> str:
            with self._call("create", path):
                made = self._client.create_async(
                    path, data, self._acl(path), ephemeral=ephemeral, sequence=sequence
                )
                return str(self._wait(made))

        try:
            return make()
        except NoNodeError:
            # kazoo's own makepath would also make the root.
            parent = path.rpartition("/")[0]
            if not parent:
                raise
            with suppress(NodeExistsError):
                self.create(parent)
            return make()

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Write a node that is at this version; return its new version.

        A `NoNodeError` if it is not there, a `ConflictError` if it is at another version.
        """
        with self._call("write", path):
            return int(self._wait(self._client.set_async(path, data, version)).version)

    def put(self, path: str, data: bytes) -> int:
        """Write a node, created if absent; return its version."""
        try:
            return self.set(path, data)
        except NoNodeError:
            try:
                self.create(path, data)
                return 0
            except NodeExistsError:
                return self.set(path, data)

    def delete(self, path: str, version: int = ANY_VERSION) -> bool:
        """Delete a node; return whether it was there."""
        with self._call("delete", path):
            try:
                self._wait(self._client.delete_async(path, version))
            except kazoo_errors.NoNodeError:
                return False
        return True

    def clear(self, path: str) -> None:
        """Delete a node, or empty it where we may write it and not delete it."""
        if self.exists(path) is None:
            return
        try:
            self.delete(path)
        except AccessError:
            self.set(path, b"")

    def put_checked(
        self, path: str, data: bytes, expected: int | None, *fences: tuple[str, int]
    ) -> int:
        """Write a node in one transaction if nothing has changed since; return its new version.

        The node must be at the version `expected`; None creates it, its parent being there. The
        fences are other nodes and the versions that they must be at, such as the epoch. A
        `ConflictError` if any is at another version. A `NodeExistsError` if the node was to be
        created and is there. A `NoNodeError` if it was to be written and is not there, or if its
        parent or a fence is not there.
        """
        with self._call("write", path):
            transaction = self._client.transaction()
            for fence in fences:
                transaction.check(*fence)
            if expected is None:
                transaction.create(path, data, self._acl(path))
            else:
                transaction.set_data(path, data, expected)
            result = self._commit(transaction)[-1]
        return 0 if expected is None else int(result.version)

    def delete_checked(self, path: str, expected: int, fence: tuple[str, int]) -> None:
        """Delete a node under the same conditions as `put_checked` writes it."""
        with self._call("delete", path):
            transaction = self._client.transaction()
            transaction.check(*fence)
            transaction.delete(path, expected)
            self._commit(transaction)

    def _commit(self, transaction: Any) -> list[Any]:
        results: list[Any] = self._wait(transaction.commit_async())
        # The one that failed has the reason; the others only report that they were rolled back.
        vague = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
        failed = [result for result in results if isinstance(result, Exception)]
        for result in sorted(failed, key=lambda found: isinstance(found, vague)):
            raise result
        return results

    def _acl(self, path: str) -> list[Any]:
        return [_kazoo_acl(grant) for grant in self._ensemble.acl(path)]

    @property
    def identity(self) -> str:
        """As whom ZooKeeper knows us, for people; that nobody is known where it is open."""
        return self._ensemble.who or OPEN

    @property
    def facts(self) -> dict[str, str]:
        """Where this session is, and as whom, for a log."""
        return {"zookeeper": self.hosts, "identity": self.identity}

    @property
    def is_open(self) -> bool:
        """Whether ZooKeeper cannot know who this is."""
        return self._ensemble.is_open

    def wanted(self, path: str) -> tuple[Grant, ...]:
        """Return who gets which rights to a node that is created."""
        return tuple(self._ensemble.acl(path))

    def grants(self, path: str) -> tuple[Grant, ...]:
        """Return who may do what with a node; nobody anything if it is not there."""
        with self._call("look at who may use", path):
            try:
                acl, _ = self._wait(self._client.get_acls_async(path))
            except kazoo_errors.NoNodeError:
                return ()
        return tuple(map(_grant, acl))

    def author(self, path: str, mzxid: int) -> str | None:
        """Return who alone may have made this write of a node; None if that cannot be known.

        Whoever creates a node may name anybody in its rights, but can then not write it as them. So
        the data must have been written since, by rights that are still those of the creation.
        Those whom the table of access lets write all such nodes are trusted.
        """
        with self._call("look at who may use", path):
            try:
                acl, stat = self._wait(self._client.get_acls_async(path))
            except kazoo_errors.NoNodeError:
                return None
        if stat.mzxid != mzxid or stat.version < 1 or stat.aversion != 0:
            return None
        writers, trusted = who_may(map(_grant, acl), "w"), who_may(self._ensemble.acl(path), "w")
        found = (writers - trusted) or writers
        return found.pop() if len(found) == 1 and not self.is_open else None

    def _wait(self, result: Any) -> Any:
        return result.get(timeout=self.deadline_s)

    @contextmanager
    def _call(self, doing: str, path: str) -> Iterator[None]:
        failed = f"cannot {doing} {path} at {self.hosts}"
        if self.lost:
            raise SessionLostError(f"{failed}: the session is lost")
        if not self._client.connected:
            self._let_expire()
            raise NotConnectedError(f"{failed}: {self._denied or 'not connected'}")
        try:
            yield
        except kazoo_errors.NoNodeError as error:
            raise NoNodeError(f"{failed}: no such node") from error
        except kazoo_errors.NodeExistsError as error:
            raise NodeExistsError(f"{failed}: it is there already") from error
        except kazoo_errors.BadVersionError as error:
            raise ConflictError(f"{failed}: it has changed since") from error
        except kazoo_errors.SessionExpiredError as error:
            raise SessionLostError(f"{failed}: the session is lost") from error
        except (
            KazooTimeoutError,
            kazoo_errors.ConnectionLoss,
            kazoo_errors.ConnectionClosedError,
        ) as error:
            raise NotConnectedError(f"{failed}: no answer in {self.deadline_s:g} s") from error
        except _REFUSALS as error:
            raise self._no_access(doing, path) from error
        except kazoo_errors.KazooException as error:
            raise ZooKeeperError(f"{failed}: {error!r}") from error

    def _no_access(self, doing: str, path: str) -> AccessError:
        return AccessError(
            f"ZooKeeper at {self.hosts} does not let "
            f"{self._ensemble.who or 'a client without credentials'} {doing} {path}: "
            "docs/security.md has who needs to, and which keys name them"
        )

    def _let_expire(self) -> None:
        """Let a rebuilt ZooKeeper answer that it does not know the session, and so end it.

        A server refuses a client that has seen more than it has itself, without an answer. One that
        was rebuilt has seen nothing: kazoo would knock for ever. After the session's own timeout no
        promise is broken by forgetting how much was seen.
        """
        if time.monotonic() - self._away_since_s > self._session_timeout_s:
            self._client.last_zxid = 0

    def close(self) -> None:
        """End the session; its ephemeral nodes go at once."""
        self._client.stop()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of ZooKeeper is not good ({error.verify_message})"
    if "ALERT" in (error.reason or ""):
        return f"ZooKeeper does not take the certificate of this client ({error.reason})"
    return f"there is no TLS with ZooKeeper ({error.reason or error})"


def _watch(on_change: Callable[[], None] | None) -> Callable[[object], None] | None:
    return None if on_change is None else lambda event: on_change()


def _kazoo_acl(grant: Grant) -> Any:
    return ACL(sum(_MAY[letter] for letter in grant.may), Id(grant.scheme, grant.id))


def _grant(acl: Any) -> Grant:
    return Grant(acl.id.scheme, acl.id.id, _letters(acl.perms))


def _letters(bits: int) -> str:
    return "".join(letter for letter in "crwda" if bits & _MAY[letter])


def _stored(data: bytes, stat: Any) -> Stored:
    return Stored(data, stat.version, stat.mzxid, stat.mtime)


def _countdown(total_s: float) -> Iterator[float]:
    until_s = time.monotonic() + total_s
    while (left_s := until_s - time.monotonic()) > 0:
        yield left_s
