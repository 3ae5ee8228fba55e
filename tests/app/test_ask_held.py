"""What is held until a question is asked, by hand."""

from dataclasses import replace

import pytest

from foveate.app.ask.frames_held import LatestFrames, LiveTokens
from tests.pipeline.vlm_selections import selection_of


def test_the_latest_frames_count() -> None:
    frames: LatestFrames[str] = LatestFrames(2, None)
    for second, name in enumerate("abc"):
        frames.add(second, 10 + second, 100, name)
    assert frames.shown == ["b", "c"]
    assert str(frames.account()) == "2 frames, 1.0 to 2.0 s: 23 of 200 language-model tokens (11.5%)"


def test_the_oldest_frames_leave_for_the_limit_and_the_latest_one_stays() -> None:
    frames: LatestFrames[str] = LatestFrames(None, 30, per_frame=5)
    for second, (name, cost) in enumerate([("a", 10), ("b", 10), ("c", 9), ("d", 40)]):
        frames.add(second, cost, 100, name)
        assert frames.shown == [["a"], ["a", "b"], ["b", "c"], ["d"]][second]
    assert str(frames.account()).endswith("40 of 100 language-model tokens (40.0%); earlier frames left out by --limit")


@pytest.mark.parametrize("scenes", [False, True])
def test_a_scene_cut_ends_what_was_before_it_only_where_scenes_do_not_count(scenes: bool) -> None:
    """A picture of 4 x 2 cells: 8 tokens, 2 in their place, and after the cut 2 coarse ones."""
    cells = [(0, 8 + 16 * column, 8 + 16 * row) for row in range(2) for column in range(4)]
    tokens = LiveTokens(100, 1, 0, scenes=scenes)
    tokens.add(selection_of(64, 32, cells))
    tokens.add(replace(selection_of(64, 32, cells[:2]), index=1, time=1.0, keyframe=None))
    told = "8 of 16 language-model tokens (50.0%), what is still visible of 10 selected"
    assert str(tokens.account()) == f"2 frames, 0.0 to 1.0 s: {told}"
    tokens.add(replace(selection_of(64, 32, [(1, 16, 16), (1, 48, 16)]), index=2, time=2.0, keyframe="cut"))
    assert [len(shown) for shown in tokens.shown] == ([6, 2, 2] if scenes else [2])
    assert tokens.account().given == (10 if scenes else 2)


def test_the_oldest_scene_leaves_first() -> None:
    tokens = LiveTokens(20, 1, 3, scenes=True)
    for index in range(4):
        made = selection_of(64, 32, [(1, 16, 16), (1, 48, 16), (0, 8, 8)][: 2 + index % 2])
        tokens.add(replace(made, index=index, time=float(index), keyframe="cut"))
    assert [shown.index for shown in tokens.shown] == [0, 1, 2, 3][1:]  # 6 + 5 + 6 tokens, and 5 more are too many
    assert str(tokens.account()).endswith("; tokens that cover little left out by --limit")
