"""Which tiles count as changed: against the texture's own content, in luma and chroma, at any size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.bench.reader.texture import block_means
from foveate.pipeline.cpu.upload import Uploader
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.settings import ChangeSettings


def frame(index, luma, chroma=None, discontinuity=False):
    return Frame(index, index / 25, luma, chroma, Colour(), discontinuity)


def flat(value, shape=(64, 96)):
    return np.full(shape, value, np.uint8)


def tiles_of(blocks, tiles):
    padded = np.zeros((tiles[0] * 4, tiles[1] * 4), np.bool_)
    padded[: blocks.shape[0], : blocks.shape[1]] = blocks
    return padded.reshape(tiles[0], 4, tiles[1], 4).any(axis=(1, 3))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.booleans(), st.floats(0, 20), st.randoms(use_true_random=False))
def test_changed_tiles_follow_the_definition_and_the_texture_stays_within_the_threshold(
    height, width, full_chroma, threshold, random
):
    rng = np.random.default_rng(random.getrandbits(32))
    small = (height, width) if full_chroma else (-(-height // 2), -(-width // 2))
    never = {"keyframe_interval": 1000, "cut_structure": 1.0}
    uploader = Uploader(ChangeSettings(threshold=threshold, noise=0, **never))
    held = None
    for index in range(4):
        planes = [rng.integers(0, 256, (height, width), dtype=np.uint8)]
        planes += [rng.integers(0, 256, small, dtype=np.uint8) for _ in range(2)]
        if held is not None:  # most of it stays near what it was
            scale = rng.choice([0, 0.02, 0.1])
            planes = [
                (old + scale * (new - old.astype(float))).astype(np.uint8)
                for old, new in zip(held, planes, strict=True)
            ]
        update = uploader.update(frame(index, planes[0], tuple(planes[1:])))
        if held is None:
            assert update.changed.all()
            held = [plane.copy() for plane in planes]
            continue
        expected = np.zeros(update.geometry.tiles, np.bool_)
        for plane, old in zip(planes, held, strict=True):
            side = 8 if plane.shape == (height, width) else 4
            means = block_means(np.abs(plane.astype(float) - old), side)
            expected |= tiles_of(means > threshold, update.geometry.tiles)
        if update.keyframe is None:
            assert (update.changed == expected).all()
        tile = update.written
        for plane, old in zip(planes, held, strict=True):
            side = 32 if plane.shape == (height, width) else 16
            mask = tile.repeat(side, 0).repeat(side, 1)[: plane.shape[0], : plane.shape[1]]
            old[mask] = plane[mask]
            block = 8 if side == 32 else 4
            assert (block_means(np.abs(plane.astype(float) - old), block) <= threshold).all()


def test_slow_drift_cannot_hide():
    uploader = Uploader(ChangeSettings(threshold=3.0, keyframe_interval=1000))
    shares = [uploader.update(frame(value, flat(100 + value))).changed.mean() for value in range(9)]
    assert shares == [1, 0, 0, 0, 1, 0, 0, 0, 1]  # off by 4 from what was written last


def shares(pictures, **change):
    uploader = Uploader(ChangeSettings(keyframe_interval=1000, **change))
    return [uploader.update(frame(index, luma)).changed.mean() for index, luma in enumerate(pictures)]


def noisy(spread, count=8, seed=1):
    rng = np.random.default_rng(seed)
    return [np.clip(np.rint(128 + rng.normal(0, spread, (288, 352))), 0, 255).astype(np.uint8) for _ in range(count)]


def test_noise_raises_the_threshold_once_it_is_known():
    """Two pictures of noise of 3 grey values differ by 2 * 3 / sqrt(pi) = 3.4; of 64 pixels, by 0.3 more or less."""
    assert shares(noisy(3))[:3] == [1, 1, 0]
    assert max(shares(noisy(3))[2:]) < 0.02
    assert shares(noisy(3), noise=0) == [1] * 8
    assert shares(noisy(12))[2:] == [1] * 6  # 13.5: more than noise may raise it to


def test_what_changes_all_over_is_no_noise():
    ramp = np.add.outer(np.arange(288), np.arange(352)) // 4
    fade = [np.asarray(ramp + 4 * index, np.uint8) for index in range(8)]
    assert shares(fade) == [1] * 8
    texture = np.random.default_rng(2).integers(0, 256, (36, 44)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
    texture[:, 176:] = 128  # a quiet half: the quartile is its own
    moving = [np.roll(texture[:, :176], index, axis=1) for index in range(8)]
    pictures = [np.hstack([part, texture[:, 176:]]) for part in moving]
    assert all(share >= 0.4 for share in shares(pictures))


def test_a_cut_says_nothing_of_noise():
    rng = np.random.default_rng(3)
    dark, bright = (rng.integers(low, low + 60, (288, 352), dtype=np.uint8) for low in (20, 180))
    little = bright.copy()
    little[:32, :32] += 4
    assert shares([dark, bright, little], cut_share=0.6)[2] > 0


def test_a_light_that_changes_colour_only_is_seen():
    uploader = Uploader(ChangeSettings())
    red, green = (flat(90, (32, 48)), flat(240, (32, 48))), (flat(54, (32, 48)), flat(34, (32, 48)))
    uploader.update(frame(0, flat(80), red))
    assert uploader.update(frame(1, flat(80), green)).changed.all()


def test_a_small_bright_block_makes_its_tile_dirty_and_no_other():
    luma = flat(50)
    luma[40:48, 72:80] = 60
    uploader = Uploader(ChangeSettings())
    uploader.update(frame(0, flat(50)))
    assert uploader.update(frame(1, luma)).changed.tolist() == [[False, False, False], [False, False, True]]


def test_keyframes_and_their_reasons():
    uploader = Uploader(ChangeSettings(keyframe_interval=3))
    rng = np.random.default_rng(0)
    dark, bright = (rng.integers(low, low + 60, (64, 96), dtype=np.uint8) for low in (20, 180))
    reasons = [uploader.update(frame(index, dark)).keyframe for index in range(4)]
    assert reasons == ["first", None, None, "periodic"]
    assert uploader.update(frame(4, bright)).keyframe == "cut"
    assert uploader.update(frame(5, bright, discontinuity=True)).keyframe == "discontinuity"
    assert uploader.update(frame(6, bright[:40])).keyframe == "size"
    assert uploader.update(frame(7, bright[:40])).keyframe is None


def test_periodic_keyframes_go_by_number_whatever_comes_between():
    uploader = Uploader(ChangeSettings(keyframe_interval=4))
    rng = np.random.default_rng(0)
    dark, bright = (rng.integers(low, low + 60, (64, 96), dtype=np.uint8) for low in (20, 180))
    shown = [dark] * 6 + [bright] * 2 + [dark] * 6  # cuts at 6, and at 8, where a periodic one would be
    reasons = [
        uploader.update(frame(index, luma, discontinuity=index == 11)).keyframe for index, luma in enumerate(shown)
    ]
    keyframes = {index: reason for index, reason in enumerate(reasons) if reason}
    assert keyframes == {0: "first", 4: "periodic", 6: "cut", 8: "cut", 11: "discontinuity", 12: "periodic"}


@pytest.mark.parametrize("colour", [Colour("bt709"), Colour("bt601", True)])
def test_other_colour_tags_are_another_kind_of_picture(colour):
    uploader = Uploader(ChangeSettings())
    uploader.update(frame(0, flat(50)))
    assert uploader.update(Frame(1, 0.1, flat(50), None, colour)).keyframe == "size"


def test_a_keyframe_writes_every_tile_but_reports_only_what_changed():
    uploader = Uploader(ChangeSettings(keyframe_interval=2))
    uploader.update(frame(0, flat(50)))
    uploader.update(frame(1, flat(50)))
    update = uploader.update(frame(2, flat(50)))
    assert update.keyframe == "periodic"
    assert update.written.all()
    assert not update.changed.any()
