"""Tokens per region: budgets, what is covered, files of boxes, and what stands in outputs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline import SettingsError, open_sink, open_stream, read_shards, tokens_in_regions
from foveate.pipeline.regions import parts, read_regions, regions_of
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings

WIDTH, HEIGHT = 400, 304  # 25 x 19 cells


@pytest.fixture(scope="module")
def picture() -> NDArray[np.uint8]:
    """Noise: every cell gains by detail."""
    return np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def places(selection: Selection, region: int) -> list[tuple[int, int, int]]:
    """Left, top and side of the tokens of a region, in pixels."""
    assert selection.region is not None
    found = []
    for at in np.flatnonzero(selection.region == region):
        side = 16 << int(selection.lod[at])
        found.append((int(selection.x[at]) - side // 2, int(selection.y[at]) - side // 2, side))
    return found


def times_covered(selection: Selection, region: int) -> NDArray[np.int32]:
    """int32[HEIGHT, WIDTH]: how many tokens of a region cover each pixel."""
    counts = np.zeros((HEIGHT, WIDTH), np.int32)
    for left, top, side in places(selection, region):
        counts[top : top + side, left : left + side] += 1
    return counts


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8, 21, 64, 400])
@pytest.mark.parametrize(
    "box",
    [
        (0, 0, WIDTH, HEIGHT),
        (100, 60, 90, 200),
        (250, 250, 20, 20),  # on the corner of four tokens of 256 pixels
        (-70, 150, 100, 40),
        (390, 290, 500, 500),
        (37.5, 91.25, 1, 1),
        (-1e9, -1e9, 1e10, 1e10),
    ],
)
def test_a_region_is_covered_once_within_its_budget(
    box: tuple[float, ...], budget: int, picture: NDArray[np.uint8]
) -> None:
    selection = tokens_in_regions(picture, [box], tokens=budget)
    assert 1 <= len(selection) <= budget
    left, top = max(int(box[0]), 0), max(int(box[1]), 0)
    right, bottom = (int(np.ceil(min(box[0] + box[2], WIDTH))), int(np.ceil(min(box[1] + box[3], HEIGHT))))
    counts = times_covered(selection, 0)
    assert (counts[top:bottom, left:right] == 1).all()
    for x, y, side in places(selection, 0):  # no token lies beside it
        assert x < right
        assert y < bottom
        assert x + side > left
        assert y + side > top
    cells = (-(-right // 16) - left // 16) * (-(-bottom // 16) - top // 16)
    if budget >= cells:  # noise: all of it at full resolution
        assert selection.lod.tolist() == [0] * cells


def test_a_larger_region_is_shown_more_coarsely(picture: NDArray[np.uint8]) -> None:
    boxes = {"small": (0, 0, 64, 64), "large": (128, 0, 256, 256)}
    selection = tokens_in_regions(picture, boxes, tokens=16)
    assert selection.regions == ("small", "large")
    assert {side for *_, side in places(selection, 0)} == {16}
    assert len(places(selection, 0)) == 16
    assert len(places(selection, 1)) == 16  # of 256 cells
    assert max(side for *_, side in places(selection, 1)) == 128


def test_the_tokens_of_a_region_do_not_depend_on_the_others(picture: NDArray[np.uint8]) -> None:
    boxes = [(40, 40, 150, 150), (100, 100, 150, 150), (100, 100, 150, 150)]
    together = tokens_in_regions(picture, boxes, tokens=50)
    for number, box in enumerate(boxes):
        alone = tokens_in_regions(picture, [box], tokens=50)
        assert places(together, number) == places(alone, 0)
    order = list(zip(-together.lod.astype(int), together.y, together.x, strict=True))
    assert order == sorted(order)
    assert together.patches is not None
    fine = int(np.flatnonzero(together.lod == 0)[0])
    x, y = int(together.x[fine]), int(together.y[fine])
    seen = together.patches[fine].astype(int) - picture[y - 8 : y + 8, x - 8 : x + 8]
    assert np.abs(seen).mean() < 60  # of noise, with 4:2:0 or not: another place would differ by 85


@pytest.mark.parametrize("merge", [2, 3])
def test_groups_stay_together(merge: int, picture: NDArray[np.uint8]) -> None:
    boxes = [(0, 0, 96, 96), (48, 48, 200, 150)]
    selection = tokens_in_regions(picture, boxes, tokens=36, allocation={"merge": merge})
    assert selection.region is not None
    groups = selection.region.reshape(-1, merge**2)
    assert (groups == groups[:, :1]).all()
    assert (selection.lod.reshape(-1, merge**2) == selection.lod[:: merge**2, None]).all()
    assert (np.bincount(selection.region, minlength=2) <= 36).all()
    assert (times_covered(selection, 0)[:96, :96] >= 1).all()


@pytest.mark.parametrize(
    "box", [(WIDTH, 0, 50, 50), (-50, -50, 50, 50), (30, 30, 0, 20), (0, HEIGHT + 5, 10, 10), (30, 30, 0, 0)]
)
def test_what_holds_nothing_of_the_picture_gets_no_token(box: tuple[int, ...], picture: NDArray[np.uint8]) -> None:
    selection = tokens_in_regions(picture, {"out": box, "in": (0, 0, 32, 32)}, tokens=9)
    assert selection.regions == ("out", "in")
    assert selection.region is not None
    assert selection.region.tolist() == [1, 1, 1, 1]
    assert len(tokens_in_regions(picture, [box])) == 0


def test_no_region_gets_no_token(picture: NDArray[np.uint8]) -> None:
    selection = tokens_in_regions(picture, [])
    assert len(selection) == 0
    assert selection.regions == ()


def test_a_tiny_picture() -> None:
    selection = tokens_in_regions(np.zeros((1, 1, 3), np.uint8), [(0, 0, 1, 1), (-5, -5, 100, 100), (3, 3, 9, 9)])
    assert selection.region is not None
    assert selection.region.tolist() == [0, 1]


def test_the_budget_of_the_frame_is_shared(picture: NDArray[np.uint8]) -> None:
    boxes = [(0, 0, 200, 200), (200, 0, 200, 200), (0, 100, 200, 200)]
    shared = tokens_in_regions(picture, boxes, tokens=100, budget=60)
    assert shared.region is not None
    counts = np.bincount(shared.region)
    assert (counts <= 20).all()
    assert (counts >= 17).all()  # a quadtree grows by threes
    few = tokens_in_regions(picture, boxes, tokens=100, budget=2)
    assert few.region is not None
    assert sorted(few.region.tolist()) == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_parts(seed: int) -> None:
    random = np.random.default_rng(seed)
    asked = random.integers(1, 400, random.integers(1, 12)).tolist()
    budget = int(random.integers(1, 800))
    given = parts(asked, budget)
    assert sum(given) == min(sum(asked), budget)
    assert len(given) == min(len(asked), budget)
    assert all(1 <= part <= most for part, most in zip(given, asked, strict=False))
    if len(given) == len(asked) and sum(asked) > budget:
        share = (budget - len(asked)) / (sum(asked) - len(asked))
        assert all(abs(part - 1 - (most - 1) * share) < 1 + 1e-9 for part, most in zip(given, asked, strict=True))


def boxes_file(folder: Path, *lines: Any) -> str:
    path = folder / "boxes.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def test_regions_hold_until_the_next_line(tmp_path: Path) -> None:
    clip = [np.full((64, 64, 3), 90, np.uint8)] * 6  # at rest: an unchanged frame repeats a selection
    left, right = {"name": "left", "box": [0, 0, 32, 32]}, {"name": 7, "box": [32, 0, 32, 32], "id": 7, "score": 0.5}
    file = boxes_file(
        tmp_path,
        {"frame": 1, "regions": [left]},
        "",
        {"frame": 3, "regions": [right, left]},
        {"frame": 5, "regions": []},
    )
    with open_stream(clip, regions=file, engine="cpu") as stream:
        found = list(stream)
    assert [each.regions for each in found] == [(), ("left",), ("left",), ("7", "left"), ("7", "left"), ()]
    xs = [each.x.tolist() for each in found]
    assert xs[1] == xs[2] == [16]  # flat: one token of 32 pixels
    assert xs[3] == xs[4] == [16, 48]
    assert xs[0] == xs[5] == []
    assert found[3].region is not None
    assert found[3].region.tolist() == [1, 0]


def test_stream_memory_shows_what_changed_in_the_region(tmp_path: Path, picture: NDArray[np.uint8]) -> None:
    file = boxes_file(tmp_path, {"frame": 0, "regions": [{"name": "a", "box": [64, 64, 128, 128], "tokens": 64}]})
    beside, within = picture.copy(), picture.copy()
    beside[:, 256:] = 0
    within[:, 256:] = 0
    within[96:112, 96:112] = 255
    clip = [picture, picture, beside, within, within]
    with open_stream(clip, regions=file, engine="cpu", allocation={"memory": "stream"}) as stream:
        counts = [(len(each), each.x.tolist(), each.y.tolist()) for each in stream]
    assert counts[0][0] == 64
    assert [count for count, *_ in counts[1:3]] == [0, 0]
    assert counts[3][0] >= 1
    assert all(64 < x < 192 and 64 < y < 192 for x, y in zip(*counts[3][1:], strict=True))
    assert counts[4][0] == 0


def test_outputs_name_the_region(samples: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = boxes_file(
        tmp_path,
        {"frame": 1, "regions": [{"name": "one", "box": [300, 200, 99, 99]}, {"name": "two", "box": [9, 9, 9, 9]}]},
    )
    names = [str(tmp_path / f"tokens.{kind}") for kind in ("jsonl", "parquet", "npz")]
    clip = str(samples / "pedestrians.mp4")
    with open_stream(clip, regions=file, source={"frames": 3}, sinks=[open_sink(name) for name in names]) as stream:
        chosen = list(stream)
    header, *records = [json.loads(line) for line in Path(names[0]).read_text().splitlines()]
    assert header["config"]["regions"] == file
    assert [record["regions"] for record in records] == [[], ["one", "two"], ["one", "two"]]
    rows = parquet.read_table(names[1]).to_pylist()
    (_, arrays) = next(read_shards(names[2]))
    for record, row, each in zip(records, rows, chosen, strict=True):
        assert each.region is not None
        assert record["region"] == row["region"] == each.region.tolist()
        assert row["regions"] == record["regions"]
    assert arrays["region"].tolist() == [region for record in records for region in record["region"]]
    assert set(records[1]["region"]) == {0, 1}


GOOD = {"frame": 4, "regions": []}
BAD = {
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, NaN, 4]}]}': "regions.0.box.2 must be a finite number",
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, 3, Infinity]}]}': "regions.0.box.3 must be a finite number",
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, -3, 4]}]}': "regions.0.box.2 must be greater than or equal",
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, 3]}]}': "regions.0.box.3 is missing",
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, 3, 4, 5]}]}': "regions.0.box must have at most 4 items",
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, 3, "x"]}]}': "regions.0.box.3 must be a valid number",
    '{"frame": 5, "regions": [{"name": "a", "box": [1, 2, 3, 4], "tokens": 0}]}': "regions.0.tokens must be greater",
    '{"frame": 5, "regions": [{"box": [1, 2, 3, 4]}]}': "regions.0.name is missing",
    '{"frame": 5, "regions": [{"name": "a"}]}': "regions.0.box is missing",
    '{"frame": 5, "regions": [7]}': "regions.0 must be an object, got 7",
    '{"frame": 5, "regions": {}}': "regions must be a list",
    '{"frame": 5}': "regions is missing",
    '{"regions": []}': "frame is missing",
    '{"frame": 5.5, "regions": []}': "frame must be a valid integer",
    '{"frame": true, "regions": []}': "frame must be a valid integer",
    '{"frame": -1, "regions": []}': "frame must be greater than or equal to 0",
    '{"frame": 4, "regions": []}': "frame must be above 4, that of the line before, got 4",
    '{"frame": 3, "regions": []}': "frame must be above 4, that of the line before, got 3",
    '{"frame": 5, "regions"': "no valid JSON: EOF",
    "[]": "it must be an object",
    "boxes": "no valid JSON",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    path = boxes_file(tmp_path, GOOD, "", line)
    with pytest.raises(SettingsError) as caught:
        read_regions(Path(path))
    said = str(caught.value)
    assert said.startswith(f"regions: {path}, line 3: {BAD[line]}")
    assert "\n" not in said


def test_other_bad_input(tmp_path: Path, picture: NDArray[np.uint8]) -> None:
    with pytest.raises(SettingsError, match=r"no\.jsonl cannot be read: No such file"):
        read_regions(tmp_path / "no.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="line 1: no valid JSON"):
        read_regions(tmp_path / "bytes.jsonl")
    for boxes in ([(1, 2, 3)], [(1, 2, -3, 4)], [(1, 2, np.nan, 4)], ["abcd"], {"a": 7}, [(1, 2, 3, None)]):
        with pytest.raises(SettingsError, match=r"the region '(0|a)'"):
            regions_of(boxes)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="tokens must be at least 1, got 0"):
        tokens_in_regions(picture, [(0, 0, 9, 9)], tokens=0)
    with pytest.raises(SettingsError, match="takes boxes and tokens"):
        tokens_in_regions(picture, [(0, 0, 9, 9)], region_tokens=4)


@pytest.mark.parametrize(
    ("allocation", "said"),
    [
        ({"strategy": "soft"}, "regions need allocation.strategy 'rate_distortion'"),
        ({"memory": "stream", "budget_average": 50}, "cannot be combined"),
    ],
)
def test_settings_that_do_not_go_together(allocation: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings.model_validate({"regions": "boxes.jsonl", "allocation": allocation})
