"""Layouts: the four that come along, files of the user's own, cutting and stacking."""

import re

import numpy as np
import pytest

from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.layouts import cut, layouts, load_layout, stack


def test_the_four_layouts():
    assert list(layouts()) == ["spec13", "spec18", "spec40", "spec40-late"]
    table = [channel.name for channel in CHANNELS]
    assert list(load_layout("spec40")) == table
    late = load_layout("spec40-late")
    assert sorted(late) == sorted(table)
    assert late[34:37] == ("prev_relevance", "prev_saliency", "fixation")
    assert late[37:] == ("prev_attention", "attention", "gaze")
    assert list(load_layout("spec18")) == table[:18]
    assert len(load_layout("spec13")) == 13


def test_a_file_of_ones_own_and_what_is_wrong_with_it(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('channels = ["motion", "red"]\n')
    assert load_layout(str(file)) == ("motion", "red")
    file.write_text('\ufeffchannels = ["red"]\n', encoding="utf-8")  # as some editors write
    assert load_layout(str(file)) == ("red",)
    for text, said in (
        ('channels = ["motion", "rde"]', "names 'rde', which is not a channel"),
        ('channels = [["motion"]]', "names ['motion'], which is not a channel"),
        ('channels = ["motion", "motion"]', "names 'motion' twice"),
        ("channels = []", "must hold a list of channels"),
        ('chanels = ["red"]', "must hold a list of channels"),
        ("channels = [", "is not valid TOML"),
    ):
        file.write_text(text)
        with pytest.raises(SettingsError, match=re.escape(said)):
            load_layout(str(file))
    with pytest.raises(SettingsError, match="'spec41' is neither a layout nor a TOML file; layouts are spec13, spec18"):
        load_layout("spec41")
    with pytest.raises(SettingsError, match="No such file"):
        load_layout(str(tmp_path / "none.toml"))


def test_cut_keeps_the_order_and_stack_follows_it():
    assert cut(("red", "gaze", "motion"), {"motion", "red"}) == ("red", "motion")
    maps = {"red": np.zeros((2, 3), np.float32), "motion": np.ones((2, 3), np.float32)}
    assert stack(maps, ("motion", "red"))[:, 0, 0].tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="needs the map 'gaze'"):
        stack(maps, ("motion", "gaze"))
