"""The linear scorer: its files, its sums, and what it learns from attention."""

import re

import numpy as np
import pytest

from foveate.pipeline.cascade.linear_scorer import LinearScorer, read_scorer, write_scorer
from foveate.pipeline.cascade.training_data import Table, TrainingData, fit_scorer, read_training_data
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.stream import open_stream

PLANTED = {"edges": 0.5, "saliency": -0.2, "motion": 0.8, "lowpass": 0.0}


def test_the_score_is_the_weighted_sum_clipped():
    maps = {"edges": np.array([[0.0, 0.5, 1.0]], np.float32), "motion": np.array([[1.0, 0.0, 1.0]], np.float32)}
    scorer = LinearScorer({"edges": 0.8, "motion": -0.5, "gaze": 0.0}, 0.2)
    assert scorer.channels == {"edges", "motion"}
    assert scorer.score(maps)[0].tolist() == pytest.approx([0.0, 0.6, 0.5])
    assert LinearScorer({"edges": 0.0}, 0.3).score(maps)[0].tolist() == pytest.approx([0.3] * 3)


def test_a_file_of_either_kind_gives_the_same(tmp_path):
    toml, npz = tmp_path / "w.toml", tmp_path / "w.npz"
    toml.write_text("bias = 1\n[weights]\nedges = 0.25\nnormal_x = -3\n")
    np.savez(npz, channels=np.array(["edges", "normal_x"]), weights=np.array([0.25, -3.0]), bias=1.0)
    assert read_scorer(toml) == read_scorer(npz) == LinearScorer({"edges": 0.25, "normal_x": -3.0}, 1.0)
    toml.write_text("\ufeff" + toml.read_text(), encoding="utf-8")  # as some editors write
    assert read_scorer(toml) == read_scorer(npz)
    write_scorer(toml, LinearScorer(PLANTED, 1 / 3), "two\nlines")
    assert read_scorer(toml) == LinearScorer(PLANTED, 1 / 3)
    assert toml.read_text().startswith("# two\n# lines\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[weights]\nedgse = 1\n", "'edgse' is not a channel"),
        ("[weights]\nedges = nan\n", "the weight of 'edges' must be a finite number, got nan"),
        ("[weights]\nedges = 'a'\n", "the weight of 'edges' must be a finite number, got 'a'"),
        ("[weights]\nedges = true\n", "the weight of 'edges' must be a finite number, got True"),
        ("[weights]\ncluster_id = 1\n", "'cluster_id' is an identity and cannot be weighed"),
        ("[weights]\n", "there must be at least one weight"),
        ("bias = 1\n", "it must have a table [weights]"),
        ("bias = inf\n[weights]\nedges = 1\n", "bias must be a finite number, got inf"),
        ("wieghts = 1\n", "it may hold bias and [weights], not 'wieghts'"),
        ("[weights\n", "Expected"),
        (f"[weights]\nedges = {10**31}\n", "the weight of 'edges' must be at most 1e+30 either way"),
        (f"bias = -{10**400}\n[weights]\nedges = 1\n", "bias must be at most 1e+30 either way"),
        ("[weights]\nedges = 1e39\nmotion = -1e39\n", "the weight of 'edges' must be at most 1e+30 either way"),
    ],
)
def test_a_wrong_file_is_one_line(text, said, tmp_path):
    file = tmp_path / "w.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=re.escape(said)) as error:
        read_scorer(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_one_line_as_well(tmp_path):
    with pytest.raises(SettingsError, match="No such file"):
        read_scorer(tmp_path / "none.toml")
    for name, content in (("w.npz", b"nothing"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SettingsError, match=name):
            read_scorer(tmp_path / name)
    np.savez(tmp_path / "other.npz", weights=np.ones(2))
    with pytest.raises(SettingsError, match="channels"):
        read_scorer(tmp_path / "other.npz")
    np.savez(tmp_path / "short.npz", channels=np.array(["edges"]), weights=np.ones(2))
    with pytest.raises(SettingsError, match=r"short\.npz"):
        read_scorer(tmp_path / "short.npz")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"channels": "edges", "weights": 1.0}, "a list of names"),
        ({"channels": [["edges"]], "weights": [[1.0]]}, "a list of names"),
        ({"channels": [1], "weights": [1.0]}, "a list of names"),
        ({"channels": ["edges"], "weights": [1.0], "bias": [1.0, 2.0]}, "bias a number"),
        ({"channels": ["edges", "edges"], "weights": [1.0, 2.0]}, "must differ"),
        ({"channels": ["edges"], "weights": [1j]}, "the weight of 'edges' must be a finite number"),
    ],
)
def test_arrays_that_are_no_weights_are_one_line(arrays, said, tmp_path):
    np.savez(tmp_path / "w.npz", **{name: np.array(value) for name, value in arrays.items()})
    with pytest.raises(SettingsError, match=rf"w\.npz cannot be used: .*{said}"):
        read_scorer(tmp_path / "w.npz")


@pytest.mark.parametrize(
    "wrong",
    [
        {"channels": np.array("edges")},
        {"values": np.zeros((3, 2))},
        {"values": np.zeros((3, 1), complex)},
        {"attention": np.array(["a", "b", "c"])},
        {"attention": np.zeros((3, 1))},
        {"attention": np.array(1.0)},
        {"frame": np.array(["a", "b", "c"])},
        {"frame": np.zeros((3, 1), int)},
    ],
)
def test_arrays_that_are_no_training_data_are_one_line(wrong, tmp_path):
    good = {"channels": np.array(["edges"]), "values": np.zeros((3, 1)), "attention": np.ones(3), "frame": np.arange(3)}
    np.savez(tmp_path / "good.npz", **good)
    assert len(read_training_data([tmp_path / "good.npz"]).attention) == 3
    np.savez(tmp_path / "wrong.npz", **(good | wrong))
    with pytest.raises(SettingsError, match=r"wrong\.npz holds no training data: its arrays do not fit together"):
        read_training_data([tmp_path / "wrong.npz"])


def planted(tokens, noise, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.random((tokens, len(PLANTED))).astype(np.float32) * np.array([1, 0.3, 0.5, 0.01], np.float32)
    attention = 0.1 + values @ np.array(list(PLANTED.values())) + rng.standard_normal(tokens) * noise
    return Table(tuple(PLANTED), values, np.asarray(attention, np.float32), np.arange(tokens) // 20)


def test_planted_weights_are_found():
    learned = fit_scorer(planted(2_000, 0.0), 1e-9)
    assert learned.scorer.weights == pytest.approx(PLANTED, abs=1e-3)
    assert learned.scorer.bias == pytest.approx(0.1, abs=1e-3)
    assert learned.correlation == pytest.approx(1.0, abs=1e-4)
    noisy = fit_scorer(planted(5_000, 0.1))
    # A weight's standard error is noise / (spread * sqrt(tokens)): 0.1 / (0.087 * 71) for saliency, three of them.
    assert {name: noisy.scorer.weights[name] for name in ("edges", "saliency", "motion")} == pytest.approx(
        {name: PLANTED[name] for name in ("edges", "saliency", "motion")}, abs=0.05
    )
    assert 0.8 < noisy.correlation < 1


def test_what_cannot_be_learned_is_refused_and_what_never_varies_gets_nothing():
    table = planted(100, 0.0)
    with pytest.raises(SettingsError, match="nothing to learn"):
        fit_scorer(table._replace(attention=np.full(100, 0.5, np.float32)))
    with pytest.raises(SettingsError, match="nothing to learn"):
        fit_scorer(Table(("edges",), np.ones((100, 1), np.float32), table.attention, table.frame))
    values = table.values.copy()
    values[:, 1] = 0.25
    assert fit_scorer(table._replace(values=values)).scorer.weights["saliency"] == 0.0


def test_training_data_of_a_stream_teaches_what_the_model_looks_at(samples, tmp_path):
    """The model pays attention by what lies under a token, worked out here from the maps themselves."""
    names = ("edges", "motion", "saliency")
    training_data = TrainingData(names)
    clip = str(samples / "pedestrians.mp4")
    with open_stream(clip, source={"frames": 12}, maps=names) as stream:
        for selection in stream:
            attention = []
            for x, y, lod in zip(selection.x, selection.y, selection.lod, strict=True):
                half = 8 << int(lod)
                at = np.s_[max(y - half, 0) // 16 : (y + half) // 16, max(x - half, 0) // 16 : (x + half) // 16]
                edges, motion = (selection.maps[name][:36, :48][at].mean() for name in ("edges", "motion"))
                attention.append(min(0.05 + 0.3 * edges + 0.6 * motion, 1.0))
            training_data.add(selection, np.array(attention))
    training_data.save(tmp_path / "training_data.npz")
    table = read_training_data([tmp_path / "training_data.npz"])
    assert set(table.frame.tolist()) == set(range(12))
    learned = fit_scorer(table, 1e-9)
    assert learned.scorer.weights == pytest.approx({"edges": 0.3, "motion": 0.6, "saliency": 0.0}, abs=1e-3)
    assert learned.scorer.bias == pytest.approx(0.05, abs=1e-3)
    both = read_training_data([tmp_path / "training_data.npz"] * 2)
    assert len(both.frame) == 2 * len(table.frame)
    assert set(both.frame.tolist()) == set(range(24))


def test_training_data_is_checked(samples, tmp_path):
    with open_stream(str(samples / "tree.mp4"), source={"frames": 1}, maps=("edges",)) as stream:
        selection = next(stream)
    good = np.full(len(selection), 0.5)
    with pytest.raises(ValueError, match="no map 'motion'"):
        TrainingData(("edges", "motion")).add(selection, good)
    with pytest.raises(ValueError, match="one weight per token"):
        TrainingData(("edges",)).add(selection, good[:-1])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        TrainingData(("edges",)).add(selection, good * 3)
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(SettingsError, match=r"text\.npz"):
        read_training_data([tmp_path / "text.npz"])
    np.savez(tmp_path / "bare.npz", values=np.ones(3))
    with pytest.raises(SettingsError, match="holds no training data"):
        read_training_data([tmp_path / "bare.npz"])
    for name in ("edges", "motion"):
        TrainingData((name,)).save(tmp_path / f"{name}.npz")
    with pytest.raises(SettingsError, match="other channels"):
        read_training_data([tmp_path / "edges.npz", tmp_path / "motion.npz"])


@pytest.mark.parametrize(
    ("channels", "said"),
    [
        (("edges", "query"), "'query' is not a channel"),
        (("score",), "'score' is not a channel"),
        (("edges", "cluster_id"), "an identity"),
        (("edges", "motion", "edges"), "must differ"),
        ((), "at least one"),
    ],
)
def test_what_the_scorer_cannot_weigh_is_told_before_any_training_data(channels, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        TrainingData(channels)
    path = tmp_path / "earlier.npz"
    values = np.random.default_rng(0).random((9, len(channels)), np.float32)
    np.savez(
        path, channels=np.array(channels, str), values=values, attention=np.ones(9, np.float32), frame=np.arange(9)
    )
    with pytest.raises(SettingsError, match=rf"earlier\.npz.*{said}"):
        read_training_data([path])


def test_training_data_lies_in_the_file_that_was_named(tmp_path):
    TrainingData(("edges",)).save(tmp_path / "monday.training_data")
    assert [path.name for path in tmp_path.iterdir()] == ["monday.training_data"]
    assert read_training_data([tmp_path / "monday.training_data"]).channels == ("edges",)
