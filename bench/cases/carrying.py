"""How well embeddings that are warped along the flow answer queries, against embeddings of every frame:

python -m foveate.bench.cases.carrying --out carrying.json

The encoder is bench/cases/patch_encoder.py, a stand-in for a model. Queries are cells of the first frame, by example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.cases.patch_encoder import PatchEncoder
from foveate.bench.cases.probing import probed
from foveate.bench.cases.ranking import TOP, agreement
from foveate.bench.clips.samples import SAMPLES, clips_of
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.embedder import DenseEmbedder
from foveate.pipeline.encoders.image_text import Vectors, unit
from foveate.pipeline.encoders.pca import COMPONENTS, Projection
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.encoder import Embedded, EmbedderInput
from foveate.pipeline.settings import ClipSettings

Map = NDArray[np.float32]

_QUERIES: Final = 8
WAYS: Final[Mapping[str, ClipSettings]] = {
    "as set by default": ClipSettings(),
    "every 30th frame": ClipSettings(interval=30),
    "windows of 64 pixels, where any cell is lost": ClipSettings(dense="windows", window=64, stale=0.0, interval=30),
}
"""Settings of when cells are encoded again after the first frame."""


def carrying(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: the three samples.")] = (),
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 30,
) -> None:
    """Compare the relevance from warped embeddings with that from embeddings of every frame."""
    check_least(2, frames=frames)  # the first is encoded whole
    record = new_record("carrying", out, encoder=PatchEncoder.id)
    clips = clips_of(files, *SAMPLES)
    for clip in clips:
        for name, way in WAYS.items():
            case = clip_carrying(clip, way, frames)
            record["cases"].append({"name": f"{clip.name}, {name}", "clip": clip.name, "way": name} | case)
            say(
                f"{clip.name}, {name}: rank correlation {case['spearman']:.3f} (least {case['spearman_least']:.3f}), "
                f"top {TOP} {case['top']:.3f}, top tenth {case['top_tenth']:.3f}, encoded {case['encoded']:.1%}"
            )
    hand_out(record, out)


def clip_carrying(clip: Clip, way: ClipSettings, frames: int) -> dict[str, Any]:
    """Means over frames and queries, but for the first frame, which is encoded whole.

    ``spearman``: rank correlation of carried and fresh relevance over the cells; ``spearman_least``: of the worst frame
    and query. ``top`` and ``top_tenth``: share of the 273, and of the tenth, most relevant cells that are the same.
    ``encoded``: share of the cells encoded per frame, the first frame included.
    """
    frames_seen: list[_Seen] = []
    count = probed(clip.path, frames, lambda geometry: _ProbeEmbedder(way, geometry, frames_seen), clip=way)
    if count < 2 or len(frames_seen) != count:
        raise RedCheckError(f"{clip.name}: {len(frames_seen)} of {count} frames were looked at")
    agreements = [agreement(*pair) for seen in frames_seen[1:] for pair in zip(seen.carried, seen.fresh, strict=True)]
    spearman, top, tenth = (list(values) for values in zip(*agreements, strict=True))
    return {
        "spearman": fmean(spearman),
        "spearman_least": min(spearman),
        "top": fmean(top),
        "top_tenth": fmean(tenth),
        "encoded": fmean(seen.encoded for seen in frames_seen),
        "samples": {"spearman": spearman, "top": top, "encoded": [seen.encoded for seen in frames_seen]},
    } | clip_record(clip, count)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """One frame: values that grow with the relevance, float32[queries, cells of the picture]."""

    carried: Map
    fresh: Map
    encoded: float


class _ProbeEmbedder:
    """The embedder under test, which also records what encoding each whole frame gives."""

    def __init__(self, way: ClipSettings, geometry: Geometry, seen: list[_Seen]) -> None:
        self._way = way
        self._geometry = geometry
        self._seen = seen
        self._encoder = PatchEncoder()
        self._inner: DenseEmbedder | None = None

    def update(self, view: EmbedderInput) -> Embedded | None:
        """The inner embedder's result, which is also recorded."""
        rgb = picture_rgb(view.frame)
        vectors = self._encoder.encode_image(rgb, 0)
        if self._inner is None:
            self._begin(vectors.reshape(-1, vectors.shape[-1]))
        assert self._inner is not None
        embedded = self._inner.update(view)
        assert embedded is not None, "embeddings are waited for"
        inside = self._geometry.inside
        coefficients = self._projection.compress(vectors).reshape(-1, COMPONENTS)
        fresh = self._weights @ coefficients.T
        self._seen.append(_Seen(self._weights @ embedded.coefficients[:, inside], fresh, self._inner.encoded))
        return embedded

    def _begin(self, vectors: Vectors) -> None:
        """Components and queries from the first frame."""
        mean = vectors.mean(axis=0)
        basis = np.linalg.svd(vectors - mean, full_matrices=False)[2][:COMPONENTS]
        self._projection = Projection(self._encoder.id, mean, basis, np.ones(len(basis), np.float32), {})
        examples = vectors[np.linspace(0, len(vectors) - 1, _QUERIES).astype(int)]
        self._weights, _ = self._projection.linear(examples - unit(mean))
        self._inner = DenseEmbedder(self._encoder, self._projection, self._way, self._geometry)

    @property
    def settled(self) -> bool:
        """Never, so that every frame is compared."""
        return False

    def close(self) -> None:
        """End the inner embedder."""
        if self._inner is not None:
            self._inner.close()


if __name__ == "__main__":
    run_module(carrying)
