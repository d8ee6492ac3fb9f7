"""The page's web server: what may be read, and with a token what may be done."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from threading import BoundedSemaphore
from typing import Annotated, Any

import msgspec
from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.cli.status_document import StatusDocument
from controller.page.feed import Feed, Packed, Point

_STATIC = Path(__file__).with_name("static")
_FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_LOOK_S = 0.5
# A visitor who hears nothing for so long takes the connection for dead.
_ALIVE_S = 15.0
MOST_VISITORS = 32
MOST_BODY_BYTES = 10_000
# Commands that run at once, and questions: visitors without the token hold up none that has it.
_AT_ONCE = 2
# Nothing comes from elsewhere, no other page shows this one, and no text becomes a script.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

# Runs a command of nstorm, and gives its exit code and what it has printed.
Act = Callable[[Sequence[str]], tuple[int, str]]
# Asks the leader about a topology and what of it, and gives the same.
Explain = Callable[[str, str], tuple[int, str]]
Done = Callable[[Callable[[], tuple[int, str]]], "Printed"]


def _text(most: int, least: int = 0) -> Any:
    """Make the type of a text without control characters."""
    pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"
    return StringConstraints(min_length=least, max_length=most, pattern=pattern)


Name = Annotated[str, _text(512)]
Named = Annotated[str, _text(512, 1)]
Reason = Annotated[str, _text(200)]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class _Wish(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OfProposal(_Wish):
    """A proposal, as the status names it."""

    proposal: Id


class OfTopology(_Wish):
    """A topology by its name. Without one the commands would pause, or resume, all of them."""

    topology: Named


class Pausing(OfTopology):
    """What pauses, and why."""

    reason: Reason = "paused on the page"


class SwitchingOff(_Wish):
    """Why all hooks are switched off."""

    reason: Reason = "switched off on the page"


class Refusal(BaseModel):
    """Why something was not done, in one sentence."""

    detail: str


class Printed(BaseModel):
    """What a command has printed."""

    printed: str


def _schema_of(kind: Any) -> dict[int | str, dict[str, Any]]:
    """Describe an answer that msgspec writes."""
    (found,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    content = {"application/json": {"schema": found | {"$defs": parts}}}
    return {200: {"content": content}, 503: {"description": "Nothing has been read yet."}}


_REFUSED: dict[int | str, dict[str, Any]] = {
    409: {"description": "Refused, with the reason.", "model": Refusal},
    422: {"description": "What was sent does not fit.", "model": Refusal},
    429: {"description": "Too many commands run at once.", "model": Refusal},
}
_OF_VERBS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body is no text.", "model": Refusal},
    401: {"description": "Without the token.", "model": Refusal},
    403: {"description": "The page is read-only.", "model": Refusal},
}


def make_app(feed: Feed, act: Act, explain: Explain, token: str, hosts: Collection[str]) -> Any:
    """Make the server.

    Parameters
    ----------
    token : str
        What lets a visitor act; empty: nobody may.
    hosts : collection of str
        Under which names the page may be asked for; addresses are always right. So a foreign name
        that leads here, as in DNS rebinding, gets nothing.
    """
    api = FastAPI(
        title="nstorm",
        version=version("nstorm"),
        description="The status of a Storm cluster with nstorm, and the verbs that need a token.",
        docs_url=None,
        redoc_url=None,
    )

    @api.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return JSONResponse({"detail": f"{where}: {first['msg']}"}, 422)

    asked, ordered = _done_by(BoundedSemaphore(_AT_ONCE)), _done_by(BoundedSemaphore(_AT_ONCE))
    _add_files(api)
    _add_readings(api, feed, explain, asked)
    _add_verbs(api, token, lambda *command: ordered(partial(act, command)))
    return _Guard(GZipMiddleware(api, minimum_size=1000), hosts)


def _done_by(free: BoundedSemaphore) -> Done:
    def done(work: Callable[[], tuple[int, str]]) -> Printed:
        if not free.acquire(blocking=False):
            raise HTTPException(429, f"{_AT_ONCE} commands run already: try again soon")
        try:
            code, text = work()
        finally:
            free.release()
        if code == 2:
            raise HTTPException(409, text)
        return Printed(printed=text)

    return done


def _add_files(api: FastAPI) -> None:
    for path, name in _FILES.items():
        api.add_api_route(path, _sender(_STATIC / name), include_in_schema=False)


def _sender(file: Path) -> Callable[[], FileResponse]:
    """Make what sends a file. It has no parameter, for a visitor could set that."""

    def send() -> FileResponse:
        return FileResponse(file, media_type=_TYPES[file.suffix])

    return send


def _sent(document: Packed, request: Request) -> Response:
    """Send a document as it was packed for all, which the middleware would do for each visitor."""
    kind = "application/json"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(document.plain, media_type=kind)
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(document.gzip, media_type=kind, headers=headers)


def _add_readings(api: FastAPI, feed: Feed, ask: Explain, done: Done) -> None:
    places = BoundedSemaphore(MOST_VISITORS)

    @api.get("/api/status", responses=_schema_of(StatusDocument))
    def status(request: Request) -> Response:
        """Give what `nstorm status -o json` prints."""
        shown = feed.shown
        if not shown.status.plain:
            raise HTTPException(503, shown.problem)
        return _sent(shown.status, request)

    @api.get("/api/timeline", responses=_schema_of(list[Point]))
    def timeline(
        request: Request, since: Annotated[float, Query(ge=0, allow_inf_nan=False)] = 0.0
    ) -> Response:
        """Give the last hour, the oldest point first, or what of it is later than a Unix time."""
        return _sent(feed.after(since), request)

    @api.get(
        "/api/events",
        responses={200: {"content": {"text/event-stream": {}}}, 503: {"description": "Full."}},
    )
    def events() -> Response:
        """Send an event each time that there is another status."""
        return _Watched(places, _events(feed), media_type="text/event-stream")

    @api.get("/api/explain", responses=_REFUSED)
    def explain(
        what: Annotated[Name, Query()] = "", topology: Annotated[Name, Query()] = ""
    ) -> Printed:
        """Give what `nstorm explain` prints about an executor, a worker or a host."""
        return done(partial(ask, topology, what))


def _add_verbs(api: FastAPI, token: str, done: Callable[..., Printed]) -> None:
    def permitted(authorization: Annotated[str, Header(max_length=1000)] = "") -> None:
        if not token:
            raise HTTPException(403, "this page is read-only: start it with --token-file")
        given = authorization.encode("utf-8", "replace")
        if not hmac.compare_digest(given, b"Bearer " + token.encode()):
            wanted = {"WWW-Authenticate": "Bearer"}
            raise HTTPException(401, "this needs Authorization: Bearer TOKEN", wanted)

    acts: dict[str, Any] = {"dependencies": [Depends(permitted)], "responses": _REFUSED | _OF_VERBS}

    @api.post("/api/approve", **acts)
    def approve(wish: OfProposal) -> Printed:
        """Begin exactly the moves of a proposal."""
        return done("approve", "--", wish.proposal)

    @api.post("/api/reject", **acts)
    def reject(wish: OfProposal) -> Printed:
        """Leave the executors of a proposal where they are for a day."""
        return done("reject", "--", wish.proposal)

    @api.post("/api/pause", **acts)
    def pause(wish: Pausing) -> Printed:
        """Stop automatic moves."""
        return done("pause", f"--topology={wish.topology}", f"--reason={wish.reason}")

    @api.post("/api/resume", **acts)
    def resume(wish: OfTopology) -> Printed:
        """Allow automatic moves again."""
        return done("resume", f"--topology={wish.topology}")

    @api.post("/api/off", **acts)
    def off(wish: SwitchingOff) -> Printed:
        """Switch off all hooks."""
        return done("off", f"--reason={wish.reason}")

    @api.post("/api/on", **acts)
    def on() -> Printed:
        """Switch the hooks on again."""
        return done("on")


class _Watched(StreamingResponse):
    """Goes on for long, so it takes a place before it starts; without one it is a refusal."""

    def __init__(self, places: BoundedSemaphore, *content: Any, **of: Any) -> None:
        super().__init__(*content, **of)
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer to one visitor."""
        if not self._places.acquire(blocking=False):
            refusal = JSONResponse({"detail": f"{MOST_VISITORS} visitors watch already"}, 503)
            await refusal(scope, receive, send)
            return
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._places.release()


async def _events(feed: Feed) -> AsyncIterator[bytes]:
    """Name the number of each new status; a comment now and then shows that the page is there."""
    last, still_s = -1, 0.0
    while not feed.is_stopped:
        shown = feed.shown
        if shown.number != last:
            last, still_s = shown.number, 0.0
            news = {"number": last, "read_s": shown.read_s, "problem": shown.problem}
            yield f"data: {json.dumps(news)}\n\n".encode()
        elif still_s >= _ALIVE_S:
            still_s = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(_LOOK_S)
        still_s += _LOOK_S


class _Guard:
    """Refuses foreign names and large bodies, and limits what browsers do with answers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), text.encode()) for name, text in _HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_ours(host):
            return JSONResponse({"detail": "this page has another name"}, 421)
        # A browser names who asks; each question costs the leading controller a command.
        asker = headers.get(b"sec-fetch-site", b"none")
        if scope["path"].startswith("/api/") and asker not in (b"none", b"same-origin"):
            return JSONResponse({"detail": "this is for the page itself, not for other sites"}, 403)
        if scope["method"] not in ("GET", "HEAD"):
            size = headers.get(b"content-length", b"")
            if b"transfer-encoding" in headers or not size.isdigit():
                return JSONResponse({"detail": "the length of the request is missing"}, 411)
            if len(size) > 9 or int(size) > MOST_BODY_BYTES:
                return JSONResponse({"detail": f"at most {MOST_BODY_BYTES} bytes"}, 413)
        return None

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]
        try:
            ip_address(name)
        except ValueError:
            return name.lower().rstrip(".") in self._hosts
        return True
