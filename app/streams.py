"""The part of Stream that the commands use, so that tests can give them one without a video."""

from collections.abc import Iterator
from typing import Protocol, Self

from foveate.pipeline.frames import Damage
from foveate.pipeline.selection import Selection


class SelectionStream(Protocol):
    """The part of foveate.pipeline.stream.Stream that yields Selections."""

    @property
    def damage(self) -> Damage:
        """What the source has lost so far."""

    def __iter__(self) -> Iterator[Selection]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
