"""Small vision-language models with random weights, one of each family, made from their configuration classes.

Their answers mean nothing; what they do with patches, places and prompts is what large ones do.
"""

from typing import Any

import torch
import transformers as tf

IMAGE, START, END, PAD = 250, 251, 252, 253  # token ids
BEFORE, BEHIND = 245, 246  # around a picture, in Gemma 4
VOCABULARY = 256
TEXT = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "vocab_size": VOCABULARY, "max_position_embeddings": 4096,
    "rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0},
    "pad_token_id": PAD, "bos_token_id": None, "eos_token_id": END,
}  # fmt: skip
IDS = {
    "image_token_id": IMAGE, "video_token_id": 249, "vision_start_token_id": START, "vision_end_token_id": END,
}  # fmt: skip
VISION = {"depth": 2, "num_heads": 2, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}
QWEN3 = VISION | {
    "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32, "num_position_embeddings": 49,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1}
SPARSE_GLM = {
    "moe_intermediate_size": 16, "num_experts_per_tok": 2, "n_routed_experts": 4, "first_k_dense_replace": 1,
}  # fmt: skip
LINEAR = {
    "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "linear_num_value_heads": 2,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8,
}  # fmt: skip


def _qwen2(name: str, **vision: Any) -> Any:
    config = getattr(tf, f"{name}Config")(text_config=TEXT, vision_config=VISION | {"patch_size": 14} | vision, **IDS)
    return getattr(tf, f"{name}ForConditionalGeneration")(config)


def _qwen3(name: str, text: dict[str, Any], **vision: Any) -> Any:
    config = getattr(tf, f"{name}Config")(text_config=TEXT | text, vision_config=QWEN3 | vision, **IDS)
    return getattr(tf, f"{name}ForConditionalGeneration")(config)


def _glm(name: str, **text: Any) -> Any:
    vision = VISION | {
        "hidden_size": 32,
        "intermediate_size": 48,
        "out_hidden_size": 32,
        "patch_size": 14,
        "image_size": 98,
    }
    config = getattr(tf, f"{name}Config")(
        text_config=TEXT | {"rope_parameters": TEXT["rope_parameters"] | {"partial_rotary_factor": 1.0}} | text,
        vision_config=vision,
        image_start_token_id=START, image_end_token_id=END, video_start_token_id=247, video_end_token_id=248,
        image_token_id=IMAGE, video_token_id=249,
    )  # fmt: skip
    return getattr(tf, f"{name}ForConditionalGeneration")(config)


def _video_llama() -> Any:
    vision = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "patch_size": 14,
    }
    text = {name: value for name, value in TEXT.items() if name != "rope_parameters"} | {"model_type": "qwen2"}
    config = tf.VideoLlama3Config(text_config=text, vision_config=vision, image_token_id=IMAGE, video_token_id=249)
    return tf.VideoLlama3ForConditionalGeneration(config)


def _gemma4(**text: Any) -> Any:
    """With windows that are shorter than the tests' prompts."""
    own = {name: value for name, value in TEXT.items() if name != "rope_parameters"} | {
        "vocab_size_per_layer_input": VOCABULARY, "global_head_dim": 16, "sliding_window": 24,
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 16, "position_embedding_size": 64, "standardize": True,
    }  # fmt: skip
    config = tf.Gemma4Config(
        text_config=own | text, vision_config=vision, boi_token_id=BEFORE, eoi_token_id=BEHIND,
        image_token_id=IMAGE, video_token_id=249, audio_token_id=248,
    )  # fmt: skip
    return tf.Gemma4ForConditionalGeneration(config)


MAKERS = {
    "qwen2_vl": lambda: _qwen2("Qwen2VL", embed_dim=32, hidden_size=32, mlp_ratio=2),
    "qwen2_5_vl": lambda: _qwen2(
        "Qwen2_5_VL", hidden_size=32, intermediate_size=48, out_hidden_size=32, window_size=56,
        fullatt_block_indexes=[1],
    ),
    "qwen3_vl": lambda: _qwen3("Qwen3VL", {}, deepstack_visual_indexes=[0]),
    "qwen3_vl_moe": lambda: _qwen3("Qwen3VLMoe", EXPERTS, deepstack_visual_indexes=[0]),
    "qwen3_5": lambda: _qwen3("Qwen3_5", LINEAR),
    "qwen3_5_moe": lambda: _qwen3("Qwen3_5Moe", LINEAR | EXPERTS | {"shared_expert_intermediate_size": 16}),
    "glm4v": lambda: _glm("Glm4v"),
    "glm4v_moe": lambda: _glm("Glm4vMoe", **SPARSE_GLM),
    "glm46v": lambda: _glm("Glm46V"),
    "video_llama_3": _video_llama,
    # The large ones: the tokens of a picture see each other where attention has windows.
    "gemma4": lambda: _gemma4(
        use_bidirectional_attention="vision", hidden_size_per_layer_input=0, attention_k_eq_v=True,
        num_global_key_value_heads=1, layer_types=["sliding_attention", "full_attention"],
    ),
    # The small ones: an embedding for each layer, and layers that use the keys and values of others.
    "gemma4_e": lambda: _gemma4(
        hidden_size_per_layer_input=8, num_hidden_layers=4, num_kv_shared_layers=2,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
}  # fmt: skip


def model_of(family: str) -> Any:
    """The family's model, its weights drawn so that no part is silent."""
    torch.manual_seed(7)
    model = MAKERS[family]().eval()
    draw_weights(model)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith(("std_bias", "std_scale")):  # Gemma 4's; they are left as the memory was
                torch.nn.init.uniform_(buffer, 0.5, 1.5)
    return model


def draw_weights(model: Any) -> None:
    """Draw a model's parameters so that no part is silent; those of norms stay as they are."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.1)
            elif "norm" not in name:
                torch.nn.init.normal_(parameter, std=0.02)
