"""The rows of a video, for pipelines of Ray Data."""

import io
from typing import Any, Unpack

from foveate.pipeline.keywords import SettingsKeywords
from foveate.pipeline.sinks.parquet import frame_row
from foveate.pipeline.stream import open_stream


class FrameRows:
    """A callable for ``Dataset.flat_map``: from a row with a video to one row for each of its frames.

    The video is the row's ``path``, or its ``bytes`` under the name ``path``. Rows have the columns of Parquet outputs,
    after ``video``, which is the path.

    Warning: with Ray 2.60.0, a file that ends its process hangs Ray Data, or loses other files with it. Use this for
    videos that are known to be good; ``foveate corpus --ray``, which goes by plain actors, for all others.

    >>> rows = FrameRows(budget=10, source={"frames": 2})({"path": "clip.mp4"})
    >>> [(row["video"], row["index"], len(row["x"]) <= 10) for row in rows]
    [('clip.mp4', 0, True), ('clip.mp4', 1, True)]
    """

    def __init__(self, **settings: Unpack[SettingsKeywords]) -> None:
        """``settings`` are those of open_stream."""
        self._settings = settings

    def __call__(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows of one video. Raises as open_stream does, and as its streams do."""
        content = row.get("bytes")
        source = str(row["path"]) if content is None else io.BytesIO(content)
        with open_stream(source, None, name=str(row["path"]), **self._settings) as stream:
            return [{"video": str(row["path"]), **frame_row(selection)} for selection in stream]
