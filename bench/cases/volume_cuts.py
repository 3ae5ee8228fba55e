"""An experiment: does a volume of the last eight frames find cuts better than the product, which looks one frame back?

python -m foveate.bench.cases.volume_cuts --out volume_cuts.json

The volume holds the mean luma of the cells, without what is smooth, so that light does not matter. `one frame back`: a
cut is a frame that does not resemble the one before. `at once`: it resembles none of the volume, after frames that
resemble each other. `one frame later`: it must resemble its next frame, too. Clips are made of the samples' footage,
see scenes/cuts.py; dissolves and fades count as no cuts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.cases.motion_vectors import level_of
from foveate.bench.cases.temporal_volumes import DEPTH
from foveate.bench.clips.encoding import LOSSLESS, encode, grey_frame
from foveate.bench.clips.footage import Plane, read_footage
from foveate.bench.clips.samples import SAMPLES, sample_clips
from foveate.bench.entry import Out, check_folders, run_module
from foveate.bench.records.table import methods_table, standard_error
from foveate.bench.records.writing import hand_out, origin
from foveate.bench.scenes.cuts import HALF, KINDS, scene
from foveate.pipeline import open_stream
from foveate.pipeline.geometry import TOP_LEVEL

Map = NDArray[np.float32]

METHODS: Final = ("product", "one frame back", "at once", "one frame later")
_ALIKE: Final = 0.5  # correlation from which on two frames show the same
_SMOOTH: Final = 5  # cells along the neighbourhood whose mean is taken away
_PLAIN: Final = 2.0  # grey levels: a frame with less structure shows nothing


def volume_cuts(out: Out = None) -> None:
    """Compare the product's cut detection with that of a temporal volume, on clips made of the samples."""
    check_folders(out=out)
    shots = {clip.name: _shot(clip.path) for clip in sample_clips(*SAMPLES)}
    record: dict[str, Any] = {**origin(), "command": "volume_cuts", "shots": list(shots), "cases": []}
    with TemporaryDirectory() as folder:
        for kind in KINDS:
            record["cases"] += kind_cases(kind, shots, Path(folder) / "clip.mp4")
    standard_error().print(methods_table("found, false", record["cases"], "kind", _shown))
    hand_out(record, out)


def _shot(path: Path) -> list[Plane]:
    return [picture.luma for picture in read_footage(path, 2 * HALF).pictures]


def _shown(case: Mapping[str, Any]) -> str:
    return f"{case['found']} of {case['cuts']}, {case['false']}"


def kind_cases(kind: str, shots: Mapping[str, Sequence[Plane]], file: Path) -> list[dict[str, Any]]:
    """A case for each method: of a clip for every pair of shots, the ``cuts``, those ``found``, and ``false`` ones."""
    counts = {method: {"cuts": 0, "found": 0, "false": 0} for method in METHODS}
    spent, frames = 0.0, 0
    for seed, pair in enumerate(permutations(shots, 2)):
        lumas, cuts = scene(kind, shots[pair[0]], shots[pair[1]], seed)
        encode(file, map(grey_frame, lumas), Fraction(25), LOSSLESS)
        began = time.process_time()
        volume = structures(lumas)
        at_once = cuts_at_once(volume)
        spent, frames = spent + time.process_time() - began, frames + len(lumas)
        ways = product_cuts(file), cuts_at_once(volume, 1), at_once, cuts_later(volume, at_once)
        for method, said in zip(METHODS, ways, strict=True):
            counts[method]["cuts"] += len(cuts)
            counts[method]["found"] += len(cuts & said)
            counts[method]["false"] += len(said - cuts)
    about = {"kind": kind, "clips": seed + 1, "volume_ms": 1000 * spent / frames}
    return [{"name": f"{kind}, {method}", "method": method, **counts[method], **about} for method in METHODS]


def product_cuts(file: Path) -> set[int]:
    """The frames that the product takes for cuts."""
    with open_stream(str(file)) as stream:
        return {selection.index for selection in stream if selection.keyframe == "cut"}


def structures(lumas: Sequence[Plane]) -> list[Map]:
    """The cells' mean luma of each frame without their neighbourhood's: float32[rows, columns]."""
    means = [level_of(luma, TOP_LEVEL).astype(np.float32) for luma in lumas]
    return [mean - cv2.blur(mean, (_SMOOTH, _SMOOTH), borderType=cv2.BORDER_REPLICATE) for mean in means]


def cuts_at_once(frames: Sequence[Map], back: int = DEPTH - 1) -> set[int]:
    """Frames that resemble none of the ``back`` before, of which the last two resemble each other if there are two."""
    volume: deque[Map] = deque(maxlen=back)
    found = set()
    for index, frame in enumerate(frames):
        new = all(likeness(frame, before) < _ALIKE for before in volume)
        steady = len(volume) > min(back, 2) - 1 and (back == 1 or likeness(volume[-1], volume[-2]) >= _ALIKE)
        if steady and new and shows(frame):
            found.add(index)
        volume.append(frame)
    return found


def cuts_later(frames: Sequence[Map], cuts: set[int]) -> set[int]:
    """Those of ``cuts`` whose next frame resembles them, and not the frame before them."""
    return {
        index
        for index in cuts
        if index + 1 < len(frames)
        and likeness(frames[index], frames[index + 1]) >= _ALIKE
        and likeness(frames[index - 1], frames[index + 1]) < _ALIKE
    }


def likeness(one: Map, other: Map) -> float:
    """Correlation of two frames' structures, in [-1, 1]; 0 where one has none."""
    norm = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.vdot(one, other)) / norm if norm else 0.0


def shows(frame: Map) -> bool:
    """Whether a frame has any structure."""
    return bool(np.sqrt(np.mean(frame**2)) >= _PLAIN)


if __name__ == "__main__":
    run_module(volume_cuts)
