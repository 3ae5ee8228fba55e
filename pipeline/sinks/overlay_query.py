"""What is looked for, as a line of text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from foveate.pipeline.selection import Header, Selection


class QueryText:
    """The query of one stream, which may change from frame to frame."""

    def __init__(self, header: Header) -> None:
        pictures = [f"picture {PurePath(name).name}" for name in header.config.get("query_image", ())]
        self._text = _told([*header.config.get("query", ()), *pictures], header.ignored)

    def of(self, selection: Selection) -> str:
        """What was looked for in ``selection``; "" for nothing."""
        changed = selection.extras.get("query")
        if changed is not None:
            self._text = _told(changed, selection.extras.get("query_ignored", ()))
        return self._text


def _told(queries: Sequence[str], ignored: Sequence[str]) -> str:
    """The queries, and before them which of their words count for nothing: the end of a long line is cut."""
    return (f"(ignored: {', '.join(ignored)}) " if ignored else "") + ", ".join(queries)
