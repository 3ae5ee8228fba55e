"""A benchmark case: a clip, the settings it runs with, and the form of its result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foveate.pipeline.settings import Settings

Memory = Literal["frame", "stream"]


class RedCheckError(Exception):
    """A correctness check failed, so the case's speed means nothing. The message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A video file, and how it was made if this program made it."""

    name: str
    path: Path
    made: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One clip under one set of settings."""

    name: str
    clip: Clip
    settings: Settings


def file_clips(files: Sequence[str]) -> list[Clip]:
    """The user's files, named by their stems; by their whole addresses if two stems are equal."""
    stems = [Path(name).stem for name in files]
    return [Clip(stem if stems.count(stem) == 1 else name, Path(name)) for stem, name in zip(stems, files, strict=True)]


def cases_of(clips: Iterable[Clip], settings: Settings, memories: Sequence[Memory]) -> list[Case]:
    """Every clip with every memory (none named: the one of ``settings``); several memories become part of the name."""
    if not memories:
        return [Case(clip.name, clip, settings) for clip in clips]
    return [
        Case(f"{clip.name}, {memory}" if len(memories) > 1 else clip.name, clip, _with_memory(settings, memory))
        for clip in clips
        for memory in memories
    ]


def _with_memory(settings: Settings, memory: Memory) -> Settings:
    allocation = settings.allocation.model_copy(update={"memory": memory})
    return settings.model_copy(update={"allocation": allocation})
