"""What the model sees, painted from the tokens' own patches; the tokens drawn; both in a notebook."""

import base64
import itertools
import re
from dataclasses import replace

import cv2
import numpy as np
import pytest

from foveate.bench.reader.painting import ReaderPicture, decibels, lods_of, mean_square
from foveate.pipeline import open_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.selection.painting import blank, paint_patches

GREY = 128


def noise(height, width, seed=0):
    """Smoothed noise of three colours."""
    rough = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return cv2.GaussianBlur(rough, (0, 0), 2)


def box_means(picture, level):
    """float64[H >> level, W >> level, 3], rounded to whole numbers as patches are."""
    side = 1 << level
    height, width, _ = picture.shape
    return np.rint(picture.reshape(height // side, side, width // side, side, 3).mean(axis=(1, 3)))


def interpolated(samples, factor):
    """Samples enlarged bilinearly along both axes, centres aligned, the border repeated: a direct transcription."""
    for axis in (0, 1):
        count = samples.shape[axis]
        at = np.clip((np.arange(count * factor) + 0.5) / factor - 0.5, 0, count - 1)
        before = np.minimum(at.astype(int), count - 1)
        after = np.minimum(before + 1, count - 1)
        part = (at - before).reshape(-1, *[1] * (2 - axis))
        samples = samples.take(before, axis) * (1 - part) + samples.take(after, axis) * part
    return samples


def tokens_of(picture, places):
    """patches, x, y, lod of tokens at (lod, row, column), in units of their own size, with means as samples."""
    patches = [
        box_means(picture, lod)[16 * row : 16 * row + 16, 16 * column : 16 * column + 16] for lod, row, column in places
    ]
    lod, row, column = np.array(places).T
    side = 16 << lod
    return np.array(patches, np.uint8), column * side + side // 2, row * side + side // 2, lod


def selection(picture, places, **changes):
    patches, x, y, lod = tokens_of(picture, places)
    count, (height, width, _) = len(places), picture.shape
    some = np.zeros(count, np.float32)
    made = Selection(
        index=3, time=0.12, width=width, height=height, keyframe=None, changed=0.5, recomputed=0.5,
        x=x.astype(np.int32), y=y.astype(np.int32), lod=lod.astype(np.uint8), score=some, information=some,
        perspective=some, participation=None, age=np.zeros(count, np.int32), fresh=np.ones(count, np.bool_),
        patches=patches,
    )  # fmt: skip
    return replace(made, **changes)


ALL_OF_ONE = [(1, row, column) for row in range(4) for column in range(6)]


@pytest.mark.parametrize("lod", [1, 2, 3])
def test_tokens_side_by_side_are_their_level_enlarged_as_a_whole(lod):
    picture = noise(16 << 4, 16 << 4)
    count = 16 >> lod
    places = [(lod, row, column) for row in range(count) for column in range(count)]
    painted = paint_patches(blank(256, 256), *tokens_of(picture, places))
    expected = interpolated(box_means(picture, lod), 1 << lod)
    assert np.abs(painted - expected).max() <= 1.0  # the fixed-point arithmetic of OpenCV


def test_beside_finer_tokens_the_border_is_as_exact():
    picture = noise(64, 64)
    coarse = [(1, 0, 0), (1, 1, 0), (1, 1, 1)]
    fine = [(0, row, column) for row in range(2) for column in (2, 3)]
    painted = paint_patches(blank(64, 64), *tokens_of(picture, coarse + fine))
    expected = interpolated(box_means(picture, 1), 2)
    expected[:32, 32:] = picture[:32, 32:]
    assert np.abs(painted - expected).max() <= 1.0


def test_a_token_alone_ends_in_what_was_there():
    picture = noise(96, 96)
    onto = np.full((96, 96, 3), 200, np.uint8)
    before = onto.copy()
    painted = paint_patches(onto, *tokens_of(picture, [(1, 1, 1)]))
    around = box_means(np.full_like(picture, 200), 1)
    around[16:32, 16:32] = box_means(picture, 1)[16:32, 16:32]
    expected = np.full(picture.shape, 200.0)
    expected[32:64, 32:64] = interpolated(around, 2)[32:64, 32:64]
    assert np.abs(painted - expected).max() <= 1.0
    assert (onto == before).all()


def test_full_resolution_is_as_it_is():
    picture = noise(48, 80)
    places = [(0, row, column) for row in range(3) for column in range(5)]
    for interpolation in ("bilinear", "bicubic"):
        assert (paint_patches(blank(80, 48), *tokens_of(picture, places), interpolation) == picture).all()


def test_bicubic_is_opencvs_over_the_whole_level():
    picture = noise(128, 192)
    painted = selection(picture, ALL_OF_ONE).paint(interpolation="bicubic")
    small = box_means(picture, 1).astype(np.uint8)
    expected = cv2.resize(small, (192, 128), interpolation=cv2.INTER_CUBIC)
    assert (painted == expected).all()
    assert (painted != selection(picture, ALL_OF_ONE).paint()).any()


@pytest.mark.parametrize("lod", [5, 6, 8])
def test_tokens_may_be_coarser_than_any_picture(lod):
    patch = np.full((1, 16, 16, 3), 77, np.uint8)
    painted = paint_patches(blank(300, 200), patch, np.array([0]), np.array([199]), np.array([lod]))
    assert (painted == 77).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 17), (31, 639), (241, 321)])
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_pictures_of_any_size_are_painted_whole(shape, memory, tmp_path):
    height, width = shape
    cv2.imwrite(str(tmp_path / "flat.png"), np.full((height, width, 3), (30, 90, 200), np.uint8))
    with open_stream(tmp_path / "flat.png", engine="cpu", patches=True, allocation={"memory": memory}) as stream:
        painted = next(stream).paint()
    assert painted.shape == (height, width, 3)
    assert np.abs(painted.astype(int) - (200, 90, 30)).max() <= 1


@pytest.mark.parametrize("clip", ["pedestrians", "bunny"])
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_it_is_nearly_what_the_levels_themselves_would_show(clip, memory, samples):
    """PSNR against the frame, beside that of tokens enlarged with the true samples around them."""
    settings = {"patches": True, "allocation": {"memory": memory}, "source": {"frames": 12}, "engine": "cpu"}
    settings["change"] = {"threshold": 0}  # so that tokens are sampled from the very frame
    painted, reader, losses, apart = None, None, [], []
    with open_stream(samples / f"{clip}.mp4", **settings) as stream:
        for chosen in stream:
            assert stream.frame is not None
            truth = stream.frame.rgb()
            painted = chosen.paint(onto=painted)
            reader = reader or ReaderPicture([truth.shape[:2]] * 3)
            reader.paint([np.ascontiguousarray(truth[..., colour]) for colour in range(3)], lods_of(chosen))
            whole = np.stack(reader.planes, -1)
            errors = [mean_square(picture, truth) for picture in (whole, painted)]
            losses.append(decibels(errors[0]) - decibels(errors[1]))
            apart.append(np.sqrt(errors[1]) - np.sqrt(errors[0]))
    assert len(losses) == 12
    # Measured: 0.28 dB at 44 dB, which are 0.053 grey levels; the closer to the frame, the more decibels those are.
    assert all(abs(loss) < 0.3 or abs(levels) < 0.055 for loss, levels in zip(losses, apart, strict=True))
    assert abs(np.mean(losses)) < 0.15


def test_stream_memory_is_painted_onto_the_picture_before():
    picture = noise(128, 192)
    first = selection(picture, ALL_OF_ONE, keyframe="first").paint()
    patch = selection(255 - picture, [(0, 3, 3)])
    second = patch.paint(onto=first)
    changed = (second != first).any(-1)
    assert changed[48:64, 48:64].mean() > 0.9
    changed[48:64, 48:64] = False
    assert not changed.any()
    assert (patch.paint()[:48] == GREY).all()
    assert (replace(patch, keyframe="periodic").paint(onto=first) == second).all()


@pytest.mark.parametrize("keyframe", ["first", "cut", "size", "discontinuity"])
def test_after_a_cut_what_was_seen_before_does_not_count(keyframe):
    chosen = selection(noise(128, 192), [(0, 3, 3)], keyframe=keyframe)
    other = np.zeros((64, 64, 3), np.uint8)  # of another size, as before a change of size
    assert (chosen.paint(onto=other) == chosen.paint()).all()


def test_what_cannot_be_painted_is_told():
    picture = noise(128, 192)
    chosen = selection(picture, ALL_OF_ONE)
    with pytest.raises(ValueError, match="no patches to paint; open the stream with patches=True"):
        replace(chosen, patches=None).paint()
    with pytest.raises(ValueError, match=r"onto must be of shape \(128, 192, 3\), got \(64, 64, 3\)"):
        chosen.paint(onto=blank(64, 64))
    with pytest.raises(ValueError, match=r"must be uint8\[H, W, 3\], got float64\[128, 192, 3\]"):
        chosen.paint(onto=np.zeros((128, 192, 3)))
    with pytest.raises(ValueError, match="interpolation must be one of bilinear, bicubic, got 'nearest'"):
        chosen.paint(interpolation="nearest")
    with pytest.raises(ValueError, match="one value for each of 24 patches"):
        paint_patches(blank(192, 128), chosen.patches, chosen.x[1:], chosen.y, chosen.lod)


def test_a_frame_gives_its_colours_by_its_own_matrix(tmp_path, samples):
    with open_stream(samples / "bunny.mp4", engine="cpu", source={"frames": 3}) as stream:
        assert stream.frame is None
        for chosen in stream:
            frame = stream.frame
            assert (frame.index, frame.time) == (chosen.index, chosen.time)
    rgb = frame.rgb()
    assert rgb.shape == (720, 1280, 3)
    luma = 16 + (rgb @ np.array([0.2126, 0.7152, 0.0722])) * 219 / 255  # BT.709, limited range
    clipped = ((rgb == 0) | (rgb == 255)).any(-1)
    assert np.abs(luma - frame.luma)[~clipped].max() < 1.5


def test_tokens_are_outlined_in_the_colours_of_their_lod():
    picture = np.full((128, 192, 3), 100, np.uint8)
    chosen = selection(picture, [(2, 0, 0), (0, 0, 5), (0, 7, 11)])
    drawn = chosen.draw(picture)
    assert drawn[0, 80].tolist() == drawn[0, 95].tolist() == drawn[127, 191].tolist() == [255, 214, 64]
    assert drawn[0, 10].tolist() != drawn[10, 10].tolist()
    assert drawn[100, 20].max() < drawn[10, 10].max() < drawn[5, 85].max() == 100
    assert (picture == 100).all()
    assert chosen.draw(cv2.resize(picture, (96, 64))).shape == (64, 96, 3)


def test_tokens_coarser_than_the_legend_are_drawn_as_well():
    picture = np.full((128, 192, 3), 100, np.uint8)
    patches = np.zeros((1, 16, 16, 3), np.uint8)
    one = selection(picture, [(0, 0, 0)], patches=patches)
    drawn = replace(one, x=np.array([96]), y=np.array([64]), lod=np.array([5], np.uint8)).draw(picture)
    assert drawn[64, 96].max() > replace(one, lod=np.array([0], np.uint8)).draw(picture)[64, 96].max()


def test_the_frame_of_a_stream_is_drawn_at_its_size(samples):
    with open_stream(samples / "pedestrians.mp4", engine="cpu") as stream:
        chosen = next(stream)
        drawn = chosen.draw(stream.frame)
    assert drawn.shape == (576, 768, 3)
    with pytest.raises(ValueError, match="must be of 32x32 pixels, as the selection's, got 768x576"):
        replace(chosen, width=32, height=32).draw(stream.frame)
    with pytest.raises(ValueError, match=r"must be uint8\[H, W, 3\], got float64\[8, 8, 3\]"):
        chosen.draw(np.zeros((8, 8, 3)))


def shown_in(html):
    """The picture in the HTML of a selection, in RGB."""
    encoded = re.search(r'src="data:image/jpeg;base64,([^"]+)"', html)[1]
    assert len(encoded) < 150_000
    return cv2.imdecode(np.frombuffer(base64.b64decode(encoded), np.uint8), cv2.IMREAD_COLOR)[..., ::-1]


def test_a_notebook_shows_what_the_model_sees_and_its_tokens(samples):
    with open_stream(samples / "bunny.mp4", engine="cpu", patches=True) as stream:
        chosen = next(stream)
        truth = stream.frame.rgb()
    html = chosen._repr_html_()
    assert "&lt;" not in html
    assert "Selection(0 at 0.000 s" in html
    picture = shown_in(html)
    assert picture.shape == (270, 480 + 8 + 480, 3)
    small = cv2.resize(truth, (480, 270), interpolation=cv2.INTER_AREA)
    assert decibels(mean_square(picture[:, :480], small)) > 25
    assert shown_in(replace(chosen, patches=None)._repr_html_()).shape == (270, 480, 3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 700), (3000, 2)])
def test_a_notebook_shows_pictures_of_any_shape(shape):
    with open_stream([np.zeros(shape, np.uint8)], engine="cpu", patches=True) as stream:
        chosen = next(stream)
        assert chosen.draw(stream.frame).shape == chosen.paint().shape == (*shape, 3)
    assert shown_in(chosen._repr_html_()).size


def test_a_notebook_shows_a_frame_without_tokens():
    chosen = selection(noise(32, 32), [(0, 0, 0)])
    none = {name: getattr(chosen, name)[:0] for name in ("x", "y", "lod", "patches", "score", "age", "fresh")}
    picture = shown_in(replace(chosen, **none)._repr_html_())
    assert picture.shape == (32, 32 + 8 + 32, 3)
    assert np.abs(picture[:, :30].astype(int) - GREY).max() <= 3


def test_the_whole_loop_of_a_stream_costs_no_more_than_its_tokens(samples):
    """Painted twice, from the same tokens, it is the same picture; and nothing of it is the tokens' own memory."""
    with open_stream(samples / "tree.mp4", engine="cpu", patches=True, allocation={"memory": "stream"}) as stream:
        chosen = list(itertools.islice(stream, 5))
    pictures = []
    for _ in range(2):
        painted = None
        for each in chosen:
            painted = each.paint(onto=painted)
        pictures.append(painted)
    assert (pictures[0] == pictures[1]).all()
    assert not any(np.shares_memory(pictures[0], each.patches) for each in chosen)
