"""On a real clip: "moving" spends its sharp tokens on the people who move."""

from pathlib import Path

import numpy as np
import pytest

from foveate.pipeline import open_stream

CLIP = Path(__file__).parents[2] / "sample_videos" / "pedestrians.mp4"
BOXES = np.loadtxt(Path(__file__).with_name("pedestrians_boxes.txt"), int)
FRAMES = np.unique(BOXES[:, 0])


def people(index):
    """bool[576, 768]: pixels in the boxes of a frame."""
    pixels = np.zeros((576, 768), np.bool_)
    for x, y, width, height in BOXES[BOXES[:, 0] == index, 1:]:
        pixels[y : y + height, x : x + width] = True
    return pixels


def sharp_tokens(queries):
    """Of all frames with boxes: how many tokens of LOD 0 there are, and how many of them show a part of a person."""
    total = hits = 0
    with open_stream(str(CLIP), engine="cpu", query=queries) as stream:
        for selection in stream:
            if selection.index in FRAMES:
                fine, there = selection.lod == 0, people(selection.index)
                shown = [
                    there[y - 8 : y + 8, x - 8 : x + 8].any() for x, y in zip(selection.x, selection.y, strict=True)
                ]
                total += np.count_nonzero(fine)
                hits += np.count_nonzero(fine & shown)
    return total, hits


@pytest.mark.slow
def test_moving_is_the_people_who_move():
    total, hits = sharp_tokens(["moving"])
    assert total / len(FRAMES) >= 50
    assert hits / total >= 0.8


@pytest.mark.slow
def test_without_a_query_most_sharp_tokens_are_elsewhere():
    total, hits = sharp_tokens([])
    assert hits / total < 0.4
