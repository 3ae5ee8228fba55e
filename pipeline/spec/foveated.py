"""The trees that foveated allocation compares in stream memory; see pipeline/cascade/foveated.py."""

from typing import Final

HALVINGS: Final = 3
"""How often the range of sizes is halved: 2**HALVINGS + 1 trees are compared."""
