"""What the page is told of a source, without a page."""

from pathlib import Path
from typing import Any

import orjson

from foveate.app.live.worker import SourceWorker
from foveate.app.web.latest_frames import LatestFrames
from foveate.pipeline.settings import Settings


def test_a_poll_reads_no_file(tmp_path: Path) -> None:
    """The file of weights is needed to open the stream, and not to tell how it fares."""
    file = tmp_path / "w.toml"
    file.write_text("[weights]\nedges = 1\n")
    score: dict[str, Any] = {"scorer": "linear", "weights": str(file)}
    settings, frames = Settings.model_validate({"score": score, "query": ("red",)}), LatestFrames()
    file.unlink()
    frames.worker = SourceWorker(0, "/dev/video9", settings, (frames,), None, lambda: None)  # type: ignore[arg-type]
    status = orjson.loads(orjson.dumps(frames.status(0), option=orjson.OPT_SERIALIZE_NUMPY))
    assert status["query"] == ["red"]
    assert status["budget"] == 273
