"""Tokens in regions of a single picture, for callers whose boxes come frame by frame."""

from typing import Unpack

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.keywords import SettingsKeywords
from foveate.pipeline.regions import Boxes, regions_of
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources.arrays import Layout
from foveate.pipeline.sources.own import OwnSource
from foveate.pipeline.stream import Stream, prepared


def tokens_in_regions(
    picture: object,
    boxes: Boxes,
    settings: Settings | None = None,
    /,
    *,
    tokens: int = 64,
    layout: Layout = "rgb",
    **overrides: Unpack[SettingsKeywords],
) -> Selection:
    """The tokens of each region of one picture, with patches: at most ``tokens`` a region.

    ``picture`` is one of those that ``open_stream`` takes, such as uint8[H, W, 3]. ``boxes`` are [x, y, w, h] by name,
    or in a sequence, in pixels of the picture: a tracker's, a detector's. ``Selection.regions`` has the names,
    ``Selection.region`` the place of each token's region among them. Where a region lies outside the picture, it has no
    tokens; where two overlap, each has tokens of its own.

    The setting ``budget`` bounds all regions together; by default there is room for all. Raises SettingsError, also for
    what is no box, SourceError for what is no picture, EngineError.

    >>> import numpy as np
    >>> picture = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
    >>> selection = tokens_in_regions(picture, {"face": (100, 80, 60, 60), "sign": (300, 40, 320, 320)}, tokens=100)
    >>> np.bincount(selection.region).tolist()  # all 4 x 4 cells of the face; 20 x 21 of the sign would be too many
    [16, 99]
    """
    regions = regions_of(boxes)
    for name in ("regions", "region_tokens"):
        if name in overrides:
            raise SettingsError(f"{name} is a setting for videos; tokens_in_regions takes boxes and tokens")
    if tokens < 1:
        raise SettingsError(f"tokens must be at least 1, got {tokens}")
    own = {"budget": tokens * max(1, len(regions.at(0))), "engine": "cpu", "patches": True}
    wanted = {**own, **overrides, "regions": None, "region_tokens": tokens}
    made = prepared(settings, (), wanted, regions=regions)
    with Stream(OwnSource([picture], made.plan.settings.source, False, layout, None), made, ()) as stream:
        return next(stream)
