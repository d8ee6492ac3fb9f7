"""Serves a daemon's metrics to Prometheus; whatever happens here, the daemon goes on."""

from __future__ import annotations

import hmac
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kvstore.endpoint import Endpoint
from kvstore.logs import log
from kvstore.pulse import Pulse

# How long until it is tried again to listen: whoever had the port may have ended.
_LISTEN_AGAIN_S = 10.0
# One client is served at a time, in one thread, and for no longer: the end of the daemon waits.
_CLIENT_LIMIT_S = 2.0


class Families:
    """The metrics of one moment, of a table that gives each name its text and its labels."""

    def __init__(self, table: Mapping[str, tuple[str, str]]) -> None:
        self.by_name: dict[str, CounterMetricFamily | GaugeMetricFamily] = {
            name: (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(
                f"nstorm_{name}", text, labels=labels.split()
            )
            for name, (text, labels) in table.items()
        }

    def add(self, name: str, value: float, *labels: str) -> None:
        self.by_name[name].add_metric(labels, value)

    def collect(self) -> Iterable[Metric]:
        return self.by_name.values()


class _Server(WSGIServer):
    timeout = 0.5  # how long it waits for a client until it looks whether the daemon ends

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a client; a slow one is cut off."""
        cut_off = threading.Timer(_CLIENT_LIMIT_S, _cut_off, (request,))
        cut_off.daemon = True
        cut_off.start()
        try:
            super().finish_request(request, client_address)
        finally:
            cut_off.cancel()

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave a client that has gone."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _cut_off(client: socket.socket) -> None:
    with suppress(OSError):  # the client has gone since
        client.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Keep each scrape out of the log."""


def _listen(at: Endpoint, answers: Any) -> _Server:
    """Listen; an `OSError` also where the certificate cannot be used."""
    context = None
    if at.certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(at.certificate, at.key)
        except OSError as error:
            raise OSError(f"{at.certificate} and its key cannot be used: {error}") from error
    kind = _Server6 if ":" in at.host else _Server
    server = make_server(at.host, at.port, answers, kind, _Handler)
    if context is not None:
        # A client shakes hands with its first byte, and so within the limit of its time.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    return server


def _refusal(token: Path, environ: Any) -> tuple[str, str] | None:
    """Return status and reason where a request may not be answered; None where it may."""
    try:
        wanted = token.read_bytes().strip()
    except OSError as error:
        return "503 No token", f"nstorm.metrics.token cannot be read: {error.strerror}"
    if not wanted:
        return "503 No token", "nstorm.metrics.token names an empty file"
    given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
    if not hmac.compare_digest(given, b"Bearer " + wanted):
        return "401 Unauthorized", "this needs Authorization: Bearer TOKEN"
    return None


def _answers(registry: CollectorRegistry, pulse: Pulse, token: Path | None) -> Any:
    metrics = make_wsgi_app(registry)

    def answer(environ: Any, start_response: Any) -> Any:
        if token is not None and (refusal := _refusal(token, environ)) is not None:
            status, reason = refusal
            start_response(status, [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")])
            return [f"{reason}\n".encode()]
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return metrics(environ, start_response)
        known = {"/healthz": pulse.hangs, "/readyz": pulse.idles}
        wrong = known.get(path, "there are /metrics, /healthz and /readyz")
        status = "200 OK" if not wrong else "503 Not well" if path in known else "404 Not Found"
        start_response(status, [("Content-Type", "text/plain")])
        return [f"{wrong or 'ok'}\n".encode()]

    return answer


@contextmanager
def exposed(at: Endpoint, role: str, told: Collector, pulse: Pulse) -> Iterator[None]:
    """Serve metrics at an endpoint while the daemon works.

    Where it cannot listen there, that is logged once, and tried again and again.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Gauge("nstorm_build_info", "Always 1.", ["role", "version"], registry=registry)
    build.labels(role, version("nstorm")).set(1)
    for name, text, now in (
        ("ready", "1 while the daemon does its work.", lambda: pulse.idles is None),
        (
            "zookeeper_last_seen_timestamp_seconds",
            "When ZooKeeper last answered; 0 if it never did.",
            lambda: pulse.worked_at_s,
        ),
    ):
        Gauge(f"nstorm_{name}", text, registry=registry).set_function(now)
    registry.register(told)
    listen = partial(_listen, at, _answers(registry, pulse, at.token))
    server, stopped = None, threading.Event()
    try:
        server = listen()
    except OSError as error:
        log.warning(
            "metrics_not_served", host=at.host, port=at.port, reason=f"cannot listen: {error}"
        )
    thread = threading.Thread(
        target=_serve, args=(server, listen, stopped), name="metrics", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _serve(server: _Server | None, listen: Callable[[], _Server], stopped: threading.Event) -> None:
    """Serve until stopped, as soon as it can listen."""
    while server is None:
        if stopped.wait(_LISTEN_AGAIN_S):
            return
        with suppress(OSError):
            server = listen()
            log.info("metrics_served")
    with server:
        while not stopped.is_set():
            server.handle_request()
