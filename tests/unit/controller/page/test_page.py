"""The page: what anybody may read, what only the token may do, and what nobody gets."""

import asyncio
import gzip
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from controller.cli import page
from controller.cli.status_document import StatusDocument, as_json
from controller.errors import CommandError
from controller.page.app import MOST_BODY_BYTES, MOST_VISITORS, make_app
from controller.page.feed import MOST_POINTS, Feed
from kvstore.errors import NotConnectedError
from migration import ConfigError, storm_yaml

DOCUMENT = msgspec.json.decode(
    (Path(__file__).parents[3] / "golden/status/measured.json").read_bytes(), type=StatusDocument
)
TOKEN = {"Authorization": "Bearer a-token"}
JSON = {"Content-Type": "application/json"}
VERBS = ("approve", "reject", "pause", "resume", "off", "on")
WISHES: dict[str, dict[str, str]] = {
    "approve": {"proposal": "p-1a2b3c"},
    "reject": {"proposal": "p-1a2b3c"},
    "pause": {"topology": "wc"},
    "resume": {"topology": "wc"},
}


@contextmanager
def nothing() -> Iterator[Callable[[], StatusDocument]]:
    yield lambda: DOCUMENT


def filled() -> Feed:
    feed = Feed(nothing, 60.0)
    feed.take(DOCUMENT)
    return feed


class Page(TestClient):
    def __init__(self, token: str = "a-token", feed: Feed | None = None) -> None:
        self.commands: list[Sequence[str]] = []
        self.answer = (0, "done")
        names = {"localhost", "page.example"}
        app = make_app(feed or filled(), self.act, self.explain, token, names)
        super().__init__(app, base_url="http://localhost:8089", raise_server_exceptions=False)

    def act(self, command: Sequence[str]) -> tuple[int, str]:
        self.commands.append(command)
        return self.answer

    def explain(self, topology: str, what: str) -> tuple[int, str]:
        return self.act(("explain", topology, what))


def test_questions_of_visitors_hold_up_no_command() -> None:
    page, asked, ended = Page(), threading.Semaphore(0), threading.Event()

    def explain(topology: str, what: str) -> tuple[int, str]:
        asked.release()
        ended.wait(60.0)
        return 0, topology + what

    app = make_app(filled(), page.act, explain, "a-token", {"localhost"})
    client = TestClient(app, base_url="http://localhost:8089")
    with ThreadPoolExecutor() as visitors:
        answers = [visitors.submit(client.get, "/api/explain") for _ in range(2)]
        for _ in answers:
            asked.acquire()
        try:
            assert client.get("/api/explain").status_code == 429
            off = client.post("/api/off", headers=TOKEN, json={})
        finally:
            ended.set()
    assert [one.result().status_code for one in answers] == [200, 200]
    assert (off.status_code, page.commands) == (
        200,
        [("off", "--reason=switched off on the page")],
    )


def test_the_limit_of_visitors_holds_for_those_who_come_at_once() -> None:
    feed = filled()
    app = make_app(feed, Page().act, Page().explain, "", {"localhost"})
    scope = {"type": "http", "method": "GET", "path": "/api/events", "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost")], "http_version": "1.1"}

    async def visit(codes: list[int], answered: asyncio.Semaphore) -> None:
        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                codes.append(message["status"])
                answered.release()

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(60.0)
            return {"type": "http.disconnect"}

        await app(dict(scope), receive, send)

    async def crowd(size: int) -> list[int]:
        codes: list[int] = []
        answered = asyncio.Semaphore(0)
        visits = [asyncio.create_task(visit(codes, answered)) for _ in range(size)]
        for _ in visits:
            await answered.acquire()
        for one in visits:
            one.cancel()
        await asyncio.gather(*visits, return_exceptions=True)
        return codes

    for _ in range(2):  # whoever leaves gives his place to another
        codes = asyncio.run(crowd(MOST_VISITORS + 8))
        assert Counter(codes) == {200: MOST_VISITORS, 503: 8}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_in_a_visitors_browser_get_nothing(site: str) -> None:
    page = Page()
    asked = {"Sec-Fetch-Site": site}
    assert page.get("/api/explain", headers=asked).status_code == 403
    assert page.post("/api/off", headers=TOKEN | asked, json={}).status_code == 403
    assert page.get("/", headers=asked).status_code == 200, "a link leads to the page"
    assert page.commands == []
    own = {"Sec-Fetch-Site": "same-origin"}
    assert page.get("/api/explain", headers=own).status_code == 200


def test_the_status_is_what_the_command_prints() -> None:
    answer = Page().get("/api/status")
    assert answer.status_code == 200
    assert answer.json() == json.loads(as_json(DOCUMENT))
    page = Page()
    (point,) = page.get("/api/timeline").json()
    assert page.get(f"/api/timeline?since={point['time_s']}").json() == []
    for since_s in (point["time_s"] - 1, point["time_s"] + 100):  # by a clock that was set back
        assert page.get(f"/api/timeline?since={since_s}").json() == [point]
    assert point["topologies"].keys() == {one.topology for one in DOCUMENT.topologies}


def test_a_status_is_packed_once_for_all_visitors(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[bytes] = []
    usual = gzip.compress

    def compress(text: bytes, level: int) -> bytes:
        packed.append(text)
        return usual(text, level)

    monkeypatch.setattr(gzip, "compress", compress)
    feed = filled()
    for _ in range(3):
        for path in ("/api/status", "/api/timeline"):
            asked = Page(feed=feed).get(path)
            plain = Page(feed=feed).get(path, headers={"Accept-Encoding": "identity"})
            assert (asked.headers["Content-Encoding"], plain.headers.get("Content-Encoding")) == (
                "gzip",
                None,
            )
            assert asked.json() == plain.json()
    assert len(packed) == 2, "the status and the time line"


def test_what_has_not_been_read_is_not_there() -> None:
    answer = Page(feed=Feed(nothing, 60.0)).get("/api/status")
    assert (answer.status_code, answer.json()["detail"]) == (503, "it has not been read yet")


def test_a_time_line_without_a_point_is_empty() -> None:
    for accepted in ("gzip", "identity"):
        answer = Page(feed=Feed(nothing, 60.0)).get(
            "/api/timeline", headers={"Accept-Encoding": accepted}
        )
        assert answer.json() == []


def test_a_cluster_that_is_away_leaves_what_was_read_and_the_reason() -> None:
    feed = filled()
    feed.fail("ZooKeeper has not answered")
    assert feed.shown.problem == "ZooKeeper has not answered"
    assert Page(feed=feed).get("/api/status").status_code == 200


def test_it_reads_again_after_an_error_and_keeps_an_hour() -> None:
    odd: list[StatusDocument | Exception] = [NotConnectedError("away"), ValueError("odd")]
    looks = iter(odd)

    @contextmanager
    def source() -> Iterator[Callable[[], StatusDocument]]:
        def look() -> StatusDocument:
            found = next(looks, DOCUMENT)
            if isinstance(found, Exception):
                raise found
            return found

        yield look

    with Feed(source, 0.01) as feed:
        while not feed.shown.status.plain:
            time.sleep(0.01)
    assert feed.shown.number >= 3 and not feed.shown.problem
    for _ in range(MOST_POINTS + 10):
        feed.take(DOCUMENT)
    assert len(json.loads(feed.shown.points.plain)) == 1, "a point each 5 s"


@pytest.mark.parametrize("verb", VERBS)
def test_nobody_acts_without_the_token(verb: str) -> None:
    wish = WISHES.get(verb, {})
    for headers in ({}, {"Authorization": "Bearer another"}, {"Authorization": "a-token"}):
        denied = Page()
        answer = denied.post(f"/api/{verb}", json=wish, headers=headers)
        assert (answer.status_code, denied.commands) == (401, [])
    read_only = Page(token="")
    for headers in ({}, {"Authorization": "Bearer "}):
        assert read_only.post(f"/api/{verb}", json=wish, headers=headers).status_code == 403
    allowed = Page()
    answer = allowed.post(f"/api/{verb}", json=wish, headers=TOKEN)
    assert (answer.status_code, answer.json()) == (200, {"printed": "done"})
    assert [command[0] for command in allowed.commands] == [verb]


def test_a_refusal_has_its_reason() -> None:
    refusing = Page()
    refusing.answer = (2, "no proposal p-1 waits")
    answer = refusing.post("/api/approve", json={"proposal": "p-1"}, headers=TOKEN)
    assert (answer.status_code, answer.json()["detail"]) == (409, "no proposal p-1 waits")


def test_text_of_visitors_is_never_an_option() -> None:
    page = Page()
    page.post("/api/pause", json={"topology": "--conf=x", "reason": "--for 1s"}, headers=TOKEN)
    page.get("/api/explain", params={"what": "--journal=/etc", "topology": "-x"})
    assert page.commands == [
        ("pause", "--topology=--conf=x", "--reason=--for 1s"),
        ("explain", "-x", "--journal=/etc"),
    ]
    odd = page.post("/api/approve", json={"proposal": "--conf=x"}, headers=TOKEN)
    assert odd.status_code == 422 and "proposal" in odd.json()["detail"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize("wish", [{}, {"topology": ""}])
def test_without_a_topology_nothing_is_paused_or_resumed(verb: str, wish: dict[str, str]) -> None:
    page = Page()
    answer = page.post(f"/api/{verb}", json=wish, headers=TOKEN)
    assert (answer.status_code, page.commands) == (422, [])
    assert "topology" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost:1", 200),
        ("page.example", 200),
        ("PAGE.example.", 200),
        ("127.0.0.1:8089", 200),
        ("[::1]:8089", 200),
        ("attacker.example", 421),
        ("localhost.attacker.example", 421),
        ("", 421),
    ],
)
def test_it_answers_under_its_own_names_only(host: str, code: int) -> None:
    assert Page().get("/api/status", headers={"Host": host}).status_code == code


def test_large_requests_and_those_of_unknown_length_are_not_read() -> None:
    page = Page()
    large = page.post("/api/off", content=b" " * (MOST_BODY_BYTES + 1), headers=TOKEN)
    assert large.status_code == 413
    assert page.post("/api/off", content=iter([b"{}"]), headers=TOKEN).status_code == 411
    assert page.commands == []


def test_browsers_load_nothing_from_elsewhere() -> None:
    for path in ("/", "/page.js", "/page.css", "/api/status", "/nowhere"):
        answer = Page().get(path)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    static = files("controller.page") / "static"
    texts = [file.read_text() for file in static.iterdir()]
    assert sum(map(len, texts)) < 60_000
    for text in texts:
        assert "innerHTML" not in text and "://" not in text.replace(
            "http://www.w3.org/2000/svg", ""
        )


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css"])
def test_no_visitor_chooses_the_file(path: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    usual = Page().get(path)
    for name in ("name", "file", "path", "kind", "self"):
        answer = Page().get(path, params={name: str(secret)})
        assert (answer.status_code, answer.content) == (200, usual.content)
        assert answer.headers["Content-Type"] == usual.headers["Content-Type"]
    for traversal in ("/../feed.py", "/%2e%2e/feed.py", "/static/page.js"):
        assert Page().get(traversal).status_code == 404


def test_the_openapi_document_has_what_may_be_asked() -> None:
    document = Page().get("/openapi.json").json()
    assert {path.removeprefix("/api/") for path in document["paths"]} == {
        *VERBS,
        "status",
        "timeline",
        "events",
        "explain",
    }
    status = document["paths"]["/api/status"]["get"]["responses"]["200"]
    schema = status["content"]["application/json"]["schema"]
    assert "topologies" in schema["$defs"]["StatusDocument"]["properties"]


ANY_TEXT = st.text(max_size=600) | st.sampled_from(
    ["\x00", "\x1b[2J", "\u202e", "é" * 300, "-" * 9]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(
    st.sampled_from(["proposal", "topology", "reason", "other"]), ANY_JSON | ANY_TEXT, max_size=3
)


HOSTILE = Page()
SCHEMA = HOSTILE.get("/openapi.json").json()
# One that never ends is not asked here.
ENDPOINTS = sorted(
    (path, method)
    for path, methods in SCHEMA["paths"].items()
    for method in methods
    if path != "/api/events"
)


def is_text_of(schema: dict[str, Any], value: object) -> bool:
    """Whether the schema of a text allows this value."""
    assert schema["type"] == "string" and schema.keys() <= {
        *("type", "minLength", "maxLength", "pattern", "default", "title")
    }
    pattern = re.sub(r"\$$", r"\\Z", schema["pattern"])  # `$` of Python allows a line feed
    return (
        isinstance(value, str)
        and schema.get("minLength", 0) <= len(value)
        and len(value) <= schema.get("maxLength", len(value))
        and re.search(pattern, value) is not None
    )


def is_body_of(schema: dict[str, Any], body: Any) -> bool:
    """Whether the schema of a request allows this body."""
    schema = SCHEMA["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    fields = schema["properties"]
    assert schema["type"] == "object" and schema["additionalProperties"] is False
    return (
        isinstance(body, dict)
        and {*schema.get("required", ())} <= body.keys() <= fields.keys()
        and all(is_text_of(fields[name], value) for name, value in body.items())
    )


# Each example is two requests; explaining a failure would take minutes.
@settings(max_examples=150, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    at=st.sampled_from(ENDPOINTS),
    body=FIELDS | ANY_JSON,
    raw=st.binary(),
    asked=st.fixed_dictionaries({}, optional={"what": ANY_TEXT, "topology": ANY_TEXT}),
)
def test_each_endpoint_answers_as_its_schema_says(
    at: tuple[str, str], body: Any, raw: bytes, asked: dict[str, str]
) -> None:
    path, method = at
    document = SCHEMA["paths"][path][method]
    HOSTILE.commands.clear()
    if method == "get":
        of = {one["name"]: one["schema"] for one in document.get("parameters", ())}
        asked = {name: text for name, text in asked.items() if name in of}
        fits = all(is_text_of(of[name], text) for name, text in asked.items())
        answers = [(fits, HOSTILE.get(path, params=asked))]
    else:
        wanted = document.get("requestBody")
        schema = wanted and wanted["content"]["application/json"]["schema"]
        answers = []
        for content in (json.dumps(body).encode(), raw):
            try:
                fits = not wanted or is_body_of(schema, json.loads(content))
            except ValueError:
                fits = False
            answers.append((fits, HOSTILE.post(path, content=content, headers=JSON | TOKEN)))
    for fits, answer in answers:
        assert answer.status_code in ((200,) if fits else (400, 422)), answer.text
        answers_so = document["responses"][str(answer.status_code)]["content"]["application/json"]
        if not fits:
            assert answers_so["schema"]["$ref"].endswith("/Refusal")
            assert answer.json().keys() == {"detail"} and isinstance(answer.json()["detail"], str)
    for _, *arguments in HOSTILE.commands:
        assert not any(ord(letter) < 32 for one in arguments for letter in one)


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    conf = tmp_path / "storm.yaml"
    with pytest.raises(ConfigError, match=r"storm\.yaml"):
        page.page(conf)
    conf.write_text("storm.zookeeper.servers: [zk1]\n")
    for listen in ("8089", "127.0.0.1:", "127.0.0.1:99999", ":80"):
        with pytest.raises(CommandError, match="no ADDRESS:PORT"):
            page.page(conf, listen=listen)
    with pytest.raises(CommandError, match="cannot be read"):
        page.page(conf, token_file=tmp_path / "none")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(CommandError, match="is empty"):
        page.page(conf, token_file=tmp_path / "empty")
    with pytest.raises(CommandError, match="go together"):
        page.page(conf, certificate=tmp_path / "c.pem")
    with pytest.raises(CommandError, match=r"--certificate .*none\.pem, --key"):
        page.page(conf, certificate=tmp_path / "none.pem", key=tmp_path / "none.key")
    (tmp_path / "no.pem").write_text("no certificate")
    with pytest.raises(CommandError, match=r"--certificate .*no\.pem"):
        page.page(conf, certificate=tmp_path / "no.pem", key=tmp_path / "no.pem")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CommandError, match=f"cannot listen at {at}: Address already in use"):
            page.page(conf, listen=at)


@pytest.mark.parametrize(
    ("host", "token", "is_https", "warns"),
    [
        ("127.0.0.1", "t", False, False),
        ("::1", "t", False, False),
        ("localhost", "t", False, False),
        ("10.0.0.5", "t", False, True),
        ("node-1.example", "t", False, True),
        ("10.0.0.5", "t", True, False),
        ("10.0.0.5", "", False, False),
    ],
)
def test_a_token_that_crosses_a_network_in_the_clear_is_named(
    host: str, token: str, is_https: bool, warns: bool
) -> None:
    assert (page._risk(host, token, is_https=is_https) != "") is warns


def test_a_command_runs_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = page._act(tmp_path / "none.yaml", ("resume", "--topology=wc"))
    assert code == 2 and "none.yaml" in said and "\n" not in said
    # What the page was given over its file goes along.
    (tmp_path / "storm.yaml").touch()
    monkeypatch.setattr(storm_yaml, "given", ("nstorm.mod=auto",))
    code, said = page._act(tmp_path / "storm.yaml", ("resume", "--topology=wc"))
    assert code == 2 and "storm.yaml with -c: nstorm.mod: unknown key" in said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise MemoryError('too much')", "nstorm off ended with 1: MemoryError: too much"),
        (
            "import os, sys; print('cluster zk1:2181/storm', file=sys.stderr, flush=True);"
            "os.kill(os.getpid(), 9)",
            "nstorm off was ended by signal 9",
        ),
    ],
)
def test_a_command_that_does_not_get_to_its_end_is_no_success(
    code: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = subprocess.run
    line = [sys.executable, "-c", code]
    monkeypatch.setattr(subprocess, "run", lambda _, **how: run(line, **how))
    assert page._act(Path("storm.yaml"), ("off", "--reason=a fault")) == (2, said)


def test_without_its_packages_it_names_them(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("storm.zookeeper.servers: [zk1]\n")
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from pathlib import Path; from controller.cli.page import page; "
        f"page(Path('{tmp_path}/x'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "uvicorn is missing: type in nstorm's folder: pip install" in done.stderr
