"""The routes of the web page, and their handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from foveate.app.web.controls import apply
from foveate.app.web.guard import Guard
from foveate.app.web.latest_frames import LatestFrames
from foveate.app.web.metrics import exposition, registry
from foveate.app.web.picture import message, still
from foveate.pipeline.selection.drawing import COLOURS

_STATIC = Path(__file__).with_name("static")
_FRAME_PAUSE = 1 / 15  # seconds: a client gets at most 15 pictures a second
_RECORD_PAUSE = 0.02  # seconds between checks for new records
_ALIVE = 15.0  # seconds after which an idle event stream sends a comment, to keep the connection open
_COLOURS = [f"#{colour.tobytes().hex()}" for colour in COLOURS]  # of tokens, by LOD
_MOST = 65_536  # bytes of a request


class Site:
    """The handlers. ``ending`` becomes true when the server shall stop."""

    def __init__(self, sources: Sequence[LatestFrames], ending: Callable[[], bool]) -> None:
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

    def _source(self, number: int) -> LatestFrames:
        if not 0 <= number < len(self._sources):
            raise HTTPException(404, f"source must be 0 to {len(self._sources) - 1}, got {number}")
        return self._sources[number]

    async def _page(self, request: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    async def _health(self, request: Request) -> Response:
        """200 where every source is streaming, else 503."""
        states = [frames.status(number)["state"] for number, frames in enumerate(self._sources)]
        well = all(state == "streaming" for state in states)
        return _json({"status": "ok" if well else "degraded", "states": states}, 200 if well else 503)

    async def _metrics(self, request: Request) -> Response:
        text = await run_in_threadpool(exposition, self._registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _status(self, request: Request) -> Response:
        sources = [frames.status(number) for number, frames in enumerate(self._sources)]
        return _json({"sources": sources, "token_colours": _COLOURS})

    async def _tokens(self, request: Request) -> Response:
        """Server-sent events: one record each, from the next frame on."""
        try:
            frames = self._source(int(request.query_params.get("source", "0")))
        except ValueError:
            raise HTTPException(404, "source must be a number") from None
        return StreamingResponse(self._events(frames), media_type="text/event-stream")

    async def _events(self, frames: LatestFrames) -> AsyncIterator[bytes]:
        yield b": foveate\n\n"
        index = frames.latest.selection.index if frames.latest is not None else -1
        quiet = 0.0
        while not self._ending():
            newer = frames.newer_than(index)
            for selection in newer:
                text = orjson.dumps(frames.record(selection), option=orjson.OPT_SERIALIZE_NUMPY)
                yield b"id: %d\ndata: %s\n\n" % (selection.index, text)
                index = selection.index
            quiet = 0.0 if newer else quiet + _RECORD_PAUSE
            if quiet >= _ALIVE:
                quiet = 0.0
                yield b": alive\n\n"
            await asyncio.sleep(_RECORD_PAUSE)

    async def _frames(self, request: Request) -> Response:
        """The page's pictures, each with its record; see ``picture.message``."""
        frames = self._source(request.path_params["number"])
        return StreamingResponse(self._pictures(frames), media_type="application/octet-stream")

    async def _pictures(self, frames: LatestFrames) -> AsyncIterator[bytes]:
        index = -1
        while not self._ending():
            shown = frames.latest
            if shown is not None and shown.selection.index != index:
                index = shown.selection.index
                yield await run_in_threadpool(message, frames, shown)
            await asyncio.sleep(_FRAME_PAUSE)

    async def _stills(self, request: Request) -> Response:
        """A small picture of the latest frame with its tokens; 204 while there is none."""
        shown = self._source(request.path_params["number"]).latest
        if shown is None:
            return Response(status_code=204)
        jpeg = await run_in_threadpool(still, shown)
        return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": "no-store"})

    async def _controls(self, request: Request) -> Response:
        """Change the settings in the JSON body; 422 and one line where that is not possible."""
        frames = self._source(request.path_params["number"])
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "send JSON")  # which no page of another site may send (CORS)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST:
                raise HTTPException(413, f"send at most {_MOST} bytes")
        try:
            wishes = orjson.loads(body)
            assert frames.worker is not None, "there is no worker yet"
            await run_in_threadpool(apply, frames.worker, wishes)  # a model may have to encode the text
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 422)
        return _json(frames.status(request.path_params["number"]))


def _json(value: object, code: int = 200) -> Response:
    return Response(orjson.dumps(value), code, media_type="application/json")
