"""Recordings: what the Rerun viewer shows beside each other on one timeline; needs rerun-sdk."""

import contextlib
import io
import os
from array import array
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.errors import SinkError, SourceError
from foveate.pipeline.extras import install_command
from foveate.pipeline.frames import FrameView
from foveate.pipeline.live.target import is_live
from foveate.pipeline.selection import PATCH, Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, claim, part_of, place_of
from foveate.pipeline.sinks.format import Format
from foveate.pipeline.sinks.header import budget_of, header_json
from foveate.pipeline.sinks.overlay.heat import HeatScale, colour_ramp
from foveate.pipeline.sinks.recording import blueprint as names
from foveate.pipeline.sinks.recording.encoded_video import EncodedVideo
from foveate.pipeline.sinks.recording.source_video import SourceVideo, source_video

_FRAMES: Final = 256  # written at once: a column of them is compressed together
_PATIENCE: Final = 2.0  # seconds in which at least something must be written
_LEVELS: Final = 64  # of the score map: more would be bytes that nobody sees
_RAMP: Final = colour_ramp()[0, :: 256 // _LEVELS]  # their colours
_END: Final = b"FOOT"  # the last bytes of a recording, before four of a version
_END_VERSION: Final = 4


class RecordingSink:
    """Writes a recording of one stream. It appears when it is closed; kill -9 and a full disk leave none.

    The video of an MP4 or Matroska file goes in as its packets are, when the recording is closed. Other pictures are
    encoded, one packet at each frame.
    """

    needs_patches = False
    needs_heat = True
    needs_query = False

    def __init__(self, path: str) -> None:
        self._path = place_of(path)
        self._part = part_of(self._path)
        self._recording: Any = None

    def open(self, header: Header) -> None:
        """Create the file. Raises SinkError, also where rerun-sdk is missing."""
        if find_spec("rerun") is None:
            raise SinkError(f"cannot write {self._path}: recordings need rerun-sdk: {install_command('rerun')}")
        claim(self._path, header)
        self._source: SourceVideo | None = source_video(header)
        self._encoded, self._scale = EncodedVideo(), HeatScale()
        self._size, self._start = (header.width, header.height), header.start
        self._indices, self._times = array("q"), array("d")  # of the frames so far
        os.environ.setdefault("RUST_LOG", "off")  # for rerun, whose threads would print what is raised here
        with self._removed_on_error():
            self._begin(header)

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Add one frame. Raises SinkError."""
        assert self._recording is not None, "the sink is not open"
        with self._removed_on_error():
            self._add(frame, selection)
            if len(self._indices) % _FRAMES == 0:
                self._flush()

    def close(self) -> None:
        """Add the video of a file, and give the recording its name. Raises SinkError."""
        if self._recording is None:
            return
        with self._removed_on_error():
            if self._source is not None and len(self._times):
                self._add_video(self._source)
            self._flush()
            self._recording.disconnect()
            self._check_end()
            self._part.replace(self._path)
        self._recording = None

    @property
    def written(self) -> int:
        """Bytes so far, without those of the last frames."""
        return self._part.stat().st_size

    def takes(self, selection: Selection) -> bool:
        """Whether its frame has the same size as the others: a video has one."""
        return (selection.width, selection.height) == self._size

    def _begin(self, header: Header) -> None:
        import rerun

        never = rerun.ChunkBatcherConfig(flush_tick=3600.0, flush_num_bytes=1 << 62, flush_num_rows=1 << 62)
        self._recording = rerun.RecordingStream("foveate", send_properties=False, batcher_config=never)
        self._recording.set_log_time_enabled(False)
        self._recording.set_log_tick_enabled(False)
        self._recording.save(self._part)
        self._recording.send_blueprint(names.blueprint(budget_of(header)[0], live=is_live(header.source)))
        self._recording.send_recording_name(Path(header.source).name)
        text = rerun.TextDocument(header_json(header).decode(), media_type="application/json")
        self._recording.log(names.HEADER, text, static=True)
        self._recording.log("/", names.classes(), static=True)
        if self._source is None:
            self._recording.log(names.VIDEO, rerun.VideoStream(codec=rerun.VideoCodec.H264), static=True)

    def _add(self, frame: FrameView, selection: Selection) -> None:
        import rerun

        recording = self._recording
        recording.set_time(names.FRAME, sequence=selection.index)
        recording.set_time(names.TIME, duration=selection.time)
        if "captured" in selection.extras:
            recording.set_time(names.CAPTURED, timestamp=selection.extras["captured"])
        centres, halves = boxes_of(selection)
        recording.log(
            names.TOKENS,
            rerun.Boxes2D.from_fields(
                centers=centres,
                half_sizes=halves,
                class_ids=selection.lod.astype(np.uint16),
            ),
        )
        recording.log(names.SCORE, self._score(selection))
        for place, value in _figures(selection):
            recording.log(place, rerun.Scalars(value))
        if self._source is None:
            sample, keyframe = self._encoded.packet(frame)
            recording.log(names.VIDEO, rerun.VideoStream.from_fields(sample=sample, is_keyframe=keyframe))
        self._indices.append(selection.index)
        self._times.append(selection.time)

    def _score(self, selection: Selection) -> Any:
        """The score map as an image of one pixel for each cell, in the overlay's colours."""
        import rerun
        from PIL import Image  # which rerun-sdk needs as well

        score = selection.maps["score"]
        self._scale.follow(score)
        levels = np.clip(np.rint(score * np.float32((_LEVELS - 1) / self._scale.top)), 0, _LEVELS - 1)
        image, file = Image.fromarray(levels.astype(np.uint8), "P"), io.BytesIO()
        image.putpalette(_RAMP.tobytes())
        image.save(file, "png")
        return rerun.EncodedImage(contents=file.getvalue(), media_type="image/png")

    def _add_video(self, source: SourceVideo) -> None:
        """The packets of the video, and which of its pictures each frame shows."""
        import rerun

        seconds = np.frombuffer(self._times) + self._start
        copied = source.copied(float(seconds[0]), float(seconds[-1]))
        asset = rerun.AssetVideo(contents=copied.mp4, media_type="video/mp4")
        self._recording.log(names.VIDEO, asset, static=True)
        shown = asset.read_frame_timestamps_nanos()[_nearest(copied.times, seconds)]
        self._recording.send_columns(
            names.VIDEO,
            indexes=[
                rerun.TimeColumn(names.FRAME, sequence=np.frombuffer(self._indices, np.int64)),
                rerun.TimeColumn(names.TIME, duration=np.frombuffer(self._times)),
            ],
            columns=rerun.VideoFrameReference.columns_nanos(shown),
        )

    def _flush(self) -> None:
        """Wait until all is written. Raises RuntimeError where the file no longer grows, as on a full disk.

        Without a time limit, rerun would then wait for ever.
        """
        size = None
        while True:
            try:
                self._recording.flush(timeout_sec=_PATIENCE)
                return
            except RuntimeError:
                if self.written == size:
                    raise
                size = self.written

    def _check_end(self) -> None:
        """Raise OSError where the file lacks its end, of which rerun does not say whether it could be written."""
        with self._part.open("rb") as file:
            file.seek(-len(_END) - _END_VERSION, os.SEEK_END)
            if file.read(len(_END)) != _END:
                raise OSError("its end is missing")

    @contextlib.contextmanager
    def _removed_on_error(self) -> Iterator[None]:
        """Give up the file where it cannot be written, or the video cannot be read again."""
        try:
            yield
        except (OSError, RuntimeError, SourceError) as error:
            self._recording = None
            cause = error if isinstance(error, SourceError) else _cause(self._part, error)
            self._part.unlink(missing_ok=True)
            if isinstance(cause, SourceError):
                raise SinkError(f"cannot write {self._path}: {cause}") from error
            raise cannot_write(self._path, cause) from cause


def _cause(part: Path, error: Exception) -> OSError:
    """The error that the operating system gives for writing the file, which rerun's own may not name."""
    if isinstance(error, OSError) and error.errno:
        return error
    try:
        with part.open("ab", buffering=0) as file:
            file.write(bytes(1 << 16))
    except OSError as found:
        return found
    return OSError(f"{error}; was the disk full for a while?")


def boxes_of(selection: Selection) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Centres and half sizes of the tokens' squares, clipped to the picture: float32[K, 2] each, (x, y) in pixels."""
    half = PATCH / 2 * 2.0 ** selection.lod.astype(np.float64)
    edge = np.array([selection.width, selection.height])
    centre = np.stack([selection.x, selection.y], -1)
    least, most = np.clip(centre - half[:, None], 0, edge), np.clip(centre + half[:, None], 0, edge)
    return ((least + most) / 2).astype(np.float32), ((most - least) / 2).astype(np.float32)


def _figures(selection: Selection) -> Iterator[tuple[str, float]]:
    yield names.COUNT, len(selection)
    yield names.SHARES["changed"], selection.changed
    yield names.SHARES["recomputed"], selection.recomputed
    if "latency" in selection.extras:
        yield names.LATENCY, 1000 * selection.extras["latency"]


def _nearest(times: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.intp]:
    """The index of the time nearest to each wanted one; ``times`` ascend."""
    after = np.clip(np.searchsorted(times, wanted), 1, max(len(times) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    return np.where(wanted - times[before] <= times[after] - wanted, before, after)


FORMAT: Final = Format(RecordingSink, size=1 << 28)  # bytes: the viewer holds a recording in memory
