"""Serves a daemon's metrics to Prometheus; whatever happens here, the daemon goes on."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib.metadata import version

import structlog
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from kvstore.pulse import Pulse

# One client is served at a time, in one thread; one that is silent for so long loses its turn.
_CLIENT_LIMIT_S = 2.0

log = structlog.get_logger()


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


class _Server(socketserver.TCPServer):
    allow_reuse_address = True

    def __init__(self, at: tuple[str, int], registry: CollectorRegistry, pulse: Pulse) -> None:
        self.registry, self.pulse = registry, pulse
        # Passive: "::" and "0.0.0.0" are all addresses.
        found = socket.getaddrinfo(*at, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        super().__init__(at, _Handler)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Give the status, the type and the body of an answer."""
        if path == "/metrics":
            return 200, CONTENT_TYPE_LATEST, generate_latest(self.registry)
        if path not in ("/healthz", "/readyz"):
            return 404, "text/plain", b"there are /metrics, /healthz and /readyz\n"
        wrong = self.pulse.hangs if path == "/healthz" else self.pulse.idles
        return 503 if wrong else 200, "text/plain", f"{wrong or 'ok'}\n".encode()

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave a client that has gone."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_LIMIT_S
    server: _Server

    def do_GET(self) -> None:
        try:
            status, kind, body = self.server.answer(self.path.partition("?")[0])
        except Exception as error:  # a metric must not end what serves the others
            log.exception("metrics_failed")
            status, kind, body = 500, "text/plain", f"{error!r}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep each scrape out of the log."""


@contextmanager
def exposed(at: tuple[str, int], role: str, told: Collector, pulse: Pulse) -> Iterator[None]:
    """Serve metrics at a host and port while the daemon works.

    Where it cannot listen there, that is logged and the daemon works without.
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
    try:
        server = _Server(at, registry, pulse)
    except OSError as error:
        log.warning("metrics_not_served", host=at[0], port=at[1], reason=f"cannot listen: {error}")
        yield
        return
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
