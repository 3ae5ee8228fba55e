"""What a client sends to a vLLM with the plugin, and what of it is refused. None of it needs vLLM, or torch."""

import base64
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foveate.pipeline import open_stream
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.places import Places
from foveate.pipeline.vlm.vllm.checks import frames_of, is_chosen
from foveate.pipeline.vlm.vllm.request import PATCHES, PLACES, SIZE, content_of, image_data, message
from tests.pipeline.vllm_malformed import MALFORMED, Change
from tests.pipeline.vlm_selections import selection_of

FINE = [(0, 32 * column + x, 64 + y) for column in (4, 1) for y in (8, 24) for x in (8, 24)]
COARSE = [(1, x, y) for y in (16, 48) for x in (16, 48)]


def chosen() -> Any:
    """A coarse group and two fine ones of a picture of 192 x 128 pixels."""
    return selection_of(192, 128, COARSE + FINE)


def decoded(coded: str) -> Any:
    return np.load(io.BytesIO(base64.b64decode(coded)), allow_pickle=False)


def test_a_message_holds_times_tokens_and_the_question() -> None:
    first = chosen()
    second = replace(selection_of(192, 128, FINE), time=2.04)
    said = message([first, selection_of(192, 128, []), second], "who?")
    assert said["role"] == "user"
    kinds = [part["type"] for part in said["content"]]
    assert kinds == ["text", "image_embeds", "text", "image_embeds", "text"]  # a frame without a token is left out
    assert [part["text"] for part in said["content"][::2]] == ["<0.0 seconds>", "<2.0 seconds>", "who?"]
    part = said["content"][1]["image_embeds"]
    assert decoded(part[SIZE]).tolist() == [192, 128]
    assert decoded(part[PLACES]).tolist() == [[x, y, lod] for lod, x, y in COARSE + FINE]
    assert decoded(part[PATCHES]).dtype == np.uint8
    assert (decoded(part[PATCHES]) == first.patches).all()


def test_without_a_stamp_there_are_no_times() -> None:
    assert [part["type"] for part in content_of([chosen()], "who?", stamp="")] == ["image_embeds", "text"]


def test_frames_come_out_as_they_went_in() -> None:
    selections = [chosen(), selection_of(300, 200, FINE)]
    data = image_data(selections)
    assert is_chosen(data)
    found = frames_of(data, 2, 1000)
    for selection, (shown, groups) in zip(selections, found, strict=True):
        assert (shown.width, shown.height, shown.grid) == (selection.width, selection.height, selection.grid)
        assert (shown.patches == selection.patches).all()
        expected = Groups.of(selection, 2)
        assert (groups.order == expected.order).all()
        assert (groups.position == expected.position).all()
        assert groups.grid == expected.grid
        assert (groups.places.rows == Places.of(selection).rows[expected.order]).all()
    # By hand: fine groups in row 2, columns 4 and 1, of 6 groups a row; the coarse one's middle is (1, 1).
    assert found[0][1].position.tolist() == [7, 13, 16]


def test_a_stream_makes_requests_that_are_right(samples: Any) -> None:
    """Of any size, also where groups reach over the edges and repeat their tokens."""
    pictures = [np.random.default_rng(0).integers(0, 256, (70, 150, 3), np.uint8)] * 2
    with open_stream(pictures, fps=1, budget=24, patches=True, allocation={"merge": 2}) as stream:
        selections = list(stream)
    clip = str(samples / "pedestrians.mp4")
    with open_stream(clip, budget=272, patches=True, allocation={"merge": 2}, source={"frames": 2}) as stream:
        selections += list(stream)
    found = frames_of(image_data(selections), 2, 10_000)
    assert [len(groups) * 4 for _, groups in found] == [len(selection) for selection in selections]


def test_arrays_of_torch_are_taken() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    data = {name: torch.from_numpy(array)[None] for name, (array,) in image_data([chosen()]).items()}
    assert len(frames_of(data, 2, 1000)) == 1
    with pytest.raises(ValueError, match=r"dense array of plain numbers, got torch\.bfloat16"):
        frames_of({**data, PATCHES: data[PATCHES].bfloat16()}, 2, 1000)
    with pytest.raises(ValueError, match="dense array of plain numbers"):
        frames_of({**data, PLACES: data[PLACES].to_sparse()}, 2, 1000)


@pytest.mark.parametrize(("change", "why"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_refused(change: Change, why: str) -> None:
    right = {name: array for name, (array,) in image_data([selection_of(192, 128, FINE)]).items()}
    wrong = change(right)
    assert is_chosen(wrong)
    stacked = {name: array[None] for name, array in wrong.items()}
    listed = {name: [right.get(name, array), array] for name, array in wrong.items()}  # as a second frame
    for data in (stacked, listed):
        with pytest.raises(ValueError, match=why) as error:
            frames_of(data, 2, 256)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [None, 3, "text", [[1, 2, 3]], np.array([[object()] * 3]), np.array(3), (3, 4)])
def test_what_is_no_array_is_refused(value: Any) -> None:
    for name in (SIZE, PLACES, PATCHES):
        with pytest.raises(ValueError, match=f"{name} must be"):
            frames_of({**image_data([chosen()]), name: value}, 2, 1000)


@pytest.mark.parametrize("name", [SIZE, PLACES, PATCHES])
def test_each_frame_needs_all_of_its_arrays(name: str) -> None:
    data = image_data([chosen(), chosen()])
    for value in (data[name][:1], [], data[name] * 2):
        with pytest.raises(ValueError, match=f"{SIZE} tells of . frames, {PLACES} of ., and {PATCHES} of ."):
            frames_of({**data, name: value}, 2, 1000)


def test_more_than_the_context_is_refused() -> None:
    data = image_data([chosen()] * 3)  # of 3 groups each, and 6 groups wide
    assert len(frames_of(data, 2, 18)) == 3
    with pytest.raises(ValueError, match="9 tokens and 18 positions, which exceeds the model's context 17"):
        frames_of(data, 2, 17)


def test_more_groups_than_towers_have_rows_are_refused() -> None:
    """A picture of 65 x 64 groups, all of them."""
    at = np.stack(np.meshgrid(np.arange(65) * 32, np.arange(64) * 32), -1).reshape(-1, 1, 2)
    places = (at + np.array([[8, 8], [24, 8], [8, 24], [24, 24]])).reshape(-1, 2)
    places = np.concatenate([places, np.zeros((len(places), 1))], 1).astype(np.int32)
    data = {
        SIZE: np.array([[65 * 32, 64 * 32]], np.int32),
        PLACES: places[None],
        PATCHES: np.zeros((1, len(places), 16, 16, 3), np.uint8),
    }
    with pytest.raises(ValueError, match="frame 0 has 4160 groups of tokens; at most 4096 are read"):
        frames_of(data, 2, 100_000)


def test_selections_need_patches_and_tokens() -> None:
    with pytest.raises(ValueError, match="patches=True"):
        content_of([selection_of(192, 128, FINE, patches=False)], "who?")
    with pytest.raises(ValueError, match="frame 0 has no token"):
        image_data([selection_of(192, 128, [])])
    with pytest.raises(ValueError, match="at least one selection"):
        image_data([])


@pytest.mark.parametrize("data", [{"image_embeds": 1}, [1], None, "foveate_size", np.zeros(3)])
def test_other_images_are_left_to_vllm(data: Any) -> None:
    assert not is_chosen(data)
