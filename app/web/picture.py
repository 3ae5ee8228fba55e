"""A frame for the page: record, score map, picture and what the model sees, in one message, so that they match."""

import math
import struct
from typing import Any

import cv2
import numpy as np
import orjson
from numpy.typing import NDArray

from foveate.app.web.latest_frames import LatestFrames, Shown
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection.drawing import draw_tokens
from foveate.pipeline.sinks.overlay.reader import psnr
from foveate.pipeline.sinks.overlay.resize import picture_at

_LONGEST = 960  # pixels of the longer side; the page needs no more
_STILL = 480  # the same of a still among others
_QUALITY = 80  # of 100, JPEG


def message(frames: LatestFrames, shown: Shown) -> bytes:
    """Three lengths (uint32, big-endian), then the record as JSON, the picture, and what the model sees, as JPEG.

    The record holds besides ``source_width``, ``source_height`` (pixels that x and y count in), ``heat`` (the score
    map, 0..255, row by row), ``heat_width``, and ``psnr`` (dB of what the model sees; null where that is the frame).
    """
    frame, selection, seen = shown
    seen = selection.paint() if seen is None else seen
    quality = psnr(seen, frame.rgb())
    score = np.clip(selection.maps["score"], 0, 1)
    record = frames.record(selection) | {
        "source_width": frame.width,
        "source_height": frame.height,
        "heat": np.ascontiguousarray(np.rint(255 * score), np.uint8).ravel(),
        "heat_width": score.shape[1],
        "psnr": None if math.isinf(quality) else round(quality, 2),
    }
    text = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)
    size = _size(frame, _LONGEST)
    picture = _jpeg(picture_at(frame, *size))
    model = _jpeg(seen if size == seen.shape[1::-1] else cv2.resize(seen, size, interpolation=cv2.INTER_AREA))
    return struct.pack(">III", len(text), len(picture), len(model)) + text + picture + model


def still(shown: Shown) -> bytes:
    """A small picture with its tokens, as JPEG."""
    picture = picture_at(shown.frame, *_size(shown.frame, _STILL))
    draw_tokens(picture, shown.selection)
    return _jpeg(picture)


def _size(frame: FrameView, longest: int) -> tuple[int, int]:
    """Width and height of the frame, reduced where its longer side has more than ``longest`` pixels."""
    scale = min(1.0, longest / max(frame.width, frame.height))
    return max(1, round(scale * frame.width)), max(1, round(scale * frame.height))


def _jpeg(picture: NDArray[Any]) -> bytes:
    _, encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return encoded.tobytes()
