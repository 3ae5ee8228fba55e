"""Figures of generated clips that can be worked out by hand."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.cases.truth import cells, method_truth, truth, truth_table
from foveate.bench.clips.footage import Footage
from foveate.bench.entry import exit_code
from foveate.bench.peers.sent import Sent, of_mask
from foveate.bench.scenes.moving import Box, Moment

Make = Callable[..., Footage]


def test_the_cells_that_a_box_touches() -> None:
    assert cells(Box(0, 16, 0, 33, 16)) == (slice(0, 1), slice(1, 3))


def measured(footage: Footage, boxes: list[tuple[Box, ...]], sent: list[list[int]]) -> dict[str, object]:
    """Of a row of cells: which are sent in each frame."""

    def send(clip: Footage, budget: int) -> Iterator[Sent]:
        for picture, columns in zip(clip.pictures, sent, strict=True):
            mask = np.zeros(clip.grid, np.bool_)
            mask[0, columns] = True
            yield of_mask(picture.planes, mask)

    moments = [Moment(picture.luma, there) for picture, there in zip(footage.pictures, boxes, strict=True)]
    return method_truth(send, footage, moments, 2)


def test_covered_is_what_is_shown_as_it_is_now(footage_of_cells: Make) -> None:
    box = Box(0, 0, 0, 32, 16)  # two of four cells
    footage = footage_of_cells([[50, 60, 70, 80]], [[50, 90, 70, 80]], [[50, 90, 70, 80]])
    told = measured(footage, [(box,)] * 3, [[0, 1], [2], [1, 3]])
    # Both cells, then one, as the other changed by 30; then both. Stale: two of four without a token; one more with an
    # old one, less one that came; none.
    assert told["coverage"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert told["samples"]["stale"] == pytest.approx([0.5, 0.5, 0.0])  # type: ignore[index]
    assert (told["first_fine"], told["never_fine"]) == (0, 0)


def test_a_small_change_is_not_stale(footage_of_cells: Make) -> None:
    told = measured(footage_of_cells([[50]], [[58]], [[59]]), [()] * 3, [[0], [], []])
    assert told["samples"]["stale"] == [0, 0, 1]  # type: ignore[index]
    assert told["coverage"] is None
    assert told["first_fine"] is None


def test_frames_until_a_thing_is_fine(footage_of_cells: Make) -> None:
    early, late = Box(0, 0, 0, 16, 16), Box(1, 32, 0, 48, 16)
    footage = footage_of_cells(*[[[1, 2, 3, 4]]] * 4)
    told = measured(footage, [(early,), (early, late), (early, late), (early, late)], [[1], [1], [0], []])
    # The first waits for two frames; the second is there for three and never has a token.
    assert told["first_fine"] == pytest.approx((2 + 3) / 2)
    assert told["never_fine"] == 1


def test_churn_is_what_the_frame_before_did_not_have(footage_of_cells: Make) -> None:
    footage = footage_of_cells(*[[[1, 2, 3, 4]]] * 18)
    told = measured(footage, [()] * 18, [[0, 1]] * 15 + [[0, 1], [1, 2], []])
    # From frame 15 on: none of two, one of two, and a frame without tokens.
    assert told["rest_churn"] == pytest.approx((0 + 0.5 + 0) / 3)
    assert told["rest_tokens"] == pytest.approx((2 + 2 + 0) / 3)


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "truth.json"
    assert exit_code(truth, ["--frames", "2", "--budget", "40", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert record["complete"] is True
    assert not record["red"]
    assert len(record["cases"]) == 8 * 7
    lines = truth_table(record).splitlines()
    assert lines[0].startswith("| method | moving things covered, % | ")
    assert len(lines) == 2 + 7
