"""The facts of sources and engines as notes for people."""

from dataclasses import replace
from typing import Any

import pytest

from foveate.pipeline.info import Cropping, EngineInfo, SourceInfo

PLAIN = SourceInfo("clip.mp4", 320, 240, 25.0, 10)


@pytest.mark.parametrize(
    ("facts", "notes"),
    [
        ({}, ()),
        ({"rotation": 90, "sample_aspect": 1.5, "start": 7.0}, ()),  # applied, or told by fields of the record
        ({"undecodable_start": 3}, ("begins between keyframes: 3 pictures before the first one cannot be shown",)),
        (
            {"times": "declared rate", "assumed_rate": 23.976},
            ("times made up from the declared rate, 23.976 frames per second",),
        ),
        (
            {"times": "rate setting", "assumed_rate": 50.0},
            ("times made up from the rate setting, 50 frames per second",),
        ),
        ({"times": "arrival"}, ("no timestamps: times are those of arrival",)),
        ({"cropping": Cropping((352, 240), (320, 240), (352, 240))}, ("cropping from 352x240 to 320x240",)),
        (
            {"cropping": Cropping((352, 240), (300, 240), (320, 240))},
            ("cropping from 352x240 to 300x240 not applied: it is 320x240",),
        ),
        ({"mirrored": True, "interlaced": True}, ("mirrored", "interlaced")),
        ({"unsupported_orientation": "rotation by 45 degrees"}, ("rotation by 45 degrees not applied",)),
        (
            {"unknown_matrix": 8, "has_alpha": True},
            ("colour matrix 8 is read as the usual one for this size", "alpha ignored"),
        ),
        ({"decoded_on_cpu": "a single picture"}, ("decoded on the CPU: a single picture",)),
    ],
)
def test_notes_of_a_source(facts: dict[str, Any], notes: tuple[str, ...]) -> None:
    assert replace(PLAIN, **facts).notes == notes


def test_notes_of_an_engine() -> None:
    assert EngineInfo("cpu").notes == EngineInfo("cuda").notes == ()
    assert EngineInfo("cpu", instead_of_cuda="no driver").notes == ("engine cpu instead of cuda: no driver",)
    assert EngineInfo("cuda", tokens_on_cpu="no kernel").notes == ("tokens chosen on the CPU: no kernel",)
