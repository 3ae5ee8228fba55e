"""Writes records, with the commit, machine, versions and input of each."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import av

from foveate.bench.case import Clip
from foveate.bench.entry import check_folders
from foveate.pipeline.errors import SinkError
from foveate.pipeline.machine import arrays, system, video

ROOT: Final = Path(__file__).resolve().parents[2]  # of the checkout, where this is one


def origin() -> dict[str, Any]:
    """Commit, machine and versions. ``dirty``: tracked files differ from the commit; both None outside a checkout."""
    machine, reader, libraries = system(), video(), arrays()
    return {
        **_commit(),
        "machine": {name: machine[name] for name in ("processor", "cores", "memory_gib", "system")}
        | {"opencv_threads": libraries["threads"]},
        "versions": {
            "foveate": machine["foveate"],
            "python": machine["python"],
            "numpy": libraries["numpy"],
            "opencv": libraries["opencv"],
            "av": reader["pyav"],
            "ffmpeg": reader["ffmpeg"],
        },
    }


def new_record(command: str, out: str | None, **facts: Any) -> dict[str, Any]:
    """A record without cases: its origin, the command, and ``facts``. ``hand_out`` writes it to ``out`` when done.

    Raises SettingsError where the folder of ``out`` does not exist.
    """
    check_folders(out=out)
    return {**origin(), "command": command, **facts, "cases": []}


def clip_record(clip: Clip, frames: int) -> dict[str, Any]:
    """The input: its file's name, hash, size in bytes and pixels, frames, and how it was made if it was."""
    with av.open(f"file:{clip.path}") as container:
        video_stream = container.streams.video[0]
        codec, width, height = video_stream.codec_context.name, video_stream.width, video_stream.height
    return {
        "file": clip.path.name,
        "sha256": sha256(clip.path),
        "bytes": clip.path.stat().st_size,
        "codec": codec,
        "width": width,
        "height": height,
        "frames": frames,
        "made": clip.made,
    }


def method_cases(
    clip: Clip, frames: int, figures: Mapping[str, Mapping[str, Any]], **varied: Any
) -> list[dict[str, Any]]:
    """A case for each method, of its ``figures`` on one clip; ``varied``: further facts that tell cases apart."""
    about = clip_record(clip, frames)
    return [
        {"name": ", ".join(map(str, (clip.name, *varied.values(), method))), "clip": clip.name, **varied}
        | {"method": method, **found, **about}
        for method, found in figures.items()
    ]


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_text(record: dict[str, Any]) -> str:
    """The record as JSON, ending with a line feed."""
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def hand_out(record: dict[str, Any], out: str | None) -> None:
    """Write the record into the file ``out``; None: to standard output. Raises SinkError."""
    text = record_text(record)
    if out is None:
        print(text, end="", flush=True)
    else:
        write_text(Path(out), text)


def write_text(path: Path, text: str) -> None:
    """Write a text file. Raises SinkError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SinkError(f"cannot write {path}: {error.strerror}") from error


def _commit() -> dict[str, Any]:
    top = _git("rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != ROOT:  # not in a checkout, or in somebody else's
        return {"commit": None, "dirty": None}
    return {"commit": _git("rev-parse", "HEAD"), "dirty": bool(_git("status", "--porcelain", "--untracked-files=no"))}


def _git(*arguments: str) -> str | None:
    """What git prints; None where it is missing or fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
