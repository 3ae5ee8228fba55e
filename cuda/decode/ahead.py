"""Files decoded ahead by PyNvVideoCodec, in a thread of its own.

Reading and decoding packet by packet lets go of the interpreter's lock several times a picture: where several files are
decoded at once, waiting for it again takes far longer than the work. Here one call brings several pictures. But this
decoder tells neither which pictures are not to be shown, nor how long one stands, nor why it stopped; so it is given
only files whose index vouches for them.
"""

import importlib
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from foveate.cuda.decode.annex_b import SEQUENCE, AnnexB
from foveate.cuda.decode.formats import FormatWatch
from foveate.cuda.decode.geometry import GeometryWatch
from foveate.cuda.decode.nvdec import decoder_errors
from foveate.cuda.decode.pictures import Picture, PictureCopies
from foveate.cuda.driver.device import Device
from foveate.cuda.driver.graph import no_capture
from foveate.pipeline.sources.container import ContainerFeed

_AHEAD: Final = 8  # pictures that are decoded before they are asked for
_LOOKED_AT: Final = 64  # packets whose heads are looked at before they are decoded: more than a decoder holds
_AT_A_TIME: Final = 4
_HEAD: Final = 4096  # bytes of a packet in which what is told of its picture is looked for


def vouched(feed: ContainerFeed) -> bool:
    """Whether the file is whole and shows every picture once, and its keyframes alone tell of other formats."""
    index = feed.index
    if (
        feed.decoder.name not in SEQUENCE
        or index is None
        or any(entry.is_discard for entry in index)
        or feed.shortfall()
    ):
        return False
    return _same_stream(feed)


def _same_stream(feed: ContainerFeed) -> bool:
    """Whether PyNvVideoCodec would decode the same stream, and tell its times in the same unit."""
    library = importlib.import_module("PyNvVideoCodec")
    refusals: tuple[type[Exception], ...] = (UnicodeError, *decoder_errors())
    try:
        demuxer = library.CreateDemuxer(filename=_name(feed))
        base = demuxer.GetTimebaseNum(), demuxer.GetTimebaseDen()
        return demuxer.GetVideoStreamId() == feed.stream.index and base == feed.time_base.as_integer_ratio()
    except refusals:
        return False


def _name(feed: ContainerFeed) -> str:
    return str(feed.path.absolute())


class KeyframeHeads:
    """Looks at the beginnings of a file's keyframes, for what ends decoding ahead. Closed by whoever makes it."""

    def __init__(self, feed: ContainerFeed) -> None:
        """``feed`` is vouched for. Raises OSError and ValueError."""
        codec = feed.decoder.name
        self._file = feed.path.open("rb")
        self._watch, self._formats = GeometryWatch(codec), FormatWatch(codec)
        self._form = AnnexB(codec, feed.decoder.extradata or b"")
        places = enumerate(feed.index or ())
        self._places = deque((number, entry.pos, entry.size) for number, entry in places if entry.is_keyframe)

    def ends(self, received: int) -> bool:
        """Whether decoding ahead has to end behind so many pictures.

        One of the packets soon to be decoded asks for what the hardware does not do, or for another decoder:
        PyNvVideoCodec ends the process at a packet of another format.
        """
        while self._places and self._places[0][0] < received + _LOOKED_AT:
            _, position, size = self._places.popleft()
            self._file.seek(position)
            head = self._form.beginning(self._file.read(min(size, _HEAD)))
            if self._watch.problem(head) is not None or self._formats.changed(head):
                return True
        return False

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Ahead:
    """Decodes one file that is vouched for. Made, used and closed by the thread that owns the GPU."""

    def __init__(self, device: Device, feed: ContainerFeed) -> None:
        """Raises PyNvVideoCodec's errors."""
        library = importlib.import_module("PyNvVideoCodec")
        self._copies = PictureCopies(device)
        self._ready: deque[Picture] = deque()
        with no_capture():
            self._decoder: Any = library.ThreadedDecoder(
                _name(feed),
                _AHEAD,
                gpu_id=device.index,
                cuda_context=device.context_handle,
                cuda_stream=self._copies.stream,
                use_device_memory=True,
                decoder_cache_size=1,
            )

    def __iter__(self) -> Iterator[Picture]:
        return self

    def __next__(self) -> Picture:
        """The pictures in the order of their times; where the file is damaged, it may end before the last one."""
        if not self._ready:
            try:
                frames = self._decoder.get_batch_frames(_AT_A_TIME)
            except decoder_errors():
                raise StopIteration from None
            self._ready.extend(map(self._copies.own, frames))  # the next call lets the frames be overwritten
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def close(self) -> None:
        """Release the decoder; pictures that are still held stay valid."""
        self._ready.clear()
        self._copies.finish()
        with no_capture():
            self._decoder.end()
            self._decoder = None
        self._copies.close()
