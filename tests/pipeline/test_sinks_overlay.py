"""The overlay: decoded again, its sizes, times, codec and colours; and what is drawn where."""

import itertools
import subprocess
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks import open_overlay
from foveate.pipeline.sinks.overlay.history import in_decibels
from foveate.pipeline.sinks.overlay.layout import layout_for
from foveate.pipeline.sinks.overlay.legend import Pen, QueryText, draw_legend
from foveate.pipeline.sinks.overlay.picture import OverlayPicture
from foveate.pipeline.sinks.overlay.reader import psnr

YELLOW = (255, 214, 64)  # the outline of a token of LOD 0
GREEN = (92, 232, 132)  # of LOD 1, at 80% over the picture
GREY = 128  # of the test picture, full range


def frame(width: int, height: int, index: int = 0, luma: int = GREY) -> Frame:
    """A plain grey picture."""
    return Frame(index, index / 10, np.full((height, width), luma, np.uint8), None, Colour("bt601", full_range=True))


def selection(
    width: int, height: int, tokens: list[tuple[int, int, int]], heat: float = 0.0, **changes: Any
) -> Selection:
    """Tokens given as (x, y, LOD), over a score map of one value."""
    x, y, lod = np.array(tokens, np.int32).reshape(-1, 3).T
    values = np.full(len(tokens), 0.5, np.float32)
    grid = np.full((2 * -(-height // 32), 2 * -(-width // 32)), heat, np.float32)
    plain = Selection(
        index=0,
        time=0.0,
        width=width,
        height=height,
        keyframe=None,
        changed=0.0,
        recomputed=0.0,
        x=x,
        y=y,
        lod=lod.astype(np.uint8),
        score=values,
        information=values,
        perspective=values,
        participation=None,
        age=np.zeros(len(tokens), np.int32),
        fresh=np.zeros(len(tokens), np.bool_),
        patches=np.full((len(tokens), 16, 16, 3), GREY, np.uint8),
        maps={"score": grid},
    )
    return replace(plain, **changes)


def header(width: int, height: int) -> Header:
    """A header for that size."""
    return Header("clip.mp4", width, height, 10.0, {"budget": 273})


def draw(width: int, height: int, tokens: list[tuple[int, int, int]]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The picture's and the score map's panel of one frame."""
    picture = OverlayPicture(header(width, height))
    canvas = picture.draw(frame(width, height), selection(width, height, tokens))
    return canvas[picture.layout.picture.box.slices], canvas[picture.layout.score.box.slices]


def test_outlines_shading_and_scale() -> None:
    # 640x480 is drawn as it is: the token at (40, 56) covers columns 32..47 and rows 48..63.
    panel, _ = draw(640, 480, [(256, 128, 4), (400, 304, 1), (40, 56, 0)])
    assert panel.shape == (480, 640, 3)
    for row, column in [(48, 32), (48, 47), (63, 32), (63, 47), (48, 40), (56, 47)]:
        assert tuple(panel[row, column]) == YELLOW
    assert set(panel[49:63, 33:47].ravel()) == {GREY}  # finest tokens show the picture as it is
    mixed = [round(0.8 * green + 0.2 * GREY * 225 / 255) for green in GREEN]
    assert np.abs(panel[288, 400].astype(int) - mixed).max() <= 1  # two roundings
    assert panel[304, 400].tolist() == [113] * 3  # GREY * 225 / 255
    assert panel[100, 300].tolist() == [70] * 3  # under LOD 4: GREY * 140 / 255
    assert panel[470, 10].tolist() == [48] * 3  # no token: GREY * 96 / 255


def test_small_pictures_are_enlarged_by_a_whole_factor() -> None:
    panel, _ = draw(320, 240, [(40, 56, 0)])
    assert panel.shape == (480, 640, 3)
    assert tuple(panel[96, 64]) == tuple(panel[127, 95]) == YELLOW
    assert tuple(panel[98, 66]) == (GREY,) * 3


def test_large_pictures_are_reduced() -> None:
    layout = layout_for(3840, 2160)
    assert layout.width == 1920
    assert layout.height % 2 == 0
    assert abs(layout.picture.box.width / layout.picture.box.height - 16 / 9) < 0.01


def test_the_score_map_goes_from_the_dimmed_picture_to_bright() -> None:
    picture = OverlayPicture(header(64, 64))
    chosen = selection(64, 64, [])
    chosen.maps["score"][:, 2:] = 0.5
    panel = picture.draw(frame(64, 64), chosen)[picture.layout.score.box.slices]
    cold, hot = panel[300, 20], panel[300, 600]
    assert cold.max() <= 0.3 * GREY + 6  # inferno begins at nearly black
    assert min(hot[0], hot[1]) > 240  # and ends at a pale yellow
    assert 120 < hot[2] < 220


@pytest.mark.parametrize("size", [(1, 1), (17, 1), (1, 33), (31, 639), (321, 241), (640, 2000), (7680, 432)])
def test_any_size(size: tuple[int, int]) -> None:
    picture = OverlayPicture(header(*size))
    layout = picture.layout
    canvas = picture.draw(frame(*size), selection(*size, [(8, 8, 0), (128, 128, 4)], heat=1.0))
    assert canvas.shape == (layout.height, layout.width, 3)
    assert layout.width % 2 == layout.height % 2 == 0
    assert layout.width <= 1920
    boxes = [box for panel in (layout.picture, layout.score, layout.reader, layout.history) for box in panel]
    taken = np.zeros((layout.height, layout.width), int)
    for box in (layout.legend, *boxes):
        assert min(box.x, box.y) >= 0
        assert box.x + box.width <= layout.width
        assert box.y + box.height <= layout.height
        taken[box.slices] += 1
    assert taken.max() == 1  # nothing lies over anything else


def test_another_size_is_letterboxed() -> None:
    picture = OverlayPicture(header(320, 240))  # panels of 640x480
    canvas = picture.draw(frame(640, 360), selection(640, 360, []))
    panel = canvas[picture.layout.picture.box.slices]
    assert (panel[60:420] == 48).all()  # GREY * 96 / 255
    assert (panel[:60] == panel[0, 0]).all()
    assert (panel[420:] == panel[0, 0]).all()


def test_the_scale_follows_a_falling_score_slowly() -> None:
    picture = OverlayPicture(header(64, 64))
    at = picture.layout.score.box.y + 300, picture.layout.score.box.x + 300
    bright = picture.draw(frame(64, 64), selection(64, 64, [], heat=0.8))[at]
    after = picture.draw(frame(64, 64), selection(64, 64, [], heat=0.4))[at]
    later = [picture.draw(frame(64, 64), selection(64, 64, [], heat=0.4))[at] for _ in range(30)][-1]
    assert int(after.sum()) < int(bright.sum())
    assert (later == bright).all()


def test_the_legend_tells_one_frame_from_another() -> None:
    picture = OverlayPicture(header(320, 240))
    rows, columns = picture.layout.legend.slices

    def legend(**changes: Any) -> NDArray[np.uint8]:
        tokens = changes.pop("tokens", [(8, 8, 0)])
        return picture.draw(frame(320, 240), selection(320, 240, tokens, **changes))[rows, columns]

    plain = legend()
    for changes in (
        {"index": 7},
        {"time": 7.125},
        {"keyframe": "cut"},
        {"changed": 0.5},
        {"recomputed": 0.5},
        {"tokens": [(8, 8, 1)]},
        {"tokens": [(8, 8, 0), (24, 8, 0)]},
        {"heat": 0.9},
        {"extras": {"query": ["red", "-blue"]}},
    ):
        assert (legend(**changes) != plain).any(), changes


def seen(picture: OverlayPicture, chosen: Selection, luma: int = GREY) -> NDArray[np.uint8]:
    """The panel of what the model sees."""
    canvas = picture.draw(frame(chosen.width, chosen.height, luma=luma), chosen)
    return canvas[picture.layout.reader.box.slices]


def test_what_the_model_sees_is_painted_from_the_tokens() -> None:
    patches = np.full((2, 16, 16, 3), (200, 40, 90), np.uint8)
    panel = seen(OverlayPicture(header(640, 480)), selection(640, 480, [(336, 240, 1), (40, 56, 0)], patches=patches))
    assert (panel[48:64, 32:48] == (200, 40, 90)).all()
    assert (panel[226:254, 322:350] == (200, 40, 90)).mean() > 0.9  # but its rim, which is blended
    assert (panel[400:, :300] == 128).all()  # nothing is known there


@pytest.mark.parametrize(("memory", "kept"), [("frame", False), ("stream", True)])
def test_only_a_reader_that_remembers_keeps_what_it_saw(memory: str, kept: bool) -> None:
    picture = OverlayPicture(Header("clip.mp4", 640, 480, 10.0, {"budget": 9, "allocation": {"memory": memory}}))
    white = np.full((1, 16, 16, 3), 255, np.uint8)
    seen(picture, selection(640, 480, [(40, 56, 0)], patches=white, keyframe="first"))
    panel = seen(picture, selection(640, 480, [(8, 8, 0)], index=1))
    assert (panel[50, 40] == 255).all() == kept
    panel = seen(picture, selection(640, 480, [(8, 8, 0)], index=2, keyframe="periodic"))
    assert (panel[50, 40] == 255).all() == kept
    panel = seen(picture, selection(640, 480, [(8, 8, 0)], index=3, keyframe="cut"))
    assert (panel[50, 40] == 128).all()


def test_the_psnr_is_that_of_the_whole_picture() -> None:
    """Equal pictures are exact; one value of 255 off everywhere is 0 dB; a difference of 16 is 24.05 dB."""
    black = np.zeros((4, 6, 3), np.uint8)
    assert psnr(black, black) == np.inf
    assert psnr(black, black + 255) == pytest.approx(0, abs=1e-9)
    assert psnr(black, black + 16) == pytest.approx(20 * np.log10(255 / 16))
    assert (in_decibels(np.inf), in_decibels(24.049)) == ("exact", "24.0 dB")


def test_the_chart_has_a_bar_for_each_frame() -> None:
    picture = OverlayPicture(header(640, 480))  # budget 273, 240 frames over 640 columns
    tokens = [(x, y, 0) for x, y in itertools.product(range(8, 640, 16), range(8, 480, 16))]
    background = picture.draw(frame(640, 480), selection(640, 480, []))[picture.layout.history.box.slices][5, 5]
    canvas = picture.draw(frame(640, 480), selection(640, 480, tokens[:137], index=1))
    column = canvas[picture.layout.history.box.slices][:, 638]
    filled = (column != background).any(axis=1)
    assert filled[-230:].all()  # 137 of 273 tokens are half of 480 pixels
    assert filled[:230].mean() < 0.05  # but for a line


def test_a_picture_without_patches_is_refused() -> None:
    with pytest.raises(ValueError, match="patches"):
        OverlayPicture(header(64, 64)).draw(frame(64, 64), selection(64, 64, [(8, 8, 0)], patches=None))


@pytest.mark.parametrize("text", ["red, -blue:0.5", "grün ☂ 赤", "x" * 5000, "a\nb"])
def test_any_query_can_be_written(text: str) -> None:
    picture = OverlayPicture(Header("clip.mp4", 640, 480, 10.0, {"query": [text]}))
    with_query = picture.draw(frame(640, 480), selection(640, 480, []))
    without = OverlayPicture(header(640, 480)).draw(frame(640, 480), selection(640, 480, []))
    assert (with_query != without).any()


def encode(path: Path, times: list[float]) -> None:
    """A grey clip with one token, its pictures at those times."""
    sink = open_overlay(str(path))
    sink.open(header(320, 240))
    for index, time in enumerate(times):
        sink.write(frame(320, 240, index), selection(320, 240, [(40, 56, 0)], index=index, time=time))
    sink.close()


TIMES = [0.0, 0.1, 0.2, 1.0, 1.05, *[2.0 + 0.04 * step for step in range(95)]]


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv"])
def test_decoded_again(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    encode(path, TIMES)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert (stream.codec_context.width, stream.codec_context.height) == (1284, 84 + 2 * (4 + 22 + 480))
        assert (stream.codec_context.colorspace, stream.codec_context.color_range) == (1, 1)  # BT.709, limited
        pictures = list(container.decode(stream))
    # Matroska keeps milliseconds, MP4 ticks of 1/90000 s.
    tolerance = 0.0006 if suffix == ".mkv" else 1e-5
    assert [picture.time for picture in pictures] == pytest.approx(TIMES, abs=tolerance)
    panel = pictures[-1].to_ndarray(format="rgb24", src_colorspace="itu709")[110:, :640]
    # The token's upper edge is one pixel high, so 4:2:0 halves its chroma; its luma must stand out all the same:
    # yellow has luma 212, the picture inside 128.
    luma = pictures[-1].to_ndarray(format="yuv420p")[110:590, :640].astype(int)
    assert luma[96, 66:94].min() > 170
    assert abs(int(np.median(luma[100:124, 68:92])) - round(16 + 219 * GREY / 255)) <= 2
    assert np.abs(panel[100:124, 68:92].astype(int) - GREY).mean() <= 3


def test_colours_survive(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    sink = open_overlay(str(path))
    sink.open(header(640, 480))
    red = np.full((480, 640), 76, np.uint8), np.full((480, 640), 85, np.uint8), np.full((480, 640), 255, np.uint8)
    picture = Frame(0, 0.0, red[0], (red[1], red[2]), Colour("bt601", full_range=True))  # JFIF's red
    tokens = [(x, y, 0) for x, y in itertools.product(range(8, 640, 16), range(8, 480, 16))]
    sink.write(picture, selection(640, 480, tokens))
    sink.close()
    layout = layout_for(640, 480)
    with av.open(str(path)) as container:
        [shown] = list(container.decode(video=0))
    planes = shown.to_ndarray(format="yuv420p")
    inside = planes[layout.picture.box.y + 8, layout.picture.box.x + 8]
    # Red in BT.709, limited range, is Y 63; lossy coding at this quality stays within a few codes.
    assert abs(int(inside) - 63) <= 6


def test_times_that_stand_still_still_give_every_picture(tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", [0.0, 0.5, 0.5, 0.5])
    with av.open(str(tmp_path / "a.mp4")) as container:
        ticks = [Fraction(picture.pts) * picture.time_base for picture in container.decode(video=0)]
    assert ticks == sorted(set(ticks))
    assert len(ticks) == 4


def test_closed_mp4_is_a_plain_one(tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", TIMES)
    data = (tmp_path / "a.mp4").read_bytes()
    boxes, at = [], 0
    while at < len(data):
        boxes.append(data[at + 4 : at + 8].decode())
        at += int.from_bytes(data[at : at + 4], "big")
    assert boxes == ["ftyp", "free", "mdat", "moov"]  # no fragments are left, so that every player can seek


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    sys.path.insert(0, sys.argv[2])
    from test_sinks_overlay import frame, header, open_overlay, selection
    sink = open_overlay(sys.argv[1])
    sink.open(header(320, 240))
    for index in range(100):
        sink.write(frame(320, 240, index), selection(320, 240, [(40, 56, 0)], index=index, time=index / 10))
    os.kill(os.getpid(), signal.SIGKILL)
    """
)


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv"])
def test_playable_after_kill_9(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path), str(Path(__file__).parent)], check=False)
    assert done.returncode == -9
    with av.open(str(path)) as container:
        times = [picture.time for picture in container.decode(video=0)]
    # 100 pictures were handed in; the encoder and the last fragment, of a second (10 pictures), hold the rest.
    assert len(times) >= 50
    assert times == pytest.approx([index / 10 for index in range(len(times))], abs=0.001)


def test_words_that_are_ignored_stand_before_the_query() -> None:
    header = Header("clip.mp4", 640, 480, 10.0, {"query": ["a red car", "blue"]}, ignored=("car",))
    text, plain = QueryText(header), selection(640, 480, [])
    assert text.of(plain) == "(ignored: car) a red car, blue"
    changed = replace(plain, extras={"query": ("big van",), "query_ignored": ("van",)})
    assert text.of(changed) == "(ignored: van) big van"
    assert text.of(replace(plain, extras={"query": ("red",)})) == "red"


def test_the_legend_counts_tokens_coarser_than_its_last_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(Pen, "number", lambda self, label, value, room, gap=0: told.append((label, value)))
    image = np.zeros((180, 1600, 3), np.uint8)
    for lods in ([0, 4], [0, 4, 5, 7]):
        draw_legend(image, selection(4096, 4096, [(64, 64, lod) for lod in lods]), None, "", 1.0, 0.6)
    sizes = [(label, value) for label, value in told if label.endswith("px")]
    finer = [("16 px", "1"), ("32 px", "0"), ("64 px", "0"), ("128 px", "0")]
    assert sizes == [*finer, ("256 px", "1"), *finer, ("256+ px", "3")]
