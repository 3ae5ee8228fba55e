"""Clips that benchmarks write."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from foveate.bench.clips.encoding import encode, grey_frame, looped


def times(path: Path) -> list[float | None]:
    with av.open(str(path)) as container:
        return [frame.time for frame in container.decode(video=0)]


def test_a_looped_file_plays_again_and_again(samples: Path, tmp_path: Path) -> None:
    """All packets, and times that go on where they ended."""
    clip = tmp_path / "twice.mp4"
    once = looped(samples / "pedestrians.mp4", tmp_path / "once.mp4", 1)
    assert looped(samples / "pedestrians.mp4", clip, 2) == 2 * once
    found = times(clip)
    assert len(found) == 2 * once
    assert np.diff(np.array(found, np.float64)).min() > 0


def test_its_pictures_keep_their_pace(tiny_clip: Path, tmp_path: Path) -> None:
    count = looped(tiny_clip, tmp_path / "long.mp4", 3)
    assert times(tmp_path / "long.mp4") == pytest.approx([index / 25 for index in range(count)])


@pytest.mark.parametrize(
    ("encoder", "pixel_format", "codec"),
    [("libx264", "yuv420p", "h264"), ("libsvtav1", "yuv420p10le", "av1"), ("libvpx-vp9", "yuv420p", "vp9")],
)
def test_other_codecs(encoder: str, pixel_format: str, codec: str, tmp_path: Path) -> None:
    if encoder not in av.codecs_available:
        pytest.skip(f"this PyAV has no encoder {encoder}")
    greys = [grey_frame(np.full((128, 160), value, np.uint8)) for value in (60, 120, 180)]
    encode(tmp_path / "a.mp4", greys, Fraction(25), {}, encoder, pixel_format)
    with av.open(str(tmp_path / "a.mp4")) as container:
        (stream,) = container.streams.video
        assert stream.codec.canonical_name == codec
        frames = list(container.decode(stream))
        assert {frame.format.name for frame in frames} == {pixel_format}
        shown = [frame.to_ndarray(format="gray")[64, 80] for frame in frames]
    assert np.allclose(shown, [round((value - 16) * 255 / 219) for value in (60, 120, 180)], atol=4)
