"""What is looked for, as a line of text."""

from __future__ import annotations

from pathlib import PurePath

from foveate.pipeline.selection import Header, Selection


class QueryText:
    """The query of one stream, which may change from frame to frame."""

    def __init__(self, header: Header) -> None:
        pictures = [f"picture {PurePath(name).name}" for name in header.config.get("query_image", ())]
        self._text = ", ".join([*header.config.get("query", ()), *pictures])

    def of(self, selection: Selection) -> str:
        """What was looked for in ``selection``; "" for nothing."""
        changed = selection.extras.get("query")
        if changed is not None:
            self._text = ", ".join(changed)
        return self._text
