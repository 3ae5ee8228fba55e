"""docs/output-format.md is true: fields, types, header and arrays are those that are written."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import orjson
import pytest

from foveate.pipeline.selection import Selection
from foveate.pipeline.sinks import open_sink
from foveate.pipeline.sinks.json_lines import record_of
from foveate.pipeline.sinks.shards import concatenated
from foveate.pipeline.stream import open_stream
from tests.docs.pages import ROOT, codes, page, tables

FIELDS = tables(page("output-format"), "fields")
EXTRAS = {
    "query": ("red",),
    "query_ignored": ("car",),
    "embedding_age": 3,
    "text_age": 3,
    "debt": 3,
    "price": 64.0,
    "captured": 1.5,
    "arrived": 1.5,
    "latency": 0.5,
}


@pytest.fixture
def selections() -> list[Selection]:
    clip = str(ROOT / "sample_videos" / "pedestrians.mp4")
    with open_stream(clip, source={"frames": 2}, patches=True, budget=20) as stream:
        return list(stream)


def test_the_fields_are_those_of_a_record(selections: list[Selection]) -> None:
    keyframe, plain = selections
    rows = FIELDS
    everything = [codes(field)[0] for field, _, _ in rows]
    always = [codes(field)[0] for field, _, _ in rows if field[0] == "`"]
    assert list(record_of(plain, (plain.width, plain.height))) == always
    asked = dataclasses.replace(keyframe, participation=np.zeros(len(keyframe), np.float32), extras=EXTRAS)
    asked = dataclasses.replace(asked, regions=("door",), region=np.zeros(len(keyframe), np.int32))
    assert list(record_of(asked, (1, 1))) == everything


def test_the_types_are_those_of_a_record(selections: list[Selection]) -> None:
    keyframe = dataclasses.replace(selections[0], participation=np.zeros(len(selections[0]), np.float32))
    keyframe = dataclasses.replace(keyframe, regions=("door",), region=np.zeros(len(keyframe), np.int32), extras=EXTRAS)
    record = json.loads(orjson.dumps(record_of(keyframe, (1, 1)), option=orjson.OPT_SERIALIZE_NUMPY))
    kinds = {"integer": int, "number": float, "boolean": bool, "string": str, "list": list}
    for field, kind, _ in FIELDS:
        value = record[codes(field)[0]]
        if kind.endswith("s"):
            assert len(value) == len(keyframe), field
            value = value[0]
        assert type(value) is kinds[kind.removesuffix("s")], field


def test_the_header_and_the_arrays_are_named(selections: list[Selection], tmp_path: Path) -> None:
    output = page("output-format")
    described = set(codes(output.replace("`offsets[i]`", "`offsets`")))
    file = tmp_path / "tokens.jsonl"
    clip = str(ROOT / "sample_videos" / "pedestrians.mp4")
    with open_stream(clip, source={"frames": 1}, sinks=[open_sink(str(file))]) as stream:
        list(stream)
    assert json.loads(file.read_text().splitlines()[0]).keys() <= described
    assert concatenated(selections).keys() <= described
