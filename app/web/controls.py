"""What the page may change in a running source."""

from typing import Any

from foveate.app.live.worker import SourceWorker
from foveate.pipeline.settings import shown_value
from foveate.pipeline.stream import Stream

_KNOWN = ("query", "budget", "keyframe_interval", "gaze", "paused")


def apply(worker: SourceWorker, changes: Any) -> None:
    """Apply ``changes``: query (texts), budget, keyframe_interval, gaze ([x, y] or null), paused.

    Raises ValueError, in one line, for what is not possible; those before it in this order are applied then.
    """
    if not isinstance(changes, dict) or not changes:
        raise ValueError(f"send an object with some of {', '.join(_KNOWN)}")
    unknown = [name for name in changes if name not in _KNOWN]
    if unknown:
        raise ValueError(f"{shown_value(unknown[0])} is none of {', '.join(_KNOWN)}")
    stream = worker.stream
    if stream is None:
        raise ValueError("the source is not open yet")
    if "query" in changes:
        queries = _texts(changes["query"])
        stream.set_query(queries)
        worker.changed["query"] = queries
    if "budget" in changes:
        stream.set_budget(_whole(changes["budget"], "budget"))
        worker.changed["budget"] = changes["budget"]
    if "keyframe_interval" in changes:
        stream.set_keyframe_interval(_whole(changes["keyframe_interval"], "keyframe_interval"))
        worker.changed["keyframe_interval"] = changes["keyframe_interval"]
    if "gaze" in changes:
        _look(stream, changes["gaze"])
        worker.changed["gaze"] = changes["gaze"]
    if "paused" in changes:
        if not isinstance(changes["paused"], bool):
            raise ValueError(f"paused must be true or false, got {shown_value(changes['paused'])}")
        (worker.pause if changes["paused"] else worker.resume)()


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"query must be a list of texts, got {shown_value(value)}")
    return value


def _whole(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {shown_value(value)}")
    return value


def _look(stream: Stream, point: Any) -> None:
    if point is None:
        stream.clear_gaze()
        return
    numbers = isinstance(point, list) and len(point) == 2 and all(type(value) in (int, float) for value in point)
    if not numbers:
        raise ValueError(f"gaze must be two numbers or null, got {shown_value(point)}")
    stream.set_gaze(point[0], point[1])
