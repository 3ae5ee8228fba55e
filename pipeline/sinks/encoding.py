"""A vision model's embeddings of the tokens, written beside them."""

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.base import Sink


class Encoder(Protocol):
    """A vision model that makes embeddings of tokens."""

    name: str  # for the header
    merge: int  # of each merge * merge tokens it makes one embedding; what ``allocation.merge`` must be

    def encode(self, selection: Selection) -> NDArray[np.float32]:
        """Embeddings of a Selection with patches, in the order of its tokens: float32[K // merge**2, D]."""


class Once:
    """Encodes each Selection once, however many outputs ask for it one after the other."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.merge = encoder.name, encoder.merge
        self._encoder = encoder
        self._latest: tuple[Selection, NDArray[np.float32]] | None = None

    def encode(self, selection: Selection) -> NDArray[np.float32]:
        """See Encoder."""
        if self._latest is None or self._latest[0] is not selection:
            self._latest = selection, self._encoder.encode(selection)
        return self._latest[1]


class EncodingSink:
    """Hands Selections with their embeddings to another Sink; its header names the encoder as ``config.encode``."""

    needs_patches = True

    def __init__(self, sink: Sink, encoder: Encoder) -> None:
        self._sink = sink
        self._encoder = encoder
        self.needs_heat = sink.needs_heat
        self.needs_query = sink.needs_query

    def open(self, header: Header) -> None:
        """See Sink."""
        self._sink.open(replace(header, config={**header.config, "encode": self._encoder.name}))

    def write(self, frame: FrameView, selection: Selection) -> None:
        """See Sink. Raises what the encoder raises as well."""
        self._sink.write(frame, replace(selection, embeddings=self._encoder.encode(selection)))

    def close(self) -> None:
        """See Sink."""
        self._sink.close()
