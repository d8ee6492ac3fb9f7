"""Sends notices to people's receivers, each in a thread of its own that holds no cycle up.

A receiver that is slow, away or wrong keeps only its own notices waiting. Their number is bounded,
and what is left out is counted. A notice may arrive twice, where its receiver took it and did not
answer.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from email.message import EmailMessage
from email.utils import formatdate
from http.client import HTTPException
from pathlib import Path
from typing import Any

import msgspec

from controller.config import web_address
from controller.core.receivers import Receiver
from controller.core.times import utc
from controller.errors import ControllerError
from controller.storm.noticing import Notice
from kvstore.logs import log

# Notices are gathered for so long: one message for all of them.
GATHER_S = 10.0
# How long a receiver that fails is left alone at most; the pause doubles up to it.
MOST_PAUSE_S = 300.0
LIMIT_S = 5.0  # of a connection, and of each answer
COMMAND_LIMIT_S = 30.0
MOST_IN_MESSAGE = 20
MOST_WAITING = 200
OLD_S = 3600.0  # later it is no news
# How long the end of the controller waits for what is left.
CLOSE_S = 2.0
_MOST_BYTES = 8192  # of a file with a secret


class NoticeError(ControllerError):
    """A message was not sent; the text has no secret."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Goes to no other address: it would get the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Notifier:
    """Gives each receiver the notices of its kinds; `cluster` is where they come from."""

    def __init__(self, receivers: Iterable[Receiver], cluster: str) -> None:
        self._outboxes = [Outbox(one, cluster) for one in receivers]

    def add(self, notices: Sequence[Notice]) -> None:
        """Take notices over, without waiting for anybody."""
        for outbox in self._outboxes:
            outbox.add(notices)

    def close(self) -> None:
        """Try once to send what is left, for `CLOSE_S` at most."""
        until_s = time.monotonic() + CLOSE_S
        for outbox in self._outboxes:
            outbox.end()
        for outbox in self._outboxes:
            outbox.join(until_s)


class Outbox:
    """The notices that wait for one receiver, and the thread that sends them."""

    def __init__(self, receiver: Receiver, cluster: str, gather_s: float = GATHER_S) -> None:
        self._receiver = receiver
        self._cluster = cluster
        self._gather_s = gather_s
        self._lock = threading.Lock()  # held to change the next two, and never while sending
        self._waiting: list[Notice] = []
        self._left_out = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def add(self, notices: Iterable[Notice]) -> None:
        """Take over the notices of the receiver's kinds; where too many wait the oldest go."""
        wanted = [one for one in notices if one.kind in self._receiver.kinds]
        with self._lock:
            self._wait([*self._waiting, *wanted])

    def end(self) -> None:
        self._stop.set()

    def join(self, until_s: float) -> None:
        """Wait for the thread; what still waits then is lost."""
        self._thread.join(max(until_s - time.monotonic(), 0.0))

    def _wait(self, notices: list[Notice]) -> None:
        self._waiting = notices[-MOST_WAITING:]
        self._left_out += len(notices) - len(self._waiting)

    def _run(self) -> None:
        pause_s, known = self._gather_s, self._try(lambda: check(self._receiver), "")
        ends = False
        while not ends:
            ends = self._stop.wait(pause_s)
            waits = bool(self._waiting or self._left_out)
            if waits:
                known = self._try(lambda: self._send(time.time()), known)
            pause_s = min(2 * pause_s, MOST_PAUSE_S) if waits and known else self._gather_s

    def _try(self, what: Callable[[], None], known: str) -> str:
        """Return why something was not possible, else nothing; log what was not known."""
        problem = ""
        try:
            what()
        except NoticeError as error:
            problem = str(error)
        except Exception as error:  # the thread goes on; the text may have a secret
            problem = type(error).__name__
        if problem and problem != known:
            log.warning("notices_not_sent", to=self._receiver.name, reason=problem)
        elif known and not problem:
            log.info("notices_sent_again", to=self._receiver.name)
        return problem

    def _send(self, time_s: float) -> None:
        """Send the oldest notices; where that fails they wait, and are counted when they go."""
        with self._lock:
            fresh = [one for one in self._waiting if time_s - one.time_s < OLD_S]
            left_out = self._left_out + len(self._waiting) - len(fresh)
            batch, self._waiting = fresh[:MOST_IN_MESSAGE], fresh[MOST_IN_MESSAGE:]
            self._left_out = 0
        try:
            send(self._receiver, self._cluster, batch, left_out)
        except Exception:
            with self._lock:
                self._left_out += left_out
                self._wait([*batch, *self._waiting])
            raise


def check(receiver: Receiver) -> None:
    """Look whether there is what a message needs; nothing is sent. Raises `NoticeError`."""
    if receiver.mail is not None and shutil.which(receiver.mail[0]) is None:
        raise NoticeError(f"{receiver.mail[0]}: is no command that may be run here")
    for file in (receiver.webhook, receiver.slack):
        if file is not None:
            _address(file)
    if receiver.token is not None:
        _secret(receiver.token)


def send(receiver: Receiver, cluster: str, notices: Sequence[Notice], left_out: int = 0) -> None:
    """Send one message, and wait for the answer.

    `left_out` notices were lost before these. Raises `NoticeError` where the receiver has not taken
    the message.
    """
    if receiver.mail is not None:
        _run_command(receiver.mail, mail(cluster, notices, left_out))
    elif receiver.slack is not None:
        _post(receiver.slack, None, slack(cluster, notices, left_out))
    elif receiver.webhook is not None:
        body = {"cluster": cluster, "notices": notices, "left_out": left_out}
        _post(receiver.webhook, receiver.token, msgspec.json.encode(body))


def text_of(cluster: str, notices: Iterable[Notice], left_out: int) -> str:
    """Write notices for a person, one a line."""
    lines = [f"nstorm at {cluster}:"]
    lines += [f"{utc(one.time_s)} {one.topology} {one.kind}: {one.text}" for one in notices]
    lines += [f"{left_out} older notices were left out"] * bool(left_out)
    return "\n".join(lines)


def slack(cluster: str, notices: Iterable[Notice], left_out: int) -> bytes:
    """Make the message of an incoming webhook of Slack, in which no name calls anybody."""
    text = text_of(cluster, notices, left_out)
    for odd, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(odd, shown)
    return json.dumps({"text": text, "mrkdwn": False}).encode()


def mail(cluster: str, notices: Sequence[Notice], left_out: int) -> bytes:
    """Make a message that `sendmail` takes."""
    message = EmailMessage()
    kinds = ", ".join(dict.fromkeys(one.kind for one in notices)) or "notices were left out"
    message["Subject"] = f"nstorm at {cluster}: {kinds}"
    message["Date"] = formatdate()
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text_of(cluster, notices, left_out) + "\n")
    return message.as_bytes()


def _post(address_file: str, token_file: str | None, body: bytes) -> None:
    request = urllib.request.Request(_address(address_file), body, method="POST")
    request.add_header("Content-Type", "application/json")
    if token_file is not None:
        request.add_unredirected_header("Authorization", f"Bearer {_secret(token_file)}")
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=LIMIT_S):
            pass
    except urllib.error.HTTPError as error:
        error.close()
        raise NoticeError(f"{address_file}: the receiver answers {error.code}") from None
    except urllib.error.URLError as error:
        raise NoticeError(f"{address_file}: {_why(error.reason)}") from None
    except (OSError, HTTPException) as error:
        raise NoticeError(f"{address_file}: {_why(error)}") from None


def _why(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"the receiver has not answered within {LIMIT_S:g} s"
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or type(error).__name__


def _address(file: str) -> str:
    address = _secret(file)
    if web_address(address) is None:
        raise NoticeError(f"{file}: the first line must be http(s)://HOST[:PORT][/PATH]")
    return address


def _secret(file: str) -> str:
    """Read the first line of a file, each time: a new secret counts at once."""
    try:
        with Path(file).open("rb") as opened:
            line = opened.read(_MOST_BYTES).decode("ascii").strip().partition("\n")[0].strip()
    except UnicodeDecodeError:
        line = ""
    except OSError as error:
        raise NoticeError(f"{file}: cannot be read: {error.strerror}") from None
    if not line or not line.isprintable() or " " in line:
        raise NoticeError(f"{file}: the first line must be ASCII without spaces")
    return line


def _run_command(command: Sequence[str], message: bytes) -> None:
    """Give a message to a command on its standard input; one that hangs is ended."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise NoticeError(f"{command[0]}: cannot be run: {error.strerror}") from None
    with process:
        try:
            process.communicate(message, timeout=COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise NoticeError(f"{command[0]}: took more than {COMMAND_LIMIT_S:g} s") from None
    if process.returncode:
        raise NoticeError(f"{command[0]}: ended with exit code {process.returncode}")
