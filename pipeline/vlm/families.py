"""Which models are supported, without importing transformers."""

from collections.abc import Mapping
from typing import Any, Final

FAMILIES: Final = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "glm4v", "glm4v_moe", "glm46v",
    "video_llama_3", "gemma4",
)  # fmt: skip
"""``model_type`` of the configurations that fit."""
TRIED: Final = ("5.18.0", "5.24.0")
"""Versions of transformers that all of them were tried with: the oldest that works, and the newest so far."""


MERGES: Final = (2, 3)
"""Patches along each side of a group that a model may make one language-model token of."""
_MERGE: Final = ("spatial_merge_size", "pooling_kernel_size", "merge_size")  # as configurations call it


def refusal(kind: object, vision: Mapping[str, Any] | None = None) -> str | None:
    """Why a model whose ``model_type`` is ``kind`` does not fit, in one line; None for one that does.

    ``vision`` is the ``vision_config`` of its configuration.
    """
    vision = vision or {}
    patch, merge = vision.get("patch_size"), next((vision[name] for name in _MERGE if name in vision), None)
    merged = f"merged {merge}x{merge}" if isinstance(merge, int) else ""
    if kind not in FAMILIES:
        known = ", ".join(filter(None, (f"patches of {patch} pixels" if isinstance(patch, int) else "", merged)))
        note = f" ({known})" if known else ""
        return f"models of type {kind!r}{note} do not fit; those of {', '.join(FAMILIES)} do"
    if isinstance(merge, int) and merge not in MERGES:
        fitting = " and ".join(f"{each}x{each}" for each in MERGES)
        return f"models of type {kind!r} with patches {merged} do not fit; merged {fitting} they do"
    return None
