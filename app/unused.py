"""A warning for --maps and --patches that no output holds."""

from collections.abc import Sequence
from pathlib import PurePath

from foveate.pipeline.settings import Settings

_HOLD_ARRAYS = (".npz", ".safetensors")


def holds_arrays(output: str) -> bool:
    """Whether an output of this name holds arrays of any shape."""
    return PurePath(output).suffix.lower() in _HOLD_ARRAYS


def unused(settings: Settings, outputs: Sequence[str]) -> str | None:
    """The warning that no output holds --maps or --patches; None if one does."""
    asked = [flag for flag, wanted in (("--maps", settings.maps), ("--patches", settings.patches)) if wanted]
    held = any(map(holds_arrays, outputs))
    if not asked or not outputs or held:
        return None
    have = "has" if len(asked) == 1 else "have"
    return f"{' and '.join(asked)} {have} no effect on these outputs: .npz and .safetensors files hold them"
