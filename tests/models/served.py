"""Small models of random weights in folders that vLLM serves: their tokenizers hold the marks around pictures."""

from pathlib import Path
from typing import Any

import torch
import transformers as tf
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from tests.models.vision_language import draw_weights

MARKS = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>", "<|im_end|>", "<|pad|>")
IMAGE, VIDEO, START, END, STOP, PAD = range(240, 246)  # their token ids
MEAN, STD = (0.5, 0.4, 0.3), (0.25, 0.3, 0.35)
TEMPLATE = (
    "{% for message in messages %}{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}"
    "{% else %}<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}<|im_end|>{% endfor %}"
)
_TEXT = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 256, "max_position_embeddings": 2048,
    "rope_parameters": {
        "rope_type": "default", "mrope_section": [6, 5, 5], "mrope_interleaved": True, "rope_theta": 10000.0,
    },
    "pad_token_id": PAD, "bos_token_id": None, "eos_token_id": STOP, "tie_word_embeddings": False,
}  # fmt: skip
_VISION = {
    "depth": 2, "num_heads": 2, "spatial_merge_size": 2, "temporal_patch_size": 2, "hidden_size": 64,
    "intermediate_size": 96, "out_hidden_size": 64,
}  # fmt: skip
_QWEN3 = _VISION | {"patch_size": 16, "num_position_embeddings": 49}
_EXPERTS = {
    "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "decoder_sparse_step": 1,
    "norm_topk_prob": True,
}  # fmt: skip
_LINEAR = {
    "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "linear_num_value_heads": 2,
    "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "rope_parameters": _TEXT["rope_parameters"] | {"mrope_section": [2, 1, 1], "partial_rotary_factor": 0.25},
}  # fmt: skip
_PLAIN = _TEXT | {"rope_parameters": _TEXT["rope_parameters"] | {"mrope_interleaved": False}}
FAMILIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "qwen3_vl": ("Qwen3VL", _TEXT, _QWEN3 | {"deepstack_visual_indexes": [0]}),
    "qwen3_vl_moe": ("Qwen3VLMoe", _TEXT | _EXPERTS, _QWEN3 | {"deepstack_visual_indexes": [0]}),
    "qwen3_5": ("Qwen3_5", _TEXT | _LINEAR, _QWEN3),
    "qwen2_vl": ("Qwen2VL", _PLAIN, _VISION | {"patch_size": 14, "embed_dim": 64, "mlp_ratio": 2}),
    "qwen2_5_vl": ("Qwen2_5_VL", _PLAIN, _VISION | {"patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}),
}
"""Name in transformers, language model and vision tower of each."""


def write(folder: Path, family: str) -> Any:
    """Write a model and its processor into ``folder``. Returns the model."""
    name, text, vision = FAMILIES[family]
    marks = {
        "image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END,
    }  # fmt: skip
    config = getattr(tf, f"{name}Config")(text_config=text, vision_config=vision, tie_word_embeddings=False, **marks)
    torch.manual_seed(7)
    model = getattr(tf, f"{name}ForConditionalGeneration")(config).eval()
    draw_weights(model)
    model.save_pretrained(folder)
    processor(family).save_pretrained(folder)
    return model


def processor(family: str) -> Any:
    """The family's, with a token for each character."""
    vocabulary = {chr(32 + token): token for token in range(240)} | dict(zip(MARKS, range(240, 246), strict=True))
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = tf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|pad|>",
        additional_special_tokens=list(MARKS[:4]), clean_up_tokenization_spaces=False,
    )  # fmt: skip
    three = family.startswith("qwen3")
    side = 16 if three else 14
    sizes = {"patch_size": side, "image_mean": MEAN, "image_std": STD}
    bounds = {"size": {"shortest_edge": 32 * 32, "longest_edge": 512 * 512}}
    pictures = tf.Qwen2VLImageProcessor(**sizes, **bounds)
    videos = (tf.Qwen3VLVideoProcessor if three else tf.Qwen2VLVideoProcessor)(**sizes, **bounds)
    kind = {"qwen2_vl": tf.Qwen2VLProcessor, "qwen2_5_vl": tf.Qwen2_5_VLProcessor}.get(family, tf.Qwen3VLProcessor)
    return kind(pictures, fast, videos, chat_template=TEMPLATE)
