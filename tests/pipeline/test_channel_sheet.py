"""The picture of the channels: colours that mean what they should."""

import numpy as np

from foveate.pipeline.sinks.channel_colours import coloured
from foveate.pipeline.sinks.channel_sheet import draw_sheet


def test_signed_channels_go_from_blue_over_white_to_red():
    red, green, blue = np.moveaxis(coloured("normal_x", np.array([[-0.5, 0.0, 0.25, 0.5]], np.float32)), -1, 0)[:, 0]
    assert blue[0] > red[0] + 100
    assert red[3] > blue[3] + 100
    assert min(red[1], green[1], blue[1]) > 235  # near white
    assert blue[1] > blue[2] > blue[3]


def test_a_colour_channel_is_its_colour_and_keeps_its_range():
    for place, name in enumerate(("red", "green", "blue")):
        image = coloured(name, np.array([[0.0, 0.25]], np.float32))
        assert image[0, 1, place] == 64
        assert image.sum() == 64


def test_other_channels_get_brighter_up_to_their_greatest_value():
    for top in (1.0, 0.01):
        brightness = coloured("motion", np.linspace(0, top, 9, dtype=np.float32)[None]).astype(int).sum(axis=2)[0]
        assert (np.diff(brightness) > 0).all()
    assert (coloured("motion", np.zeros((2, 2), np.float32)) == coloured("motion", np.zeros((1, 1), np.float32))).all()


def test_clusters_that_touch_have_different_colours():
    colours = coloured("cluster_id", np.arange(50, dtype=np.float32)[None])[0]
    assert len({tuple(each) for each in colours.tolist()}) == 50


def test_a_sheet_of_a_tiny_or_a_tall_picture():
    for high, wide in ((1, 1), (639, 31), (31, 639)):
        cells = -(-high // 32) * 2, -(-wide // 32) * 2
        maps = {"red": np.ones(cells, np.float32), "gaze": np.zeros(cells, np.float32)}
        sheet = draw_sheet(np.zeros((high, wide, 3), np.uint8), maps, ("gaze", "motion", "red"), "frame 0")
        assert sheet.shape[1] == 3 * 272 + 8  # the picture, and the two maps there are
        assert sheet.shape[0] <= 3 * 264 + 56
        assert sheet[60, 2 * 272 + 20].tolist() == [255, 0, 0]
