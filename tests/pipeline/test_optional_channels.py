"""Channels that are off by default, the linear scorer and the second pass, in whole streams."""

import itertools

import numpy as np
import pytest

from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.layouts import load_layout, stack
from foveate.pipeline.stream import open_stream

MODEL = """
import numpy as np
calls = []
def slope(rgb):
    calls.append(rgb.shape)
    return np.broadcast_to(np.linspace(0, 1, rgb.shape[1], dtype=np.float32), rgb.shape[:2])
def broken(rgb):
    raise RuntimeError("out of ideas")
def flat(rgb):
    return np.zeros(3)
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "mine.py").write_text(MODEL)
    return f"{tmp_path / 'mine.py'}:"


def first(clip, **asked):
    with open_stream(str(clip), **{"source": {"frames": 1}, **asked}) as stream:
        return next(stream)


def test_all_forty_channels_make_a_stack_within_their_ranges(samples):
    layout = load_layout("spec40-late")
    wanted = {"source": {"frames": 40}, "maps": layout, "change": {"keyframe_interval": 100}}
    with open_stream(str(samples / "pedestrians.mp4"), **wanted) as stream:
        stream.set_gaze(300, 200)
        for selection in stream:
            if selection.index < 10:
                stream.add_attention(selection.index, np.linspace(0, 1, len(selection)))
    values = stack(selection.maps, layout)
    assert values.shape == (40, 36, 48)
    assert values.dtype == np.float32
    for name, each in zip(layout, values, strict=True):
        assert each.min() >= BY_NAME[name].low - 1e-6, name
        assert each.max() <= BY_NAME[name].high + 1e-6, name
        assert each.min() < each.max() or name.startswith("clip"), name  # some colours are nowhere in the picture


def test_rope_turns_with_the_place(samples):
    maps = first(samples / "tree.mp4", maps=("rope_sin", "rope_cos", "x", "y")).maps
    assert maps["rope_sin"] ** 2 + maps["rope_cos"] ** 2 == pytest.approx(1, abs=1e-6)
    angle = np.unwrap(np.arctan2(maps["rope_sin"], maps["rope_cos"])[4])
    inside = maps["x"][4] < 1
    assert np.diff(angle)[inside[1:]] == pytest.approx(np.pi * 16 / 320, abs=1e-5)
    column = np.unwrap(np.arctan2(maps["rope_sin"], maps["rope_cos"])[:, 4])
    assert np.diff(column)[:13] == pytest.approx(np.pi / 2 * 16 / 240, abs=1e-5)


def test_depth_is_asked_on_keyframes_and_moves_with_the_picture_between_them(samples, model):
    names = ("depth", "normal_x", "normal_y", "normal_z", "occlusion")
    wanted = {"depth": model + "slope", "maps": names, "change": {"keyframe_interval": 10}, "source": {"frames": 21}}
    with open_stream(str(samples / "pedestrians.mp4"), **wanted) as stream:
        selections = list(stream)
    assert sum(each.keyframe is not None for each in selections) == 3
    centres = (np.arange(48) * 16 + 7.5) / 767
    for at in (0, 10, 20):
        maps = selections[at].maps
        assert maps["depth"][5] == pytest.approx(centres, abs=1e-4)
        # One picture's width of depth over one picture's width: turned by 45 degrees, to the right.
        assert maps["normal_x"][5, 5:40] == pytest.approx(np.sqrt(0.5), abs=2e-3)
        assert maps["normal_y"] == pytest.approx(0, abs=1e-4)
        assert maps["occlusion"][:, 5:40] == pytest.approx(16 / 767 / 0.1, abs=1e-3)
    assert np.abs(selections[9].maps["depth"] - selections[0].maps["depth"]).max() < 0.1
    assert (selections[9].maps["depth"] != selections[0].maps["depth"]).any()  # carried along the flow


def test_a_depth_model_that_nothing_reads_is_never_asked(samples, tmp_path):
    file = tmp_path / "strict.py"
    file.write_text("def model(rgb):\n    raise RuntimeError('asked')\n")
    assert len(first(samples / "tree.mp4", depth=f"{file}:model"))


def test_what_a_depth_model_does_wrong_is_one_line(samples, model):
    clip = samples / "tree.mp4"
    with pytest.raises(EngineError, match="the depth model failed: RuntimeError: out of ideas"):
        first(clip, depth=model + "broken", maps=("depth",))
    with pytest.raises(EngineError, match=r"must give float\[h, w\], got float64\[3\]"):
        first(clip, depth=model + "flat", maps=("depth",))
    with pytest.raises(SettingsError, match="has no function 'none'"):
        first(clip, depth=model + "none", maps=("depth",))
    with pytest.raises(SettingsError, match="the channel 'normal_x' needs a depth model"):
        first(clip, maps=("normal_x",))


def test_the_query_is_a_channel(samples):
    maps = first(samples / "pedestrians.mp4", query=("green",), maps=("query", "query_similarity")).maps
    assert maps["query"].any()
    assert (maps["query"] == maps["query_similarity"]).all()


def test_the_linear_scorer_weighs_channels(samples, tmp_path):
    file = tmp_path / "w.toml"
    file.write_text("bias = 0.05\n[weights]\nred = 0.5\nx = 0.25\nedges = -0.5\nboundary = 0.125\n")
    names = ("score", "red", "x", "edges", "boundary", "edge_distance")
    chosen = {"scorer": "linear", "weights": str(file)}
    selection = first(samples / "pedestrians.mp4", score=chosen, maps=names)
    maps = selection.maps
    plain = 0.05 + 0.5 * maps["red"] + 0.25 * maps["x"] - 0.5 * maps["edges"] + 0.125 * maps["boundary"]
    assert maps["score"] == pytest.approx(np.clip(plain, 0, 1), abs=1e-6)  # on a keyframe no cell is culled
    fine = selection.lod == 0
    assert selection.score[fine] == pytest.approx(maps["score"][selection.y[fine] // 16, selection.x[fine] // 16])
    # Channels that only the scorer reads are made for it, whatever they come from.
    file.write_text("[weights]\nclip3 = 1\ntext = 1\nfixation = 1\nquery_similarity = 1\npass1_score = 1\n")
    with open_stream(
        str(samples / "pedestrians.mp4"), source={"frames": 5}, query=("green",), score={**chosen, "passes": 2}
    ) as stream:
        assert all(len(selection) for selection in stream)


def test_a_linear_scorer_needs_its_file_and_only_it(samples, tmp_path):
    clip = samples / "tree.mp4"
    for chosen in ({"scorer": "linear"}, {"weights": "w.toml"}):
        with pytest.raises(SettingsError, match=r"score\.weights must be given with score\.scorer = 'linear'"):
            first(clip, score=chosen)
    with pytest.raises(SettingsError, match=r"cannot read the weights none\.toml: No such file"):
        first(clip, score={"scorer": "linear", "weights": "none.toml"})
    file = tmp_path / "w.toml"
    file.write_text("[weights]\npass1_score = 1\n")
    with pytest.raises(SettingsError, match=r"'pass1_score' needs score\.passes = 2"):
        first(clip, score={"scorer": "linear", "weights": str(file)})
    file.write_text("[weights]\nocclusion = 1\n")
    with pytest.raises(SettingsError, match="'occlusion' needs a depth model"):
        first(clip, score={"scorer": "linear", "weights": str(file)})


def test_the_file_of_weights_is_read_once(samples, tmp_path):
    """What is asked of a stream while it runs does not depend on a file that is deleted meanwhile."""
    file = tmp_path / "w.toml"
    file.write_text("[weights]\nedges = 1\nclip3 = 1\n")
    chosen = {"scorer": "linear", "weights": str(file)}
    with open_stream(str(samples / "pedestrians.mp4"), source={"frames": 6}, score=chosen) as stream:
        next(stream)
        file.unlink()
        stream.set_budget(50)
        stream.set_keyframe_interval(4)
        stream.set_query(["red"])
        rest = list(stream)
    assert len(rest) == 5
    assert 0 < len(rest[-1]) <= 50


def test_the_second_look_starts_where_the_first_found_most(samples):
    clip, names = samples / "pedestrians.mp4", ("score", "eccentricity", "pass1_score")
    once = first(clip, maps=names[:2]).maps
    twice = first(clip, maps=names, score={"passes": 2}).maps
    assert (twice["pass1_score"] == once["score"]).all()
    sums = np.zeros((36, 48))
    for down, across in itertools.product(range(-2, 3), repeat=2):
        sums += np.pad(once["score"].astype(float), 2)[2 + down : 38 + down, 2 + across : 50 + across]
    row, column = np.unravel_index(sums.argmax(), sums.shape)
    assert np.unravel_index(twice["eccentricity"].argmin(), sums.shape) == (row, column)
    assert twice["eccentricity"][row, column] == 0
    assert once["eccentricity"][row, column] > 0
    assert twice["score"][row, column] > once["score"][row, column]
    with open_stream(str(clip), maps=names, score={"passes": 2}, source={"frames": 1}) as stream:
        stream.set_gaze(8, 8)
        gazing = next(stream).maps
    assert gazing["eccentricity"][0, 0] == 0
    assert (gazing["score"] == gazing["pass1_score"]).all()


def test_clusters_are_made_on_every_frame_where_nothing_is_carried(samples):
    wanted = {"maps": ("cluster_id",), "cache": {"enabled": False}, "source": {"frames": 3}}
    with open_stream(str(samples / "pedestrians.mp4"), **wanted) as stream:
        assert [len(np.unique(each.maps["cluster_id"])) > 20 for each in stream] == [True] * 3
