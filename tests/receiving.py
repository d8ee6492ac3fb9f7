"""A real HTTP server on this machine that notes what it is sent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """What was sent, and how the server answers: with codes in turn, the last one from then on."""

    codes: list[int] = field(default_factory=lambda: [200])
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    silent: threading.Event | None = None  # no answer until it is set


@contextmanager
def receiving(*codes: int, silent: threading.Event | None = None) -> Iterator[Received]:
    """Receive requests until the end of the block."""
    received = Received([*codes] or [200], silent=silent)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.bodies.append(body)
            received.headers.append(dict(self.headers))
            received.paths.append(self.path)
            received.came.release()
            if received.silent is not None:
                received.silent.wait(60)
            code = received.codes.pop(0) if len(received.codes) > 1 else received.codes[0]
            self.send_response(code)
            if code in (301, 302, 307, 308):
                self.send_header("Location", f"{received.url}/elsewhere")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield received
        finally:
            if received.silent is not None:
                received.silent.set()
            server.shutdown()
            thread.join()
