"""What a source has lost, as the user is told at the end."""

from __future__ import annotations

from foveate.app.console import Console
from foveate.pipeline.exits import Exit
from foveate.pipeline.frames import Damage


def conclude(damage: Damage, console: Console) -> int:
    """Warn of ``damage`` if there is any. Returns the exit code."""
    if not damage.frames and not damage.messages:
        return Exit.DONE
    first = f" ({damage.messages[0]})" if damage.messages else ""
    console.warn(f"the source is damaged: {damage.frames} pictures or packets could not be decoded{first}")
    return Exit.DAMAGED
