"""The report of damaged pictures at the end of a run."""

from foveate.app.console import Console
from foveate.pipeline.exits import Exit
from foveate.pipeline.frames import Damage


def conclude(damage: Damage, console: Console) -> int:
    """Warn of ``damage`` if there is any. Returns the exit code."""
    line = told_damage(damage)
    if line is None:
        return Exit.DONE
    console.warn(line)
    return Exit.DAMAGED


def told_damage(damage: Damage) -> str | None:
    """What was lost, in one line; None where nothing was."""
    return f"the source is damaged: {damage.summary}" if damage.summary else None
