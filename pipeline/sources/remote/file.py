"""A file on a server, with the methods of a binary file on disk."""

import contextlib
import io
import threading
from typing import Any, Final

from foveate.pipeline.sources.remote.reply import Reply, Server, ServerError

_HEAD: Final = 65_536  # bytes at the beginning that are kept, to recognise formats
_NEAR: Final = 1 << 20  # bytes that are read and dropped rather than requested again
RETRY_DELAYS: Final = (0.5, 1.0, 2.0)  # seconds before each further try, until bytes come again
_RESTARTS: Final = 8  # times that a file is read from its beginning where the server sends no parts


class RemoteFile(io.RawIOBase):
    """Read by one thread. A connection that is cut is taken up again where the server sends parts of files.

    Reading never raises for what the network does: the file then ends, and ``failure`` says why.
    """

    def __init__(self, server: Server) -> None:
        """Ask for the beginning. Raises ServerError."""
        super().__init__()
        self.failure: str | None = None
        self._server = server
        self._reply: Reply | None = server.ask(0)
        self.total, self.parts, self.kind = self._reply.total, self._reply.parts, self._reply.kind
        self._version = self._reply.version
        self._place = 0  # of the next byte of the reply
        self._position = 0  # of the next byte to be read
        self._restarts = 0
        self._stopped = threading.Event()
        self._hold = threading.Lock()  # held while the reply is released
        self.head = b""
        head = bytearray()
        while len(head) < _HEAD and (piece := self._next(_HEAD - len(head))):
            head += piece
            self._position = len(head)
        self.head, self._position = bytes(head), 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether it is worth it: without parts only where the index is behind all else."""
        return self.parts or (self.index_is_last and self.total is not None)

    @property
    def index_is_last(self) -> bool:
        """Whether it is an MP4 or MOV file that has its pictures before its index."""
        return _index_is_last(self.head)

    def tell(self) -> int:
        """The position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; from the end only where ``total`` is known."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.total or 0}[whence]
        self._position = max(0, begin + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, as many as have come; b"" at the end, or after a failure."""
        if size < 0:
            return self.readall()
        kept = self.head[self._position : self._position + size]
        piece = kept or self._next(size)
        self._position += len(piece)
        return piece

    def readinto(self, buffer: Any) -> int:
        """The same into ``buffer``. Returns how many bytes came."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Let go of the server. Safe to call twice; called by the thread that reads."""
        self._drop()
        super().close()

    def cancel(self) -> None:
        """End a wait for the server, and the file with it. From any thread, any number of times."""
        self._stopped.set()
        with self._hold, contextlib.suppress(OSError, ValueError):
            if self._reply is not None:
                self._reply.abort()

    def _next(self, size: int) -> bytes:
        """What comes at the position; tries again where that can help."""
        pauses = iter(RETRY_DELAYS)
        while self._goes_on():
            try:
                piece = self._arrive().read(size)
                if piece or self.total is None:
                    self._place += len(piece)
                    return piece
                error = ServerError("the server closed the connection", passing=True)
            except ServerError as refused:
                error = refused
            except Exception as broken:  # noqa: BLE001 - of sockets, TLS and two protocols
                error = self._server.explain(broken)
            self._drop()
            pause = next(pauses, None)
            if not error.passing or not self.parts or pause is None or self._stopped.wait(pause):
                self._fail(error)
        return b""

    def _goes_on(self) -> bool:
        """Whether there may be more."""
        lost = self.failure is not None or self._stopped.is_set()
        return not lost and (self.total is None or self._position < self.total)

    def _arrive(self) -> Reply:
        """The reply, read up to the position. Raises ServerError, and what reading raises."""
        behind = self._position - self._place
        if self._reply is None or behind < 0 or (behind > _NEAR and self.parts):
            self._reply = self._asked()
        while self._place < self._position:
            skipped = self._reply.read(min(_NEAR, self._position - self._place))
            if not skipped:
                raise ServerError("the server closed the connection", passing=True)
            self._place += len(skipped)
        return self._reply

    def _asked(self) -> Reply:
        self._drop()
        self._restarts += not self.parts
        if self._restarts > _RESTARTS:
            raise ServerError("the server cannot send parts of a file, which this one needs")
        reply = self._server.ask(self._position if self.parts else 0)
        if (reply.total, reply.version) != (self.total, self._version) or reply.begin > self._position:
            reply.close()
            raise ServerError("the file has changed on the server")
        self._place = reply.begin
        return reply

    def _drop(self) -> None:
        with self._hold, contextlib.suppress(OSError):
            reply, self._reply = self._reply, None
            if reply is not None:
                reply.close()

    def _fail(self, error: ServerError) -> None:
        length = "an unknown number of" if self.total is None else str(self.total)
        self.failure = f"the connection was cut at byte {self._position} of {length}: {error}"


def _index_is_last(head: bytes) -> bool:
    """By the boxes at the beginning (ISO 14496-12, 4.2 and 8.2.1)."""
    place = 0
    while place + 16 <= len(head):
        kind, length = head[place + 4 : place + 8], int.from_bytes(head[place : place + 4], "big")
        if place == 0 and kind not in (b"ftyp", b"wide", b"free", b"mdat"):
            return False
        if kind in (b"moov", b"moof"):
            return False
        if kind == b"mdat":
            return True
        if length < 8:
            return False
        place += length
    return False
