"""Timestamps that begin anew because their field is full: after 26.5 hours in MPEG-TS, which has 33 bits for them."""

from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import av
import pytest

from foveate.bench.speed.paced import PacedFeed, open_paced
from foveate.pipeline.settings import LiveSettings, Settings
from tests.pipeline.made_sources import ffmpeg

FULL = 2**33 / 90_000  # seconds


def test_times_go_on_where_the_timestamps_of_mpeg_ts_wrap(tmp_path: Path) -> None:
    path = tmp_path / "wraps.ts"
    encode = ["-c:v", "libx264", "-bf", "0", "-g", "25", "-pix_fmt", "yuv420p"]
    offset = ["-output_ts_offset", str(FULL - 1.0), "-muxdelay", "0", "-muxpreload", "0"]
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=96x64:r=25", "-frames:v", "75", *encode, *offset, str(path))
    with av.open(str(path), options={"correct_ts_overflow": "0"}) as container:
        raw = [packet.pts for packet in container.demux(video=0) if packet.pts is not None]
    assert min(raw) < 90_000 * 2 < 2**33 - 90_000 < max(raw)  # they do wrap
    settings = Settings(budget=20, live=LiveSettings(policy="every"))
    with open_paced(partial(PacedFeed, path, None, 0.0), settings) as stream:
        got = list(islice(stream, 75))
    steps = [after.time - before.time for before, after in pairwise(got)]
    assert steps == pytest.approx([0.04] * 74, abs=0.001)
    assert [selection.keyframe for selection in got].count("discontinuity") == 0
