"""A benchmark case: a clip, the settings it runs with, and the form of its result."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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
    by_memory = {memory: with_changes(settings, allocation={"memory": memory}) for memory in memories}
    return [
        Case(f"{clip.name}, {memory}" if len(memories) > 1 else clip.name, clip, changed)
        for clip in clips
        for memory, changed in by_memory.items()
    ]


def with_changes(settings: Settings, **changes: Any) -> Settings:
    """The settings with some replaced; of a group of settings, only those named."""
    tree = settings.model_dump()
    for key, value in changes.items():
        tree[key] = {**tree[key], **value} if isinstance(value, Mapping) else value
    return Settings.model_validate(tree)
