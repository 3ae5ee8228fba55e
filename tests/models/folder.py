"""A small model and its processor in a folder, as transformers keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers as tf

from tests.models.processor import TEMPLATE, processor
from tests.models.vision_language import model_of

_PROCESSORS: dict[str, Any] = {"qwen2_5_vl": tf.Qwen2_5_VLProcessor, "qwen3_5": tf.Qwen3VLProcessor}


def model_folder(made: Path, family: str = "qwen2_5_vl") -> Path:
    """``made``, with a model of the family in it; its pictures' processor is Qwen2-VL's."""
    model_of(family).save_pretrained(made)
    pictures, videos = tf.Qwen2VLImageProcessor(), tf.Qwen2VLVideoProcessor()
    whole = _PROCESSORS[family](pictures, processor().tokenizer, videos, chat_template=TEMPLATE)
    whole.save_pretrained(made)
    return made
