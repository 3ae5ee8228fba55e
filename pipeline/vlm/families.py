"""Which models fit, without importing what runs them."""

from __future__ import annotations

from typing import Final

FAMILIES: Final = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "glm4v", "glm4v_moe", "glm46v",
    "video_llama_3", "gemma4",
)  # fmt: skip
"""``model_type`` of the configurations that fit."""
TRIED: Final = ("5.18.0", "5.24.0")
"""Versions of transformers that all of them were tried with: the oldest that works, and the newest so far."""


def refusal(kind: object) -> str | None:
    """Why a model whose ``model_type`` is ``kind`` does not fit, in one line; None for one that does."""
    return None if kind in FAMILIES else f"models of type {kind!r} do not fit; those of {', '.join(FAMILIES)} do"
