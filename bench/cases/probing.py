"""Runs the CPU engine with an embedder that looks at what every frame gives it."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.query.encoder import CompiledQuery, Embedder
from foveate.pipeline.relevance.stream_query import StreamQuery
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources import open_source


@dataclass(frozen=True, slots=True)
class _Probe:
    """A query encoder without queries in words."""

    embedder: Callable[[Geometry], Embedder]
    name: Final = "probe"

    def compile(self, phrases: Sequence[Phrase]) -> CompiledQuery:
        """None are understood."""
        return CompiledQuery(None)


def probed(path: Path, frames: int, embedder: Callable[[Geometry], Embedder], **settings: Any) -> int:
    """Process the first frames of a file with the embedder for their size. Returns how many there were."""
    wanted = Settings(encoder="open_clip", keep_embeddings=True, **settings)
    engine = CpuEngine(StreamPlan(wanted, StreamQuery(_Probe(embedder), None, {}, ())), Feedback())
    with closing(open_source(str(path), wanted.source)) as source:
        return sum(1 for _ in engine.cascade(engine.pyramid(engine.upload(islice(source, frames)))))
