"""``foveate doctor``: what this machine can do, and what is missing, and why."""

import json as json_text
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text
from tyro.conf import FlagCreatePairsOff, arg

from foveate.app import probes
from foveate.pipeline import machine
from foveate.pipeline.exits import Exit
from foveate.pipeline.extras import install_command
from foveate.pipeline.presets import presets

_H264 = ("libx264", "libopenh264")  # encoders whose video browsers play

Line = tuple[bool | None, str, str]  # found, missing, or neither (None); subject; description


class _Console(Console):
    """Rich's Console, which by itself would end the program with code 1 when the reader goes away."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError instead."""
        raise BrokenPipeError


def doctor(
    json: FlagCreatePairsOff[Annotated[bool, arg(help="As JSON, for programs.")]] = False,
) -> int:
    """Say what this machine can do, what is missing and why, and how to install it."""
    facts = examine()
    if json:
        print(json_text.dumps(facts, indent=2), flush=True)
        return Exit.DONE
    console = _Console(highlight=False, soft_wrap=True)
    for title, lines in report(facts):
        console.print(Text(title, "bold"))
        for line in lines:
            console.print(_shown(line))
    return Exit.DONE


def examine() -> dict[str, Any]:
    """Everything that doctor knows, as plain data."""
    installed = probes.extras()
    missing = {
        name: [package for package, version in packages.items() if not version] for name, packages in installed.items()
    }
    return {
        "system": machine.system(),
        "video": machine.video(),
        "arrays": machine.arrays(),
        "gpu": probes.graphics(),
        "cuda": probes.cuda_engine(),
        "extras": {
            name: {"packages": packages, "install": install_command(name) if missing[name] else None}
            for name, packages in installed.items()
        },
        "queries": probes.vocabulary(),
        "models": probes.models(),
        "presets": {name: str(path) for name, path in presets().items()},
    }


def report(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[Line]]]:
    """The titles of the report, each with its lines, from the facts that ``examine`` returns."""
    system = facts["system"]
    yield (
        "Machine",
        [
            (None, "foveate", f"{system['foveate']}, Python {system['python']}"),
            (None, "system", system["system"]),
            (
                None,
                "processor",
                f"{system['processor']}, {system['cores']} cores, {system['memory_gib']} GiB of memory",
            ),
        ],
    )
    yield "Engines", _engines(facts)
    yield "Video", _video(facts["video"])
    yield "Extras", [_extra(name, extra) for name, extra in facts["extras"].items()]
    understood = ", ".join("/".join(words) for words in facts["queries"])
    yield "Queries", [(True, "attributes", f"understands, without a model: {understood}")]
    yield "Models", _models(facts["models"])
    yield "Presets", [(True, name, path) for name, path in facts["presets"].items()]


def _engines(facts: Mapping[str, Any]) -> list[Line]:
    arrays, gpu, engine = facts["arrays"], facts["gpu"], facts["cuda"]
    libraries = f"NumPy {arrays['numpy']}, OpenCV {arrays['opencv']} with {arrays['threads']} threads"
    lines: list[Line] = [(True, "cpu", f"{libraries}; {' '.join(arrays['features'][-4:])}")]
    if gpu["problem"]:
        return [*lines, (False, "cuda", f"no GPU to use: {gpu['problem']}")]
    devices = "; ".join(gpu["devices"]) or "a device"
    card = f"{devices}, driver {gpu['driver']}, CUDA {gpu['cuda']}"
    if engine["problem"]:
        return [*lines, (False, "cuda", f"{card}; {engine['problem']}")]
    choosing = f"on the GPU by {' and '.join(engine['chooses'])}, else on the CPU from the GPU's pixels"
    return [*lines, (True, "cuda", card), _decoding(engine), (None, "choosing", choosing)]


def _decoding(engine: Mapping[str, Any]) -> Line:
    """Which videos the GPU decodes."""
    if engine["decoding"]:
        return False, "decoding", f"on the CPU: {engine['decoding']}"
    decodes = ", ".join(f"{name} up to {most}" for name, most in engine["decodes"].items())
    return bool(decodes), "decoding", f"on the GPU, 4:2:0: {decodes or 'nothing'}"


def _video(video: Mapping[str, Any]) -> list[Line]:
    absent = [name for name, there in video["decoders"].items() if not there]
    present = [name for name, there in video["decoders"].items() if there]
    encoders = [name for name, there in video["encoders"].items() if there]
    browsers = any(name in _H264 for name in encoders)
    return [
        (None, "libraries", f"PyAV {video['pyav']} with FFmpeg {video['ffmpeg']}"),
        (not absent, "reads", ", ".join(present) + (f"; not {', '.join(absent)}" if absent else "")),
        (browsers, "overlay", ", ".join(encoders) + ("" if browsers else "; no H.264, which browsers play")),
    ]


def _models(models: Mapping[str, Any]) -> list[Line]:
    """Which models ``foveate ask`` works with."""
    versions = f"transformers {models['tried'][0]} or later, tried up to {models['tried'][-1]}"
    installed = f"{models['transformers']} is installed" if models["transformers"] else "none is installed"
    return [
        (bool(models["transformers"]), "folders", f"with {versions}, {installed}: {', '.join(models['families'])}"),
        (True, "servers", "any that takes pictures by OpenAI's protocol"),
        _vllm(models),
    ]


def _vllm(models: Mapping[str, Any]) -> Line:
    """Which versions of vLLM the plugin works with."""
    oldest, newest = models["vllm_tried"]
    plugin = f"with chosen tokens by Foveate's plugin, tried with vLLM {oldest} to {newest}"
    if (version := models["vllm"]) is None:
        return None, "vllm", f"{plugin}; none is installed"
    parts, first, last = (tuple(map(int, re.findall(r"\d+", each)[:2])) for each in (version, oldest, newest))
    if parts < first:
        return False, "vllm", f"{plugin}; {version} is installed, which is too old"
    newer = ", which is newer" if parts > last else ""
    return True, "vllm", f"{plugin}; {version} is installed{newer}"


def _extra(name: str, extra: Mapping[str, Any]) -> Line:
    packages = ", ".join(f"{package} {version}" for package, version in extra["packages"].items() if version)
    absent = ", ".join(package for package, version in extra["packages"].items() if not version)
    return (not absent, name, packages if not absent else f"lacks {absent}: {extra['install']}")


def _shown(line: Line) -> Text:
    fine, subject, text = line
    mark, style = {True: ("+", "green"), False: ("-", "yellow"), None: (" ", "")}[fine]
    return Text.assemble("  ", (f"{mark} {subject:<10}", style), " ", text)
