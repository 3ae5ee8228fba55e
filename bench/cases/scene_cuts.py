"""How well scene cuts are found: by the product, by a volume of the last eight frames, and by PySceneDetect.

python -m foveate.bench.cases.scene_cuts --out scene_cuts.json

Clips are made of the samples' footage, see scenes/cuts.py and scenes/no_cuts.py. `found` are cuts that are said at
their frame, `false` what else is said; the samples themselves have no cuts. Files whose cuts are known can be added, as
FILE:30,76. `volume, one frame later` and PySceneDetect's adaptive detector look at frames that are still to come.
PySceneDetect takes what comes less than 15 frames after a cut for none.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.clips.encoding import LOSSLESS, colour_frame, encode
from foveate.bench.clips.footage import read_footage
from foveate.bench.clips.samples import SAMPLES, sample_clips
from foveate.bench.entry import Out, run_module
from foveate.bench.peers.cuts import PEERS
from foveate.bench.records.table import markdown, say
from foveate.bench.records.writing import hand_out, new_record, sha256
from foveate.bench.scenes.cuts import CUTS, HALF, Kind, Shot, clip
from foveate.bench.scenes.no_cuts import NO_CUTS
from foveate.pipeline import open_stream
from foveate.pipeline.errors import SettingsError

PRODUCT: Final = "product"
_MOST_FRAMES: Final = 1_000_000
_FILES: Final = "Videos to look at as well, each with the frames of its cuts."


def scene_cuts(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE:CUT,CUT ...", help=_FILES)] = (), out: Out = None
) -> None:
    """Compare the product's scene cuts with those of other ways, on clips made of the samples and on real ones."""
    record = new_record("scene_cuts", out)
    known = dict(map(_known, files))
    samples = sample_clips(*SAMPLES)
    record["shots"] = [sample.name for sample in samples]
    record["files"] = {path.name: sha256(path) for path in known}
    shots = [[picture.rgb for picture in read_footage(sample.path, 2 * HALF).pictures] for sample in samples]
    record["cases"] = real_cases({**{sample.path: () for sample in samples}, **known})
    with TemporaryDirectory() as folder:
        for name, kind in {**CUTS, **NO_CUTS}.items():
            say(name)
            record["cases"] += kind_cases(name, kind, shots, Path(folder) / "clip.mp4")
    say(table(record["cases"]))
    hand_out(record, out)


def _known(file: str) -> tuple[Path, tuple[int, ...]]:
    path, _, cuts = file.rpartition(":")
    try:
        return Path(path), tuple(int(cut) for cut in cuts.split(",") if cut)
    except ValueError:
        raise SettingsError(f"a file is given with the frames of its cuts, as clip.mp4:30,76; got {file!r}") from None


def table(cases: Sequence[Mapping[str, Any]]) -> str:
    """Markdown with a row for each kind of clip, and a column for each method."""
    methods = dict.fromkeys(case["method"] for case in cases)
    held = {(case["kind"], case["method"]): _shown(case) for case in cases}
    kinds = dict.fromkeys(case["kind"] for case in cases)
    return markdown(("found, false", *methods), ((kind, *(held[kind, method] for method in methods)) for kind in kinds))


def _shown(case: Mapping[str, Any]) -> str:
    found = f"{case['found']} of {case['cuts']}, " if case["cuts"] else ""
    return f"{found}{case['false']}"


def real_cases(files: Mapping[Path, Sequence[int]]) -> list[dict[str, Any]]:
    """A case for each file and method, with the frames that are ``said`` to be cuts."""
    cases = []
    for path, cuts in files.items():
        frames = [picture.rgb for picture in read_footage(path, _MOST_FRAMES).pictures]
        for method, said in said_by_each(path, frames).items():
            counts = counted([range(cut, cut + 1) for cut in cuts], said)
            about = {"method": method, "kind": path.stem, "frames": len(frames), "said": sorted(said)}
            cases.append({"name": f"{path.stem}, {method}", **about, **counts})
    return cases


def kind_cases(name: str, kind: Kind, shots: Sequence[Shot], file: Path) -> list[dict[str, Any]]:
    """A case for each method: over a clip for every pair of shots, ``cuts``, those ``found``, and ``false`` ones."""
    pairs = list(permutations(shots, 2)) if kind.pairs else [(shot, shot) for shot in shots]
    totals: dict[str, dict[str, int]] = {}
    for seed, pair in enumerate(pairs):
        encode(file, map(colour_frame, clip(kind, *pair, seed)), Fraction(25), LOSSLESS)
        frames = [picture.rgb for picture in read_footage(file, 2 * HALF).pictures]
        for method, said in said_by_each(file, frames).items():
            total = totals.setdefault(method, {"cuts": 0, "found": 0, "false": 0})
            for key, count in counted(kind.cuts, said).items():
                total[key] += count
    about = {"kind": name, "clips": len(pairs)}
    return [{"name": f"{name}, {method}", "method": method, **about, **counts} for method, counts in totals.items()]


def said_by_each(file: Path, frames: Sequence[NDArray[np.uint8]]) -> dict[str, set[int]]:
    """By method, the frames that are said to be cuts."""
    return {PRODUCT: product_cuts(file), **{name: peer(frames) for name, peer in PEERS.items()}}


def product_cuts(file: Path) -> set[int]:
    """The frames that the product takes for cuts."""
    with open_stream(str(file)) as stream:
        return {selection.index for selection in stream if selection.keyframe == "cut"}


def counted(cuts: Sequence[range], said: set[int]) -> dict[str, int]:
    """A cut is found where one of its frames is said; whatever else is said is false, a second frame of it as well."""
    found = sum(any(frame in cut for frame in said) for cut in cuts)
    return {"cuts": len(cuts), "found": found, "false": len(said) - found}


if __name__ == "__main__":
    run_module(scene_cuts)
