"""Mixins for a model of vLLM and its processor, so that images may be chosen tokens; all else stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from vllm.multimodal.inputs import MultiModalFieldConfig
from vllm.multimodal.parse import DictEmbeddingItems
from vllm.multimodal.processing import PromptReplacement
from vllm.transformers_utils.processor import cached_image_processor_from_config

from foveate.pipeline.vlm.vllm.checks import frames_of, is_chosen
from foveate.pipeline.vlm.vllm.fields import COUNT, GRID, GROUP, PLACE, groups_of, tensors_of
from foveate.pipeline.vlm.vllm.positions import Part, whole_prompt
from foveate.pipeline.vlm.vllm.request import PATCHES, PLACES, SIZE
from foveate.pipeline.vlm.vllm.tower import encode


def _sent_fields() -> dict[str, MultiModalFieldConfig]:
    """A field of a request whose parts vLLM joins by concatenation, unchanged."""
    return {name: MultiModalFieldConfig.batched("image") for name in (SIZE, PLACES, PATCHES)}


def _engine_fields(inputs: Mapping[str, Any], merge: int) -> dict[str, MultiModalFieldConfig]:
    groups = inputs[COUNT]
    return {
        PATCHES: MultiModalFieldConfig.flat_from_sizes("image", groups * merge**2),
        PLACE: MultiModalFieldConfig.flat_from_sizes("image", groups * merge**2, keep_on_cpu=True),
        GROUP: MultiModalFieldConfig.flat_from_sizes("image", groups, keep_on_cpu=True),
        COUNT: MultiModalFieldConfig.batched("image", keep_on_cpu=True),
        GRID: MultiModalFieldConfig.batched("image", keep_on_cpu=True),
    }


class ChosenInfo:
    """Mixin for a processor's info: what it accepts."""

    def get_data_parser(self) -> Any:
        """The model's own parser, which now knows chosen tokens."""
        parser = super().get_data_parser()  # type: ignore[misc] # what it is mixed into has it
        ordinary = parser._parse_image_data

        def parse(data: Any) -> Any:
            return self._chosen(data) if is_chosen(data) else ordinary(data)

        parser._parse_image_data = parse
        return parser

    def _chosen(self, data: Mapping[str, object]) -> DictEmbeddingItems:
        """Raises ValueError for malformed tokens: vLLM responds with its message, and goes on."""
        vision = self.get_hf_config().vision_config  # type: ignore[attr-defined]
        merge = int(vision.spatial_merge_size)
        longest = int(self.ctx.model_config.max_model_len)  # type: ignore[attr-defined]
        tensors = tensors_of(frames_of(data, merge, longest), int(vision.patch_size))
        return DictEmbeddingItems(
            tensors,
            modality="image",
            required_fields=set(tensors),
            fields_factory=lambda inputs: _engine_fields(inputs, merge),
        )


class ChosenProcessor:
    """Mixin for a processor: what it makes of a prompt."""

    info: Any

    def _get_mm_fields_config(self, hf_inputs: Any, hf_processor_mm_kwargs: Mapping[str, object]) -> Any:
        if SIZE in hf_inputs:
            return _sent_fields()
        if COUNT in hf_inputs:
            return _engine_fields(hf_inputs, int(self.info.get_hf_config().vision_config.spatial_merge_size))
        return super()._get_mm_fields_config(hf_inputs, hf_processor_mm_kwargs)  # type: ignore[misc]

    def _get_prompt_updates(
        self, mm_items: Any, hf_processor_mm_kwargs: Mapping[str, Any], out_mm_kwargs: Any
    ) -> Sequence[Any]:
        """As many image tokens as there are groups."""
        image = self.info.get_hf_config().image_token_id

        def counted(update: Any) -> Any:
            if update.modality != "image":
                return update
            return PromptReplacement(modality="image", target=update.target, replacement=placeholders(update))

        def placeholders(update: Any) -> Any:
            def of(index: int) -> Any:
                item = out_mm_kwargs["image"][index]
                return [image] * len(item[GROUP].data) if GROUP in item else update.replacement(index)

            return of

        ordinary = super()._get_prompt_updates(mm_items, hf_processor_mm_kwargs, out_mm_kwargs)  # type: ignore[misc]
        return [counted(update) for update in ordinary]


class ChosenModel:
    """Of a model: how it sees chosen tokens, and where they lie in its prompt."""

    config: Any
    visual: Any

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        """Raises ValueError for video pruning, which computes positions from its own features."""
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        if getattr(self, "is_multimodal_pruning_enabled", False):
            raise ValueError("Foveate's models cannot prune videos as well; leave out --video-pruning-rate")
        images = cached_image_processor_from_config(vllm_config.model_config)
        self._mean, self._std = images.image_mean, images.image_std

    def embed_multimodal(self, **kwargs: Any) -> Any:
        """Features of a batch of images or videos; chosen tokens come in batches of their own."""
        if COUNT not in kwargs:
            return super().embed_multimodal(**kwargs)  # type: ignore[misc]
        frames = groups_of(kwargs, int(self.config.vision_config.spatial_merge_size))
        return encode(self.visual, kwargs[PATCHES], frames, self._mean, self._std)

    def get_mrope_input_positions(self, input_tokens: list[int], mm_features: list[Any]) -> tuple[torch.Tensor, int]:
        """Positions in the prompt, [3, L], and by how much the answer's are ahead of the number of tokens.

        The model's own, of the prompt of the whole pictures, less those of the groups that were not chosen.
        """
        ordinary = super().get_mrope_input_positions  # type: ignore[misc]
        features = sorted(mm_features, key=lambda feature: feature.mm_position.offset)
        if not any(GROUP in feature.data for feature in features):
            return ordinary(input_tokens, mm_features)
        merge = int(self.config.vision_config.spatial_merge_size)
        parts = [_part(feature, merge) for feature in features]
        whole = whole_prompt(input_tokens, parts)
        moved = [_moved(*each) for each in zip(features, parts, whole.offsets, strict=True)]
        positions, _ = ordinary(whole.tokens, moved)
        positions = positions[:, torch.from_numpy(whole.kept)]
        return positions, int(positions.max()) + 1 - len(input_tokens)

    def get_encoder_cudagraph_config(self) -> Any:
        """Without images: graphs of the tower know grids, not places."""
        config = super().get_encoder_cudagraph_config()  # type: ignore[misc]
        return replace(config, modalities=[each for each in config.modalities if each != "image"])


def _part(feature: Any, merge: int) -> Part:
    offset = feature.mm_position.offset
    if GROUP not in feature.data:
        return Part(offset)
    _, down, across = feature.data[GRID].data.flatten().tolist()
    return Part(offset, feature.data[GROUP].data.cpu().numpy(), down // merge * (across // merge))


def _moved(feature: Any, part: Part, offset: int) -> Any:
    """The feature of the whole picture, at its place in the whole prompt."""
    length = feature.mm_position.length if part.chosen is None else part.groups
    return replace(feature, mm_position=replace(feature.mm_position, offset=offset, length=length))
