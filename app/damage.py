"""The report of damaged pictures at the end of a run."""

from __future__ import annotations

from foveate.app.console import Console
from foveate.pipeline.exits import Exit
from foveate.pipeline.frames import Damage


def conclude(damage: Damage, console: Console) -> int:
    """Warn of ``damage`` if there is any. Returns the exit code."""
    if not has_damage(damage):
        return Exit.DONE
    console.warn(told_damage(damage))
    return Exit.DAMAGED


def has_damage(damage: Damage) -> bool:
    """Whether anything was lost."""
    return bool(damage.frames or damage.messages)


def told_damage(damage: Damage) -> str:
    """What was lost, in one line."""
    first = f" ({damage.messages[0]})" if damage.messages else ""
    return f"the source is damaged: {damage.frames} pictures or packets could not be decoded{first}"
