"""Overlay and report of one run."""

from pathlib import Path

import pytest

from foveate.app.main import main
from foveate.pipeline.sinks.overlay import picture as overlay_picture


def test_overlay_and_report_draw_each_frame_once(clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One picture serves both; the overlay is the same, to the byte, as alone."""
    drawn = []
    draw_tokens = overlay_picture.draw_tokens
    monkeypatch.setattr(overlay_picture, "draw_tokens", lambda *each: (drawn.append(each[1].index), draw_tokens(*each)))
    both = ["--overlay", str(tmp_path / "both.mp4"), "--report", str(tmp_path / "both.html")]
    assert main(["run", clip, "--frames", "3", *both, "-q"]) == 0
    assert drawn == [0, 1, 2]
    assert main(["run", clip, "--frames", "3", "--overlay", str(tmp_path / "alone.mp4"), "-q"]) == 0
    assert (tmp_path / "both.mp4").read_bytes() == (tmp_path / "alone.mp4").read_bytes()
