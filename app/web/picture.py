"""A frame for the page: the record, the score map and the picture, in one message, so that they belong together."""

from __future__ import annotations

import struct

import cv2
import numpy as np
import orjson

from foveate.app.web.gallery import Exhibit, Shown
from foveate.pipeline.sinks.overlay_scale import picture_at

_LONGEST = 960  # pixels of the longer side; the page needs no more
_QUALITY = 80  # of 100, JPEG


def message(exhibit: Exhibit, shown: Shown) -> bytes:
    """Two lengths (uint32, big-endian), then the record as JSON, then the picture as JPEG.

    The record holds besides ``source_width``, ``source_height`` (pixels that x and y count in), ``heat`` (the score
    map, 0..255, row by row) and ``heat_width``.
    """
    frame, selection = shown
    score = np.clip(selection.maps["score"], 0, 1)
    record = exhibit.record(selection) | {
        "source_width": frame.width,
        "source_height": frame.height,
        "heat": np.ascontiguousarray(np.rint(255 * score), np.uint8).ravel(),
        "heat_width": score.shape[1],
    }
    text = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)
    scale = min(1.0, _LONGEST / max(frame.width, frame.height))
    size = max(1, round(scale * frame.width)), max(1, round(scale * frame.height))
    picture = picture_at(frame, *size)
    _, encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return struct.pack(">II", len(text), len(encoded)) + text + encoded.tobytes()
