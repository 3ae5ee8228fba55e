"""Requests to a vLLM server with the plugin: each frame's patches and positions. Needs only NumPy."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import Selection

SIZE: Final = "foveate_size"  # int32[2]: width and height of a frame, in pixels
PLACES: Final = "foveate_places"  # int32[K, 3]: x and y of each token's centre, in pixels, and its LOD
PATCHES: Final = "foveate_patches"  # uint8[K, 16, 16, 3]: R'G'B'
STAMP: Final = "<{:.1f} seconds>"


def image_data(selections: Sequence[Selection]) -> dict[str, list[NDArray[Any]]]:
    """What ``multi_modal_data["image"]`` of ``LLM.generate`` takes: one image for each of ``selections``.

    They need patches, and tokens: raises ValueError for one without.
    """
    if not selections:
        raise ValueError("at least one selection is needed")
    frames = [_arrays(selection) for selection in selections]
    return {name: [frame[name] for frame in frames] for name in (SIZE, PLACES, PATCHES)}


def message(selections: Sequence[Selection], text: str, stamp: str = STAMP) -> dict[str, Any]:
    """A user's message, for ``LLM.chat`` and for ``/v1/chat/completions``: frames with their times, then ``text``."""
    return {"role": "user", "content": content_of(selections, text, stamp)}


def content_of(selections: Sequence[Selection], text: str, stamp: str = STAMP) -> list[dict[str, Any]]:
    """The content of such a message. ``stamp`` is a format of a frame's time in seconds; "" for none.

    Frames without a token are left out, as with stream memory where nothing has changed. Raises ValueError for
    Selections without patches.
    """
    content: list[dict[str, Any]] = []
    for selection in selections:
        if not len(selection):
            continue
        if stamp:
            content.append({"type": "text", "text": stamp.format(selection.time)})
        coded = {name: _coded(array) for name, array in _arrays(selection).items()}
        content.append({"type": "image_embeds", "image_embeds": coded})
    return [*content, {"type": "text", "text": text}]


def _arrays(selection: Selection) -> dict[str, NDArray[Any]]:
    if selection.patches is None:
        raise ValueError("the selections must hold patches; open the stream with patches=True")
    if not len(selection):
        raise ValueError(f"frame {selection.index} has no token to show")
    return {
        SIZE: np.array([selection.width, selection.height], np.int32),
        PLACES: np.stack([selection.x, selection.y, selection.lod.astype(np.int32)], 1),
        PATCHES: selection.patches,
    }


def _coded(array: NDArray[Any]) -> str:
    """A file of NumPy's format in base64, which vLLM takes beside torch's."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()
