"""A small model and its processor in a folder, as transformers keeps them."""

from pathlib import Path
from typing import Any

import transformers as tf

from tests.models.processor import TEMPLATE, processor
from tests.models.vision_language import BEFORE, BEHIND, model_of

_PROCESSORS: dict[str, Any] = {"qwen2_5_vl": tf.Qwen2_5_VLProcessor, "qwen3_5": tf.Qwen3VLProcessor}


def model_folder(made: Path, family: str = "qwen2_5_vl") -> Path:
    """``made``, with a model of the family in it; its pictures' processor is Qwen2-VL's, or Gemma 4's own."""
    model_of(family).save_pretrained(made)
    if family.startswith("gemma4"):
        gemma4_processor().save_pretrained(made)
        return made
    pictures, videos = tf.Qwen2VLImageProcessor(), tf.Qwen2VLVideoProcessor()
    whole = _PROCESSORS[family](pictures, processor().tokenizer, videos, chat_template=TEMPLATE)
    whole.save_pretrained(made)
    return made


def gemma4_processor() -> Any:
    """Gemma 4's own, which puts its marks around pictures and leaves their size as it is."""
    special = {"image_token": "<image>", "boi_token": chr(32 + BEFORE), "eoi_token": chr(32 + BEHIND)}
    special |= {name: chr(272 + at) for at, name in enumerate(("audio_token", "boa_token", "eoa_token"))}
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=processor().tokenizer.backend_tokenizer, eos_token="<end>", pad_token="<pad>",
        extra_special_tokens=special, clean_up_tokenization_spaces=False,
    )  # fmt: skip
    pictures = tf.Gemma4ImageProcessor(do_resize=False)
    return tf.Gemma4Processor(
        tf.Gemma4AudioFeatureExtractor(), pictures, tokenizer, tf.Gemma4VideoProcessor(), chat_template=TEMPLATE
    )
