"""Clips that are made for benchmarks, and what their records say."""

from pathlib import Path

import av
import pytest

from foveate.bench.clips.samples import cache_folder, scaled, still
from foveate.bench.records import writing
from foveate.bench.records.writing import clip_record, origin
from foveate.bench.speed.runs import decode_bare


def test_a_clip_is_made_once_and_labelled(tiny_clip: Path, tmp_path: Path) -> None:
    said: list[str] = []
    clip = scaled(tiny_clip, tmp_path, said.append)
    assert scaled(tiny_clip, tmp_path, said.append) == clip
    assert len(said) == 1
    about = clip_record(clip, 12)
    assert (about["width"], about["height"], about["codec"]) == (1920, 1080, "h264")
    assert decode_bare(clip.path) == 12
    assert "tiny.mp4 scaled to 1920x1080 by libswscale" in about["made"]
    assert "libx264 at its default quality" in about["made"]
    assert [path.name for path in tmp_path.iterdir()] == [clip.path.name]


def test_the_still_clip_is_one_frame_many_times(tiny_clip: Path, tmp_path: Path) -> None:
    clip = still(tiny_clip, tmp_path, print)
    with av.open(str(clip.path)) as container:
        assert container.streams.video[0].frames == 300
        assert container.streams.video[0].average_rate == 25


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "foveate" / "bench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "foveate" / "bench"


def test_bare_decoding_stops_where_it_is_told(tiny_clip: Path) -> None:
    assert decode_bare(tiny_clip) == 12
    assert decode_bare(tiny_clip, frames=5) == 5
    with pytest.raises(ValueError, match="has no video stream 1"):
        decode_bare(tiny_clip, stream=1)


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROOT", tmp_path)
    assert (origin()["commit"], origin()["dirty"]) == (None, None)
