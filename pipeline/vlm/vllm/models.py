"""The models of vLLM that take chosen tokens, under the names that ``plugin`` registers."""

from __future__ import annotations

from typing import Any

from vllm.model_executor.models.qwen2_5_vl import Qwen2_5_VLForConditionalGeneration
from vllm.model_executor.models.qwen2_vl import Qwen2VLForConditionalGeneration
from vllm.model_executor.models.qwen3_5 import Qwen3_5ForConditionalGeneration, Qwen3_5MoeForConditionalGeneration
from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration
from vllm.model_executor.models.qwen3_vl_moe import Qwen3VLMoeForConditionalGeneration
from vllm.multimodal import MULTIMODAL_REGISTRY

from foveate.pipeline.vlm.vllm.mixins import ChosenInfo, ChosenModel, ChosenProcessor
from foveate.pipeline.vlm.vllm.plugin import architecture


def _taking_chosen(base: Any) -> Any:
    """The model ``base``, and the processor that vLLM has for it, taking chosen tokens as well."""
    ordinary = base._processor_factory

    class Info(ChosenInfo, ordinary.info):  # type: ignore[misc, name-defined]
        pass

    class Processor(ChosenProcessor, ordinary.processor):  # type: ignore[misc, name-defined]
        pass

    class Model(ChosenModel, base):  # type: ignore[misc]
        pass

    Model.__name__ = Model.__qualname__ = architecture(base.__name__)
    register = MULTIMODAL_REGISTRY.register_processor(Processor, info=Info, dummy_inputs=ordinary.dummy_inputs)
    return register(Model)


FoveateQwen2VLForConditionalGeneration = _taking_chosen(Qwen2VLForConditionalGeneration)
FoveateQwen2_5_VLForConditionalGeneration = _taking_chosen(Qwen2_5_VLForConditionalGeneration)
FoveateQwen3VLForConditionalGeneration = _taking_chosen(Qwen3VLForConditionalGeneration)
FoveateQwen3VLMoeForConditionalGeneration = _taking_chosen(Qwen3VLMoeForConditionalGeneration)
FoveateQwen3_5ForConditionalGeneration = _taking_chosen(Qwen3_5ForConditionalGeneration)
FoveateQwen3_5MoeForConditionalGeneration = _taking_chosen(Qwen3_5MoeForConditionalGeneration)
