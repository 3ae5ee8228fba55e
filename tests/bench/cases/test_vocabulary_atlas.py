"""The atlas of a vocabulary holds what is computed on demand."""

import json
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.case import RedCheckError
from foveate.bench.cases import vocabulary_atlas as bench
from foveate.pipeline.query.terms import INPUTS


@pytest.mark.parametrize("name", ["attributes", "image-text"])
def test_the_atlas_after_updates(name: str) -> None:
    terms = bench.vocabularies()[name]
    assert len(terms.phrases) == bench.WORDS
    random = np.random.default_rng(5)
    inputs = random.random((INPUTS, 60), dtype=np.float32)
    atlas = bench.Atlas(terms, inputs)
    for cells in (np.array([3, 7, 59]), np.arange(60)):
        inputs[:, cells] = random.random((INPUTS, len(cells)), dtype=np.float32)
        atlas.update(cells)
        for word in (0, 57, 99):
            own = terms.query == word
            values = terms.weights[own].astype(float) @ inputs.astype(float) + terms.biases[own][:, None]
            values = np.clip(values, 0, 1) if terms.activation == "ramp" else 1 / (1 + np.exp(-values))
            assert np.allclose(atlas.maps[word], values.min(axis=0), atol=1e-5)


def test_a_wrong_atlas_is_not_timed() -> None:
    terms = bench.vocabularies()["attributes"]
    inputs = np.random.default_rng(5).random((INPUTS, 60), dtype=np.float32)
    atlas = bench.Atlas(terms, inputs.copy())  # whose channels are not those that change
    with pytest.raises(RedCheckError, match="differs"):
        bench.check(atlas, inputs, np.arange(30), [bench.terms_of(terms, [word]) for word in range(bench.WORDS)])


def test_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "RUNS", 2)
    monkeypatch.setattr(bench, "WARM_UP", 0)
    out = tmp_path / "record.json"
    bench.vocabulary_atlas(str(out))
    record = json.loads(out.read_text())
    assert len(record["cases"]) == 2 * 8
    assert len({case["name"] for case in record["cases"]}) == 2 * 8
    assert record["break_even"].keys() == {"attributes", "image-text"}
