"""The first record of every output, as plain data."""

import json
from importlib import metadata
from typing import Any

import cv2
import numpy as np

from foveate.pipeline.selection import Header


def version() -> str:
    """Foveate's version, as installed."""
    return metadata.version("foveate")


def header_record(header: Header) -> dict[str, Any]:
    """The header as a JSON object, in the order in which it is written; notes only where there are some."""
    record: dict[str, Any] = {
        "foveate": version(),
        "libraries": {
            "numpy": np.__version__,
            "opencv": cv2.__version__,
        },  # scores depend on them
        "source": header.source,
        "width": header.width,
        "height": header.height,
        "fps": header.fps,
        "config": dict(header.config),
        "start": round(header.start, 6),
    }
    if header.notes:
        record["notes"] = list(header.notes)
    if header.ignored:
        record["query_ignored"] = list(header.ignored)
    return record


def budget_of(header: Header) -> tuple[int | None, bool]:
    """Tokens that a frame may have by the header, and whether that is an average; None where it does not say."""
    average = header.config.get("allocation", {}).get("budget_average")
    budget = average or header.config.get("budget")
    return (budget if isinstance(budget, int) else None), average is not None


def header_json(header: Header) -> bytes:
    """The header as one line of JSON in UTF-8, without the end of line.

    A name that is not valid Unicode (a file name of other bytes) gets question marks instead.
    """
    text = json.dumps(header_record(header), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
