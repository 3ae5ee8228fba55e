"""The steps in which a live source is opened, as lines of the log at level debug: they tell where the time went."""

import logging
from typing import Final

CONNECTED: Final = "connected"
KEYFRAME: Final = "first keyframe"
DECODER: Final = "decoder ready"
PICTURE: Final = "first picture"
ENGINE_BEGUN: Final = "engine begun"
ENGINE: Final = "engine ready"
TOKENS: Final = "first tokens"
STEPS: Final = (CONNECTED, KEYFRAME, DECODER, PICTURE, ENGINE_BEGUN, ENGINE, TOKENS)
"""In their order. Sources that the CPU decodes or processes pass over those of decoder and engine; those of a
connection come again when it is made again, those of the engine when the size of the pictures changes."""

LOG: Final = logging.getLogger("foveate.opening")


def reached(name: str, step: str) -> None:
    """Note that the source called ``name`` is so far. From any thread."""
    LOG.debug("%s: %s", name, step)
