"""Answers of Storm's UI, with the fields that storm-webapp 2.8 writes, served to the command.

Written by hand after its sources. The topology is ours: two spouts, two bolts that do the work and
one that collects, on hosts `a` and `b`. What the spout on `a` sends has to cross to `b`.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ID = "shop-1-1700000000"


def executor(task: int, host: str, transferred: int, executed: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"[{task}-{task}]",
        "encodedId": f"%5B{task}-{task}%5D",
        "uptime": "1h 0m 0s",
        "uptimeSeconds": 3600,
        "host": host,
        "port": 6700,
        "emitted": transferred,
        "transferred": transferred,
        "executed": executed,
        "capacity": "0.000",
        "workerLogLink": f"http://{host}:8000/log",
        **more,
    }


def got(component: str, executed: int, stream: str = "default") -> dict[str, Any]:
    return {
        "component": component,
        "encodedComponentId": component,
        "stream": stream,
        "executeLatency": "0.020",
        "executed": executed,
        "acked": executed,
    }


def subscribed(component: str, grouping: str, stream: str = "default") -> dict[str, str]:
    return {
        ":component": component,
        ":stream": stream,
        ":sani-stream": f"s{stream}",
        ":grouping": grouping,
    }


def component(kind: str, executors: list[Any], inputs: list[Any] | None = None) -> dict[str, Any]:
    found = {"id": "", "componentType": kind, "executorStats": executors, "window": "600"}
    return found if inputs is None else {**found, "inputStats": inputs}


COMPONENTS = {
    "source": component("spout", [executor(1, "a", 600_000, 0), executor(2, "a", 0, 0)]),
    "work": component(
        "bolt",
        [
            executor(3, "b", 300_000, 300_000, capacity="0.300"),
            executor(4, "b", 300_000, 300_000, capacity="0.300"),
        ],
        [got("source", 600_000)],
    ),
    "sink": component(
        "bolt", [executor(5, "a", 0, 600_000, capacity="0.100")], [got("work", 600_000)]
    ),
    "__eventlogger": component("bolt", [executor(6, "b", 0, 0)], []),
    "__system": component("bolt", [], []),
}
ANSWERS: dict[str, Any] = {
    "supervisor/summary": {
        "supervisors": [
            {"id": "1", "host": "a", "totalCpu": 200.0, "slotsTotal": 4, "blacklisted": False},
            {"id": "2", "host": "b", "totalCpu": 200.0, "slotsTotal": 4, "blacklisted": False},
        ]
    },
    "topology/summary": {
        "topologies": [
            {"id": ID, "name": "shop", "status": "ACTIVE", "executorsTotal": 6},
            {"id": "old-2-1700000001", "name": "old", "status": "INACTIVE"},
        ],
        "schedulerDisplayResource": False,
    },
    f"topology/{ID}": {
        "id": ID,
        "spouts": [{"spoutId": "source", "executors": 2}],
        "bolts": [{"boltId": name} for name in COMPONENTS if name != "source"],
        "workers": [],
    },
    f"topology/{ID}/visualization": {
        "source": {":type": "spout", ":inputs": []},
        "work": {":type": "bolt", ":inputs": [subscribed("source", "shuffle")]},
        "sink": {":type": "bolt", ":inputs": [subscribed("work", "fields")]},
    },
    **{f"topology/{ID}/component/{name}": one for name, one in COMPONENTS.items()},
}


@contextmanager
def served(answers: dict[str, Any] = ANSWERS) -> Iterator[str]:
    """Serve answers by their path; gives the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0].removeprefix("/api/v1/"))
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

        def log_message(self, format: str, *what: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
