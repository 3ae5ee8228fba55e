"""A feed from a file on a server. See ``sources.container`` for those on disk."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import av
from av.error import FFmpegError, InvalidDataError
from av.packet import Packet
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import LiveSettings, SourceSettings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.beginning import ENCRYPTED
from foveate.pipeline.sources.container import CROPPING, INDEXED, ContainerFeed
from foveate.pipeline.sources.cropping import Crop
from foveate.pipeline.sources.decoding import FileFeed, reason_of
from foveate.pipeline.sources.edits import rewritten_edits
from foveate.pipeline.sources.files import DERIVED
from foveate.pipeline.sources.heif import still_of
from foveate.pipeline.sources.opening import NOT_VIDEO, WHOLE
from foveate.pipeline.sources.remote.file import RemoteFile
from foveate.pipeline.sources.remote.ftp import FtpServer
from foveate.pipeline.sources.remote.reply import Server, ServerError
from foveate.pipeline.sources.remote.web import WebServer
from foveate.pipeline.sources.schemes import scheme_of
from foveate.pipeline.sources.streams import choose_stream
from foveate.pipeline.sources.truncation import announced

_SERVERS: Final[Mapping[str, Callable[[str, LiveSettings], Server]]] = {
    "http": WebServer,
    "https": WebServer,
    "ftp": FtpServer,
}
_LENGTH_FIRST: Final = {"matroska,webm", "avi"}  # formats with their length at the beginning
_BUFFER: Final = 1 << 18  # bytes that libav asks for at once
_PLAYLIST: Final = b"#EXTM3U"
_PICTURES: Final = {b"heic", b"heix", b"mif1", b"miaf", b"avif"}  # brands of HEIF (ISO 23008-12, annex B; AVIF 1.1)
_PUSHED: Final = "multipart/x-mixed-replace"  # what cameras send: one JPEG after the other, without an end
"""Nothing in the file may lead libav to another address, nor to a file of this machine."""
_OPTIONS: Final = {"pattern_type": "none", "protocol_whitelist": "data"}


class EndlessError(SourceError):
    """The address leads to a live stream, which no file reader could end."""


class RemoteFeed(ContainerFeed):
    """One video stream of a file on a server. See ``Feed``."""

    def __init__(self, address: str, settings: SourceSettings, network: LiveSettings) -> None:
        """Connect, open the file and choose the stream. Raises SourceError and SettingsError."""
        self.name = shown(address)
        self._address, self._settings, self._network = address, settings, network
        self._part, self._reached, self._edits, self._patched = WHOLE, 0, {}, None
        self._others: list[RemoteFeed] = []  # opened on the same file since
        self._file = self._opened()
        try:
            self._check()
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _opened(self) -> RemoteFile:
        try:
            return RemoteFile(_SERVERS[scheme_of(self._address)](self._address, self._network))
        except ServerError as error:
            raise SourceError(f"{self.name}: cannot be opened: {error}") from None

    def _check(self) -> None:
        """Raise SourceError for what is no file, or none that can be read from a server."""
        file = self._file
        if file.head.startswith(_PLAYLIST):
            raise EndlessError(f"{self.name}: an HLS playlist; give it to foveate live, which also reads it to its end")
        if file.kind == _PUSHED:
            raise EndlessError(f"{self.name}: a stream without an end; give it to foveate live")
        if not file.head:
            raise SourceError(f"{self.name}: {file.failure or 'the file is empty; check the address'}")
        if file.index_is_last and file.total is None:
            raise SourceError(
                f"{self.name}: its index comes last, and the server does not tell where; download the file first"
            )
        if self._composed():
            raise SourceError(f"{self.name}: a picture that is composed of others; download the file first")

    def _composed(self) -> bool:
        """Whether it is a HEIF picture made from others, which are found by their places in the file."""
        file = self._file
        if not file.parts or file.total is None or file.head[4:8] != b"ftyp" or file.head[8:12] not in _PICTURES:
            return False
        whole = io.BufferedReader(file)
        try:
            still = still_of(whole, file.total)
        except ValueError:
            return False
        finally:
            whole.detach().seek(0)
        return still is not None and still.kind in {"grid", *DERIVED}

    def _open(self) -> None:
        options = _OPTIONS | {"framerate": f"{self._settings.rate:.6f}"}
        try:
            self._container = av.open(self._file, "r", options=options, buffer_size=_BUFFER, metadata_errors="replace")
        except InvalidDataError:
            reason = self._file.failure or "not a video, or its header is missing or cut; check the address"
            raise SourceError(f"{self.name}: {reason}") from None
        except (FFmpegError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, FFmpegError) else type(error).__name__
            raise SourceError(f"{self.name}: cannot be opened: {self._file.failure or reason}") from None
        try:
            if self._container.format.name in NOT_VIDEO:
                raise SourceError(f"{self.name}: not a video but text or a list; check the address")
            self._describe(choose_stream(self._container, self._settings.stream, self.name), self._settings)
        except BaseException:
            self._container.close()
            raise

    def _crop(self) -> Crop | None:
        """As of a file on disk, where the server sends parts."""
        if not self._file.parts or self._file.total is None or self._container.format.name not in CROPPING:
            return None
        edited: object = False
        try:
            with io.BufferedReader(self._opened()) as file:
                crop = self._crop_in(file, self._file.total)
                edited = self._container.format.name in INDEXED and rewritten_edits(file, self._file.total)
        except ValueError:  # the edits cannot be followed at all
            edited = True
        except (SourceError, OSError):  # one connection at a time, perhaps
            return None
        if edited:
            raise SourceError(f"{self.name}: its edit list is supported in files on disk only; download the file first")
        return crop

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the stream's packets in decoding order. Raises FFmpegError.

        One that is cut short where the connection was is left out: ``shortfall`` says why, and counts it.
        """
        for packet in super().packets():
            if not (packet.is_corrupt and self._file.failure):
                yield packet

    def obstacle(self, packets: int) -> str | None:
        """Why no picture came out, if it is known."""
        if self._file.failure is not None:
            return self._file.failure
        return ENCRYPTED if "enc_key_id" in self.stream.metadata else None

    def shortfall(self) -> str | None:
        """Say so if the connection was cut, or the file is shorter than its own structure announces.

        Only formats that have it in a few places are checked: for the others, the whole file would be sent again.
        """
        file = self._file
        few = self.index is not None or self._container.format.name in _LENGTH_FIRST
        if file.failure is not None or not few or not file.parts or file.total is None:
            return file.failure
        try:
            with io.BufferedReader(self._opened()) as again:
                missing = max(announced(again) - file.total, 0)
        except SourceError:
            return None
        return f"the file is cut short: {missing} bytes are missing" if missing else None

    def following(self) -> FileFeed | None:
        """None: what is behind the video is not looked for."""

    def again(self) -> ContainerFeed | None:
        """The same file once more; None if it cannot be sought, or stores no presentation times."""
        if self.times != "stream" or self.decode_order or not self._file.parts or self._file.failure is not None:
            return None
        try:
            feed = RemoteFeed(self._address, self._settings, self._network)
        except SourceError:
            return None
        self._others.append(feed)
        return feed

    def cancel(self) -> None:
        """End every wait for the server. From any thread."""
        self._file.cancel()
        for feed in self._others:
            feed.cancel()

    def close(self) -> None:
        """Release the container, the decoder and the connection."""
        self._container.close()
        self._file.close()
