"""Tokens, and how a reader enlarges them."""

from typing import Final

PATCH: Final = 16
"""Samples along a token, whatever its LOD."""
CUBIC: Final = -0.75
"""The a of cubic convolution (Keys, 1981), as OpenCV and PyTorch have it."""
NEVER_SEEN: Final = 255
"""In place of an LOD, where the reader never saw a cell: coarser than any."""
