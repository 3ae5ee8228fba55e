"""Dense embeddings from open_clip's image towers, one per patch. Imports torch.

A tower ends in attention, or another pooling, that mixes all patches into one vector. Here every patch goes through it
alone: attention over one patch is that patch's value, so what remains is the value path and the layers behind it, whose
output lies in the space shared with texts (Zhou, Loy and Dai 2022, MaskCLIP).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from open_clip.modified_resnet import ModifiedResNet
from open_clip.timm_model import TimmModel
from open_clip.transformer import VisionTransformer

from foveate.pipeline.errors import EngineError

Dense = Callable[[torch.Tensor], torch.Tensor]
"""A picture [1, 3, h, w], sides multiples of the stride, to one vector per patch: [h/stride, w/stride, D]."""


def dense_tower(visual: torch.nn.Module) -> tuple[Dense, int]:
    """The dense reading of an image tower, and its stride in pixels. Raises EngineError for an unknown kind."""
    if isinstance(visual, VisionTransformer):
        return lambda picture: _vision_transformer(visual, picture), int(visual.patch_size[0])
    if isinstance(visual, ModifiedResNet):
        return lambda picture: _modified_resnet(visual, picture), 32
    if isinstance(visual, TimmModel):
        return lambda picture: _timm(visual, picture), _any_size(visual.trunk)
    raise EngineError(f"dense features of {type(visual).__name__} are not supported; use another --clip.model")


def _vision_transformer(visual: Any, picture: torch.Tensor) -> torch.Tensor:
    """open_clip's own: the last block's value path, or the pooling attention's where there is one."""
    maps = visual.conv1(picture)
    rows, columns = maps.shape[-2:]
    first = visual.class_embedding.to(maps.dtype).reshape(1, 1, -1)
    parts = torch.cat([first, maps.flatten(2).transpose(1, 2)], dim=1)
    parts = visual.ln_pre(parts + interpolated_positions(visual, rows, columns).to(parts.dtype))
    *blocks, last = visual.transformer.resblocks
    for block in blocks:
        parts = block(parts)
    if visual.attn_pool is None:
        alone = last(_apart(parts[:, 1:]))
    else:
        pool = visual.attn_pool
        keys = pool.ln_k(_apart(last(parts)[:, 1:]))
        alone = pool.attn(pool.ln_q(pool.query[:1]).expand(len(keys), -1, -1), keys, keys, need_weights=False)[0]
    vectors = visual.ln_post(alone[:, 0])
    if visual.proj is not None:
        vectors = vectors @ visual.proj
    return vectors.reshape(rows, columns, -1)


def interpolated_positions(visual: Any, rows: int, columns: int) -> torch.Tensor:
    """The position embeddings, the class token's first, interpolated to another raster: [1 + rows * columns, C]."""
    own = visual.positional_embedding
    if (rows, columns) == tuple(visual.grid_size):
        return own
    maps = own[1:].reshape(1, *visual.grid_size, -1).permute(0, 3, 1, 2).float()
    maps = torch.nn.functional.interpolate(maps, (rows, columns), mode="bicubic", antialias=True, align_corners=False)
    return torch.cat([own[:1].float(), maps.flatten(2)[0].T])


def _modified_resnet(visual: Any, picture: torch.Tensor) -> torch.Tensor:
    """OpenAI's ResNets: values and output projection of the attention that pools."""
    maps = visual.layer4(visual.layer3(visual.layer2(visual.layer1(visual.stem(picture)))))
    pool = visual.attnpool
    return pool.c_proj(pool.v_proj(maps[0].permute(1, 2, 0)))


def _timm(visual: Any, picture: torch.Tensor) -> torch.Tensor:
    """timm's: each patch through the head as if it were the whole picture."""
    trunk = visual.trunk
    with ExitStack() as hooks:
        if getattr(trunk, "global_pool", "") == "token":  # no attention pools after the last block, so it does itself
            _take_apart(trunk.blocks[-1], trunk.num_prefix_tokens, hooks)
        features = trunk.forward_features(picture)
    if features.ndim == 3:
        rows, columns = (int(side) // _stride(trunk) for side in picture.shape[-2:])
        return visual.head(trunk.forward_head(_headed(trunk, features))).reshape(rows, columns, -1)
    last = features.shape[-1] == trunk.num_features and features.shape[1] != trunk.num_features
    maps = features[0] if last else features[0].permute(1, 2, 0)
    rows, columns, width = maps.shape
    alone = maps.reshape(-1, 1, 1, width)
    vectors = visual.head(trunk.forward_head(alone if last else alone.permute(0, 3, 1, 2)))
    return vectors.reshape(rows, columns, -1)


def _headed(trunk: Any, features: torch.Tensor) -> torch.Tensor:
    """Sequences [n, 1 or more, C] whose pooling by the head gives the n patches of ``features`` [1, prefix + n, C]."""
    prefix = trunk.num_prefix_tokens
    parts = _apart(features[:, prefix:])
    if getattr(trunk, "global_pool", "") == "token" or not prefix:
        return parts
    return torch.cat([features[:, :prefix].expand(len(parts), -1, -1), parts], dim=1)


def _take_apart(block: torch.nn.Module, prefix: int, hooks: ExitStack) -> None:
    """While ``hooks`` is open, ``block`` gets every token of its [1, n, C] alone, and no rotary positions."""

    def before(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return (_apart(given[0]), *given[1:]), {**named, **({"rope": None} if "rope" in named else {})}

    def after(_: Any, given: Any, result: torch.Tensor) -> torch.Tensor:
        return result.transpose(0, 1)

    for handle in (block.register_forward_pre_hook(before, with_kwargs=True), block.register_forward_hook(after)):
        hooks.callback(handle.remove)


def _apart(parts: torch.Tensor) -> torch.Tensor:
    """[1, n, C] as n sequences of one: [n, 1, C]."""
    return parts.transpose(0, 1)


def _any_size(trunk: Any) -> int:
    """Make a timm trunk take pictures of any size if it can; returns its stride in pixels."""
    embed: Any = getattr(trunk, "patch_embed", None)
    if getattr(trunk, "dynamic_img_size", None) is False and hasattr(embed, "strict_img_size"):
        from timm.layers import Format

        trunk.dynamic_img_size = True
        embed.strict_img_size, embed.flatten, embed.output_fmt = False, False, Format.NHWC
    return _stride(trunk)


def _stride(trunk: Any) -> int:
    """Pixels per patch along a side."""
    embed: Any = getattr(trunk, "patch_embed", None)
    if hasattr(trunk, "blocks") and hasattr(embed, "feat_ratio"):
        return int(embed.feat_ratio())
    return int(trunk.feature_info[-1]["reduction"])
