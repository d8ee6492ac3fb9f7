"""``nstorm page``: the cluster in a browser."""

import io
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.asking import ask, connected
from controller.cli.facts import draw_facts
from controller.cli.operate import look
from controller.cli.running import Conf
from controller.cli.status_document import StatusDocument
from controller.cli.why import facts_of
from controller.config import from_storm_yaml
from controller.errors import CommandError, ControllerError
from controller.output import Output
from controller.storm.collect import LiveCluster
from controller.storm.command_record import Command
from kvstore.errors import StoreError
from kvstore.printable import printable
from kvstore.service import ended_by_signals
from migration import ConfigError, storm_yaml
from migration.extras import pip_install

if TYPE_CHECKING:
    import uvicorn

    from controller.page.feed import Feed

# `nstorm off` waits for moves to end; a visitor waits no longer than that.
_ACT_LIMIT_S = 90.0
_MOST_PRINTED = 20_000  # characters
_COLUMNS = 110
# Connections at once; who is beyond hears that, and nobody else.
_MOST_CONNECTIONS = 100


def page(
    conf: Conf,
    *,
    listen: Annotated[
        str, typer.Option(help="Address and port. By default nobody else's machine reaches it.")
    ] = "127.0.0.1:8089",
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token that lets a visitor act.  [default: read-only]"),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Serve HTTPS with this certificate (PEM).")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The key of the certificate (PEM).")] = None,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Show the cluster on a web page, live, until Ctrl-C.

    The page reads ZooKeeper as `nstorm status` does, and is no part of a controller. Whoever
    reaches the address may read it. Verbs are done as the user who has started the page.
    """
    storm_yaml.read_as(conf, from_storm_yaml)
    host, port = _address(listen)
    token = "" if token_file is None else _token(token_file)
    if (certificate is None) != (key is None):
        raise CommandError("--certificate and --key go together")
    if certificate is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        except OSError as error:  # those of ssl are among them
            raise CommandError(f"--certificate {certificate}, --key {key}: {error}") from None
    try:
        import uvicorn  # noqa: PLC0415  # the packages may be missing

        from controller.page.app import make_app  # noqa: PLC0415
        from controller.page.feed import Feed  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is missing: type in nstorm's folder: {pip_install('page')}"
        ) from error

    @contextmanager
    def source() -> Iterator[Callable[[], StatusDocument]]:
        with connected(conf) as session:
            view = LiveCluster.of_session(session)
            yield lambda: look(session, view)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise CommandError(f"--listen: cannot listen at {listen}: {error.strerror}") from error
    names = {"localhost", host, socket.gethostname(), socket.getfqdn()}
    with listening, Feed(source, every) as feed:
        app = make_app(feed, partial(_act, conf), partial(_explain, conf), token, names)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                ssl_certfile=certificate,
                ssl_keyfile=key,
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=2,
                server_header=False,
                ws="none",
            )
        )
        scheme = "http" if certificate is None else "https"
        risk = _risk(host, token, is_https=certificate is not None)
        print(f"the page is at {scheme}://{listen}/{risk}", file=sys.stderr, flush=True)
        _serve(server, listening, feed)


def _serve(server: "uvicorn.Server", listening: socket.socket, feed: "Feed") -> None:
    """Serve until a signal; those who watch are let go first, for the server waits for them."""
    thread = threading.Thread(target=server.run, args=([listening],), name="page")
    with ended_by_signals() as stop:
        thread.start()
        while thread.is_alive() and not stop.wait(0.5):
            pass
        feed.stop()
        server.should_exit = True
        thread.join()


def _risk(host: str, token: str, *, is_https: bool) -> str:
    """Return what to do where a token would cross a network in the clear."""
    try:
        is_here = ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    if not token or is_https or is_here:
        return ""
    return "; its token crosses the network in the clear: give --certificate and --key"


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise CommandError(f"--listen: {text} is no ADDRESS:PORT such as 127.0.0.1:8089")
    return host, int(port)


def _token(file: Path) -> str:
    try:
        token = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = storm_yaml.problem(error)
        raise CommandError(f"--token-file: {file} cannot be read: {why}") from error
    if not token:
        raise CommandError(f"--token-file: {file} is empty")
    return token


def _explain(conf: Path, topology: str, what: str) -> tuple[int, str]:
    """Ask the leading controller as `nstorm explain` does, sooner than a process would."""
    try:
        with connected(conf, says=False) as session:
            wish = Command(topology, verb="explain", what=what)
            found = facts_of(ask(session, wish, Output.JSON))
    except (ConfigError, ControllerError, StoreError) as error:
        return 2, printable(str(error))
    text = io.StringIO()
    draw_facts(found, file=text, width=_COLUMNS)
    return 0, text.getvalue()[:_MOST_PRINTED].strip()


def _act(conf: Path, command: Sequence[str]) -> tuple[int, str]:
    """Run a command of nstorm in a process of its own: a fault in it ends no page."""
    verb, *rest = command
    keys = [f"-c{one}" for one in storm_yaml.given]
    line = [sys.executable, "-P", "-m", "controller.cli", verb, f"--conf={conf}", *keys, *rest]
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ACT_LIMIT_S,
            env=os.environ | {"COLUMNS": str(_COLUMNS), "NO_COLOR": "1", "TERM": "dumb"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"nstorm {verb} has not ended within {_ACT_LIMIT_S:.0f} s"
    text = printable(done.stdout.decode("utf-8", "replace")[:_MOST_PRINTED]).strip()
    # The reason is the last line; before it stands which cluster this is.
    reason = printable(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    if done.returncode == 2:
        return 2, reason.removeprefix("nstorm: ")
    if done.returncode < 0 and not text:  # what it printed before is no reason
        return 2, f"nstorm {verb} was ended by signal {-done.returncode}"
    if done.returncode and not text:  # it crashed
        return 2, f"nstorm {verb} ended with {done.returncode}: {reason or 'no message'}"
    return done.returncode, text
