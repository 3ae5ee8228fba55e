"""``foveate corpus`` on GPUs, by several processes, against bare decoding of the same files by as many:

python -m foveate.bench.gpu.corpus sample_videos/bunny.mp4 --out gpu_corpus.json

The file is encoded once in the size of ``--size``, and its packets are repeated, so that long files cost little. On a
host with two GPUs, ``--gpus 1 2`` measures one and both.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.clips.encoding import looped
from foveate.bench.entry import Out, run_module, size_of
from foveate.bench.gpu import bare
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.bench.speed.paced import camera_clip
from foveate.cuda.driver.device import Device
from foveate.pipeline.settings_errors import check_count

_FRAMES: Final = 300  # that are encoded
_RATE: Final = 30


def gpu_corpus(
    file: Annotated[Positional[str], arg(metavar="FILE", help="What is seen; it is scaled and encoded anew.")],
    out: Out = None,
    size: Annotated[str, arg(metavar="WxH", help="Of the pictures.")] = "1920x1080",
    times: Annotated[int, arg(metavar="N", help="Each file of the corpus plays 300 frames this often.")] = 15,
    files: Annotated[int, arg(metavar="N", help="How many files, for each GPU.")] = 16,
    workers: Annotated[int, arg(metavar="N", help="Processes for each GPU.")] = 4,
    repeats: Annotated[int, arg(metavar="N", help="Runs of each kind, in turns; the median counts.")] = 3,
    gpus: Annotated[tuple[int, ...], arg(metavar="N ...", help="How many GPUs.")] = (1,),
) -> None:
    """Compare a corpus with bare decoding in the same run: whole commands, from their start to their end."""
    for name, value in {"times": times, "files": files, "workers": workers, "repeats": repeats}.items():
        check_count(name, value, 1, 10_000)
    record = new_record("gpu_corpus", out)
    pixels = size_of(size)
    with Device() as device:
        record["card"] = device.name
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        short, clip = Path(folder) / "short.mp4", Path(folder) / "clip.mp4"
        camera_clip(Path(file), short, pixels, _FRAMES, _RATE)
        frames = looped(short, clip, times)
        record["first_s"] = _first(short, Path(folder) / "first")
        record |= {"clip": clip_record(Clip(Path(file).stem, short), _FRAMES), "times": times}
        for count in gpus:
            record["cases"].append(_case(clip, frames, count, count * files, count * workers, repeats))
    hand_out(record, out)


def _first(file: Path, place: Path) -> float:
    """Seconds of the command for one short file, which on a new machine compiles the kernels for all later ones."""
    videos = place / "videos"
    videos.mkdir(parents=True)
    shutil.copy(file, videos)
    return _corpus(videos, place / "store", _FRAMES, 1, 1)


def _case(clip: Path, frames: int, gpus: int, files: int, workers: int, repeats: int) -> dict[str, Any]:
    place = clip.parent / f"{gpus}-gpus"
    videos = place / "videos"
    videos.mkdir(parents=True)
    for number in range(files):
        os.link(clip, videos / f"{number:03d}.mp4")
    decodes, corpora = [], []
    for repeat in range(repeats):
        decodes.append(_bare(sorted(videos.iterdir()), frames, gpus, workers))
        corpora.append(_corpus(videos, place / str(repeat), frames, gpus, workers))
    decode, corpus = median(decodes), median(corpora)
    case = {
        "name": f"{gpus} GPUs",
        "gpus": gpus,
        "files": files,
        "workers": workers,
        "frames": files * frames,
        "decode_fps": files * frames / decode,
        "corpus_fps": files * frames / corpus,
        "ratio": decode / corpus,
        "samples": {"decode_seconds": decodes, "corpus_seconds": corpora},
    }
    say(
        f"{gpus} GPUs, {files} files, {workers} processes: bare {case['decode_fps']:.0f} fps, "
        f"corpus {case['corpus_fps']:.0f} fps, ratio {case['ratio']:.3f}"
    )
    return case


def _bare(videos: Sequence[Path], frames: int, gpus: int, workers: int) -> float:
    """Seconds that as many processes take to decode all files. Raises RedCheckError where frames are missing."""
    begin = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", bare.__name__, *map(str, videos[number::workers])],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": str(number % gpus)},
        )
        for number in range(workers)
    ]
    decoded = [int(process.communicate()[0] or 0) for process in running]
    seconds = time.perf_counter() - begin
    if sum(decoded) != len(videos) * frames:
        raise RedCheckError(f"{len(videos)} files of {frames} frames gave {decoded}")
    return seconds


def _corpus(videos: Path, store: Path, frames: int, gpus: int, workers: int) -> float:
    """Seconds of the command. Raises RedCheckError where it fails, and where frames are missing."""
    command = [sys.executable, "-m", "foveate", "corpus", str(videos), "--out", str(store), "--engine", "cuda", "-q"]
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))}
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, "--workers", str(workers)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **visible},
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise RedCheckError(f"foveate corpus ended with {done.returncode}: {done.stderr.strip()}")
    written = [json.loads(line)["frames"] for line in (store / "index.jsonl").read_text().splitlines()]
    if written != [frames] * len(list(videos.iterdir())):
        raise RedCheckError(f"files of {frames} frames gave {written}")
    return seconds


if __name__ == "__main__":
    run_module(gpu_corpus)
