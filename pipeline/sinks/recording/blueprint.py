"""How the Rerun viewer shows a recording at first, and the names of what it holds."""

from __future__ import annotations

from typing import Any, Final

from foveate.pipeline.selection import PATCH
from foveate.pipeline.selection.drawing import COLOURS, LODS

VIDEO: Final = "video"
TOKENS: Final = "video/tokens"
SCORE: Final = "score"
FIGURES: Final = "figures"
HEADER: Final = "header"
FRAME, TIME, CAPTURED = "frame", "time", "captured"  # timelines

COUNT: Final = f"{FIGURES}/count/tokens"
SHARES: Final = {name: f"{FIGURES}/share/{name}" for name in ("changed", "recomputed")}
LATENCY: Final = f"{FIGURES}/ms/latency"

_ROOM: Final = 1.05  # above the greatest value


def blueprint(budget: int | None, *, live: bool) -> Any:
    """The video with its tokens on the left; score and figures on the right. Raises ImportError."""
    import rerun.blueprint as rrb

    def plot(folder: str, name: str, top: float | None = None) -> Any:
        axis = rrb.ScalarAxis(range=None if top is None else (0.0, top))
        return rrb.TimeSeriesView(origin=f"{FIGURES}/{folder}", name=name, axis_y=axis)

    views = [plot("count", "tokens", None if budget is None else _ROOM * budget), plot("share", "shares", _ROOM)]
    if live:
        views.append(plot("ms", "milliseconds"))
    return rrb.Blueprint(
        rrb.Horizontal(
            rrb.Spatial2DView(origin=VIDEO, name="tokens"),
            rrb.Vertical(rrb.Spatial2DView(origin=SCORE, name="score"), *views),
            column_shares=[2, 1],
        ),
        rrb.TimePanel(timeline=TIME, state="collapsed"),
        rrb.BlueprintPanel(state="collapsed"),
        rrb.SelectionPanel(state="collapsed"),
    )


def classes() -> Any:
    """A colour and a label for each LOD, as in the overlay; coarser ones look like the last. Raises ImportError."""
    import rerun

    return rerun.AnnotationContext(
        [(lod, f"{PATCH * 2**lod} px", tuple(COLOURS[min(lod, LODS - 1)].tolist())) for lod in range(16)]
    )
