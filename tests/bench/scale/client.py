"""A session with ZooKeeper that costs next to nothing, so that one process can hold a thousand.

The requests and answers are kazoo's; only the threads are not there.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from kazoo.exceptions import (  # type: ignore[import-untyped]
    EXCEPTIONS,
    ConnectionClosedError,
    NoNodeError,
)
from kazoo.protocol.serialization import (  # type: ignore[import-untyped]
    Close,
    Connect,
    Exists,
    GetData,
    Ping,
    SetData,
    Watch,
)

# Longer than a real one's 10 s, so that a busy machine does not end sessions.
SESSION_TIMEOUT_MS = 40_000
_PING_AFTER_S = SESSION_TIMEOUT_MS / 3000
_WATCH_XID, _PING_XID = -1, -2
_HEADER = struct.Struct("!iqi")
_INT = struct.Struct("!i")


@dataclass(slots=True)
class Count:
    """What went over the wires of all sessions that share it.

    Attributes
    ----------
    sent_bytes, received_bytes : int
        Of the payload of TCP.
    """

    sent_bytes: int = 0
    received_bytes: int = 0


class Wire(asyncio.Protocol):
    """One session.

    Parameters
    ----------
    on_event : callable
        Gets the path of each watch that fires.
    """

    def __init__(self, root: str, on_event: Callable[[str], None], count: Count) -> None:
        self._root, self._on_event, self._count = root, on_event, count
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._buffer = bytearray()
        self._waiting: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._sent_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def ready(self) -> None:
        """Wait for the session."""
        await self._connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a session."""
        self._transport = transport
        self._write(Connect(0, 0, SESSION_TIMEOUT_MS, 0, b"\0" * 16, False).serialize())

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what still waits."""
        if self._timer is not None:
            self._timer.cancel()
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(ConnectionClosedError("connection lost"))
        self._waiting.clear()
        if not self._lost.done():
            self._lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Take apart what has come."""
        self._count.received_bytes += len(data)
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 4:
            (size,) = _INT.unpack_from(self._buffer, at)
            if len(self._buffer) - at - 4 < size:
                break
            self._frame(bytes(self._buffer[at + 4 : at + 4 + size]))
            at += 4 + size
        del self._buffer[:at]

    def _frame(self, frame: bytes) -> None:
        if not self._connected.done():
            self._connected.set_result(None)
            self._keep_alive()
            return
        xid, _, error = _HEADER.unpack_from(frame)
        if xid == _WATCH_XID:
            watch, _ = Watch.deserialize(frame, _HEADER.size)
            self._on_event(watch.path.removeprefix(self._root))
        elif xid != _PING_XID:
            request, future = self._waiting.popleft()
            if future.done():
                return
            if error == NoNodeError.code and isinstance(request, (Exists, GetData)):
                future.set_result(None)
            elif error:
                future.set_exception(EXCEPTIONS[error]())
            elif isinstance(request, Close):
                future.set_result(None)
            else:
                future.set_result(request.deserialize(frame, _HEADER.size))

    def _keep_alive(self) -> None:
        if self._loop.time() - self._sent_s >= _PING_AFTER_S:
            self._write(_INT.pack(_PING_XID) + _INT.pack(Ping.type))
        self._timer = self._loop.call_later(_PING_AFTER_S, self._keep_alive)

    def _write(self, message: bytes | bytearray) -> None:
        self._sent_s = self._loop.time()
        self._count.sent_bytes += 4 + len(message)
        self._transport.write(_INT.pack(len(message)) + message)

    def _ask(self, request: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((request, future))
        self._write(_INT.pack(1) + _INT.pack(request.type) + request.serialize())
        return future

    async def get(self, path: str, watch: bool = False) -> tuple[bytes, Any] | None:
        """Read a node: its data and its stat; None if it is not there."""
        found = await self._ask(GetData(self._root + path, 1 if watch else None))
        return cast(tuple[bytes, Any] | None, found)

    async def exists(self, path: str, watch: bool = False) -> Any:
        """Read a node's stat; None if it is not there."""
        return await self._ask(Exists(self._root + path, 1 if watch else None))

    def set(self, path: str, data: bytes) -> asyncio.Future[Any]:
        """Write a node that is there."""
        return self._ask(SetData(self._root + path, data, -1))

    async def close(self) -> None:
        """End the session."""
        with suppress(ConnectionClosedError):
            await self._ask(Close())
        self._transport.close()
        await self._lost


async def connected(
    address: tuple[str, int],
    root: str,
    on_event: Callable[[str], None],
    count: Count,
    *,
    host: str = "127.0.0.1",
) -> Wire:
    """Open a session.

    Parameters
    ----------
    host : str
        Whose address it comes from: ZooKeeper takes 60 sessions of one host.
    """
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(
        lambda: Wire(root, on_event, count), *address, local_addr=(host, 0)
    )
    await wire.ready()
    return wire
