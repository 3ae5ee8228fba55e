"""A tiny image-text model of open_clip's own architecture whose weights are set by hand, so that all it says is known.

A part of a picture becomes the unit vector of JOINT @ (r, g, b, GREY): its mean colour, each in [-1, 1], and a
constant. A text becomes that of JOINT @ the sum of its words' vectors in WORDS; other words count as nothing. What
attention would mix in is planted as well: a part sees the mean of all parts, unless it is read alone.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import torch

PATCH = 16
GREY = 0.5
DIMENSION = 24
WORDS = {
    "red": (1, -1, -1, 0),
    "green": (-1, 1, -1, 0),
    "blue": (-1, -1, 1, 0),
    "yellow": (1, 1, -1, 0),
    "object": (0, 0, 0, 1),
    "things": (0, 0, 0, 1),
    "stuff": (0, 0, 0, 1),
    "texture": (0, 0, 0, 1),
}
JOINT = np.linalg.qr(np.random.default_rng(7).normal(size=(DIMENSION, 4)))[0].astype(np.float32)
_WIDTH = 32
_CONFIG = {
    "embed_dim": DIMENSION,
    "vision_cfg": {
        "image_size": 64,
        "layers": 2,
        "width": _WIDTH,
        "head_width": 16,
        "patch_size": PATCH,
        "no_ln_pre": True,
    },
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": _WIDTH, "heads": 2, "layers": 1},
}
_PREPROCESS = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


def write(folder: Path) -> Path:
    """Write open_clip_config.json and weights.pt into ``folder``. Returns the path of the weights."""
    config = {"model_cfg": _CONFIG, "preprocess_cfg": _PREPROCESS}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    model = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.fill_(1.0 if name.split(".")[-2:] in _NORM_WEIGHTS else 0.0)
        _plant_image(model.visual)
        _plant_text(model, tokenizer)
        model.logit_scale.fill_(float(np.log(20.0)))
    torch.save(model.state_dict(), folder / "weights.pt")
    return folder / "weights.pt"


_NORM_WEIGHTS = [[norm, "weight"] for norm in ("ln_1", "ln_2", "ln_post", "ln_final")]


def expected(rgb: np.ndarray) -> np.ndarray:
    """The vector of a part of mean colour ``rgb``, 0..255: float[3] -> float32[DIMENSION], worked out by hand."""
    four = np.append(np.asarray(rgb) / 127.5 - 1, GREY)
    return (JOINT @ (four / np.linalg.norm(four))).astype(np.float32)


def _paired(four: Any) -> torch.Tensor:
    """Four numbers beside their negatives, whose mean is zero, so that layer norms only scale them."""
    four = torch.as_tensor(four, dtype=torch.float32)
    return torch.cat([four, -four, torch.zeros(_WIDTH - 8)])


def _plant_image(visual: Any) -> None:
    for colour in range(3):
        visual.conv1.weight[colour, colour] = 1 / PATCH**2
        visual.conv1.weight[4 + colour, colour] = -1 / PATCH**2
    visual.positional_embedding[1:] = _paired([0, 0, 0, GREY])
    attention = visual.transformer.resblocks[-1].attn
    attention.in_proj_weight[2 * _WIDTH :] = torch.eye(_WIDTH)  # values; queries and keys are zero: all alike
    attention.out_proj.weight.copy_(torch.eye(_WIDTH))
    visual.proj[:4] = torch.from_numpy(JOINT.T)


def _plant_text(model: Any, tokenizer: Any) -> None:
    for word, four in WORDS.items():
        model.token_embedding.weight[int(tokenizer([word])[0, 1])] = _paired(four)
    attention = model.transformer.resblocks[0].attn
    attention.in_proj_weight[2 * _WIDTH :] = torch.eye(_WIDTH)
    attention.out_proj.weight.copy_(torch.eye(_WIDTH))
    model.text_projection[:4] = torch.from_numpy(JOINT.T)
