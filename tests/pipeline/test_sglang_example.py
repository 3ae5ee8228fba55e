"""The example for SGLang in docs/models.md, as far as it goes without SGLang: what it hands over fits together."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from foveate.pipeline.vlm.reader import Reader  # noqa: E402
from tests.models.processor import processor  # noqa: E402
from tests.models.vision_language import IMAGE, model_of  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, part_of, whole  # noqa: E402

MODELS = Path(__file__).resolve().parents[2] / "docs" / "models.md"


def test_features_positions_and_tokens_fit_together() -> None:
    blocks = re.findall(r"```python\n(.*?)```", MODELS.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [block for block in blocks if "precomputed_embedding" in block]
    given: dict[str, Any] = {}
    selections = [part_of(whole(1), CHOSEN), whole(2)]
    names = {
        "torch": torch, "reader": Reader(model_of("qwen3_vl"), processor()), "selections": selections,
        "engine": SimpleNamespace(generate=given.update),
    }  # fmt: skip
    exec(example, names)
    (image,) = given["image_data"]
    ids = given["input_ids"]
    assert image["feature"].shape == (ids.count(IMAGE), 2 * 32)  # one deepstack layer, as wide as the model
    assert image["mrope_positions"].shape == (3, len(ids))
    assert int(image["mrope_position_delta"]) == int(image["mrope_positions"].max()) + 1 - len(ids)
