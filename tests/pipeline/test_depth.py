"""Channels from a depth model of the user's."""

import numpy as np
import pytest

from foveate.pipeline.cascade.depth import depth_of, from_depth, normals
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.plugins import load_function


def test_depth_is_the_mean_over_each_cell_and_the_padding_repeats_the_edge():
    geometry = Geometry(70, 40)  # cells of which the last ones are partly, or wholly, padding
    depth = np.random.default_rng(0).random((40, 70))
    found = depth_of(np.zeros((40, 70, 3), np.uint8), lambda picture: depth, geometry)
    assert found.shape == geometry.grid == (4, 6)
    assert found[0, 0] == pytest.approx(depth[:16, :16].mean(), abs=1e-6)
    edge = np.pad(depth, ((0, 8), (0, 10)), mode="edge")
    assert found[2, 4] == pytest.approx(edge[32:48, 64:80].mean(), abs=1e-6)
    assert found[3, 5] == found[2, 4]


def test_the_model_sees_the_picture_and_may_answer_at_any_size():
    geometry = Geometry(64, 32)
    picture = np.zeros((32, 64, 3), np.uint8)
    picture[:, 32:] = 255
    found = depth_of(picture, lambda rgb: rgb[::2, ::2, 0] / 255, geometry)
    assert found[:, 0].tolist() == [0, 0]
    assert found[:, 3].tolist() == [1, 1]
    assert depth_of(picture, lambda rgb: np.full((1, 1), 0.25, np.float32), geometry) == pytest.approx(0.25)
    one = Geometry(1, 1)
    assert depth_of(np.zeros((1, 1, 3), np.uint8), lambda rgb: np.full((5, 5), 0.5), one) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.zeros((4, 4, 1)), "must give float[h, w], got float64[4, 4, 1]"),
        (np.zeros((4, 4), int), "must give float[h, w]"),
        (np.zeros((0, 4)), "must give float[h, w]"),
        (np.full((4, 4), np.nan), "finite numbers in [0, 1]"),
        (np.full((4, 4), 1.5), "finite numbers in [0, 1]"),
        (None, "must give float[h, w]"),
    ],
)
def test_another_answer_is_refused(answer, said):
    with pytest.raises(EngineError) as error:
        depth_of(np.zeros((32, 32, 3), np.uint8), lambda picture: answer, Geometry(32, 32))
    assert said in str(error.value)


def test_a_plane_has_one_normal_and_no_occlusion_but_at_its_end():
    """Depth falls from 1 to 0 over the picture's width: the surface is turned by 45 degrees, to the left."""
    columns = 20
    slope = np.broadcast_to(1 - np.arange(columns, dtype=np.float32) / columns, (8, columns))
    for axis, wanted in enumerate((-np.sqrt(0.5), 0.0, np.sqrt(0.5))):
        assert normals(slope)[axis] == pytest.approx(wanted, abs=1e-5)
        assert from_depth(f"normal_{'xyz'[axis]}", slope) == pytest.approx(wanted, abs=1e-5)
    flat = np.full((8, columns), 0.5, np.float32)
    assert from_depth("normal_z", flat) == pytest.approx(1)
    step = flat.copy()
    step[:, 10:] = 0.45
    assert from_depth("occlusion", step)[:, 9:11] == pytest.approx(0.5, abs=1e-5)
    assert not from_depth("occlusion", step)[:, :9].any()
    step[:, 10:] = 0.1
    assert (from_depth("occlusion", step)[:, 9:11] == 1).all()
    assert from_depth("depth", step) is step
    assert normals(np.zeros((1, 1), np.float32)).ravel().tolist() == [0, 0, 1]


def test_plug_ins_by_module_and_by_file(tmp_path):
    assert load_function("math:sqrt")(9) == 3
    file = tmp_path / "mine.py"
    file.write_text("def twice(x):\n    return 2 * x\nnumber = 3\n")
    assert load_function(f"{file}:twice")(4) == 8
    for name, said in (
        ("math", "is written module:function or file.py:function, got 'math'"),
        ("math:", "is written module:function"),
        ("no.such.module:f", "cannot be imported: ModuleNotFoundError"),
        (f"{tmp_path}/none.py:f", "cannot be imported: FileNotFoundError"),
        (f"{file}:thrice", "has no function 'thrice'"),
        (f"{file}:number", "has no function 'number'"),
    ):
        with pytest.raises(SettingsError) as error:
            load_function(name)
        assert said in str(error.value)
    file.write_text("1 / 0\n")
    with pytest.raises(SettingsError, match="ZeroDivisionError: division by zero"):
        load_function(f"{file}:twice")
