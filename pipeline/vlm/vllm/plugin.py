"""The entry point ``vllm.general_plugins``: the names by which vLLM finds the models that take chosen tokens.

vLLM calls it in each of its processes, whether or not such a model is asked for, so it imports nothing of theirs.
"""

from __future__ import annotations

from typing import Final

ARCHITECTURES: Final = (
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
)
"""vLLM's own, as they stand in a model's config.json under ``architectures``."""
TRIED: Final = ("0.30.0", "0.32.0")
"""Versions of vLLM that it was tried with: the oldest and the newest."""


def architecture(name: str) -> str:
    """What ``--hf-overrides`` is to ask for, instead of one of ARCHITECTURES."""
    return f"Foveate{name}"


def register() -> None:
    """Tell vLLM the models' names. Safe to call twice."""
    from vllm import ModelRegistry

    for name in ARCHITECTURES:
        ModelRegistry.register_model(architecture(name), f"foveate.pipeline.vlm.vllm.models:{architecture(name)}")
