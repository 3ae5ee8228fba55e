"""The routes of the web page, and their handlers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from foveate.app.web.guard import Guard
from foveate.app.web.metrics import exposition, registry
from foveate.app.web.shown import ShownSource
from foveate.pipeline.selection.drawing import COLOURS

_STATIC = Path(__file__).with_name("static")
_FRAME_PAUSE = 1 / 15  # seconds: a client gets at most 15 pictures a second
_RECORD_PAUSE = 0.02  # seconds between checks for new records
_ALIVE = 15.0  # seconds after which an idle event stream sends a comment, to keep the connection open
_COLOURS = [f"#{colour.tobytes().hex()}" for colour in COLOURS]  # of tokens, by LOD
_MOST = 65_536  # bytes of a request


class Site:
    """The handlers. ``ending`` becomes true when the server shall stop."""

    def __init__(self, sources: Sequence[ShownSource], ending: Callable[[], bool]) -> None:
        self._sources = sources
        self._ending = ending
        self._registry = registry(sources)

    def application(self, token: str | None, hosts: frozenset[str]) -> Starlette:
        """The whole site, behind the guard."""
        routes = [
            Route("/", self._page),
            Route("/healthz", self._health),
            Route("/metrics", self._metrics),
            Route("/status", self._status),
            Route("/tokens", self._tokens),
            Route("/frames/{number:int}", self._frames),
            Route("/stills/{number:int}", self._stills),
            Route("/controls/{number:int}", self._controls, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ]
        return Starlette(routes=routes, middleware=[Middleware(Guard, token=token, hosts=hosts)])

    def _source(self, number: int) -> ShownSource:
        if not 0 <= number < len(self._sources):
            raise HTTPException(404, f"source must be 0 to {len(self._sources) - 1}, got {number}")
        return self._sources[number]

    async def _page(self, request: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    async def _health(self, request: Request) -> Response:
        """200 where every source is streaming, else 503."""
        states = [source.status()["state"] for source in self._sources]
        well = all(state == "streaming" for state in states)
        return _json({"status": "ok" if well else "degraded", "states": states}, 200 if well else 503)

    async def _metrics(self, request: Request) -> Response:
        text = await run_in_threadpool(exposition, self._registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _status(self, request: Request) -> Response:
        return _json({"sources": [source.status() for source in self._sources], "token_colours": _COLOURS})

    async def _tokens(self, request: Request) -> Response:
        """Server-sent events: one record each, from the next frame on."""
        try:
            source = self._source(int(request.query_params.get("source", "0")))
        except ValueError:
            raise HTTPException(404, "source must be a number") from None
        return StreamingResponse(self._events(source), media_type="text/event-stream")

    async def _events(self, source: ShownSource) -> AsyncIterator[bytes]:
        yield b": foveate\n\n"
        latest, _ = await run_in_threadpool(source.records, None)
        index, quiet = -1 if latest is None else latest, 0.0
        while not self._ending():
            latest, newer = await run_in_threadpool(source.records, index)
            for number, text in newer:
                yield b"id: %d\ndata: %s\n\n" % (number, text)
                index = number
            if latest is not None and latest < index:  # another process reads the source now, from its first frame on
                index = -1
            quiet = 0.0 if newer else quiet + _RECORD_PAUSE
            if quiet >= _ALIVE:
                quiet = 0.0
                yield b": alive\n\n"
            await asyncio.sleep(_RECORD_PAUSE)

    async def _frames(self, request: Request) -> Response:
        """The page's pictures, each with its record; see ``picture.message``."""
        source = self._source(request.path_params["number"])
        return StreamingResponse(self._pictures(source), media_type="application/octet-stream")

    async def _pictures(self, source: ShownSource) -> AsyncIterator[bytes]:
        index = -1
        while not self._ending():
            made = await run_in_threadpool(source.message, index)
            if made is not None:
                index, message = made
                yield message
            await asyncio.sleep(_FRAME_PAUSE)

    async def _stills(self, request: Request) -> Response:
        """A small picture of the latest frame with its tokens; 204 while there is none."""
        jpeg = await run_in_threadpool(self._source(request.path_params["number"]).still)
        if jpeg is None:
            return Response(status_code=204)
        return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": "no-store"})

    async def _controls(self, request: Request) -> Response:
        """Change the settings in the JSON body; 422 and one line where that is not possible."""
        source = self._source(request.path_params["number"])
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "send JSON")  # which no page of another site may send (CORS)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        try:
            await run_in_threadpool(source.apply, orjson.loads(body))  # a model may have to encode the text
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 422)
        return _json(source.status())


async def _body(request: Request) -> bytes:
    """Raises HTTPException where it is too long, ClientDisconnect where it does not end as announced."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST:
            raise HTTPException(413, f"send at most {_MOST} bytes")
    return body


def _json(value: object, code: int = 200) -> Response:
    return Response(orjson.dumps(value), code, media_type="application/json")
