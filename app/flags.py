"""The flags of ``foveate run``: a plain mirror of the Settings tree that tyro reads; Settings checks the values."""

from collections.abc import Sequence
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg
from tyro.constructors import ConstructorRegistry, PrimitiveTypeInfo

from foveate.pipeline.settings import Settings
from foveate.pipeline.settings_errors import Keys, leaves
from foveate.pipeline.settings_texts import text_of

# For a flag of the type tuple[str, ...], tyro imports typeguard, which takes as long as NumPy; not for a plain tuple.
_TUPLE: Final[Any] = tuple
# How tyro reads tuple[tuple[str, ...], ...].
_VALUES: Final = ConstructorRegistry.get_primitive_spec(
    PrimitiveTypeInfo.make(UseAppendAction[tuple[tuple[str, ...], ...]], set())
)

Flag = tuple[str, Any, Any]  # name, annotated type, what dataclasses.field() made

_FIRST: Final[Sequence[Keys]] = (("budget",), ("query",), ("allocation", "memory"))
_PLAIN: Final = frozenset(  # no prefix
    {("allocation", name) for name in ("memory", "budget_average", "burst")}
    | {("source", name) for name in ("stream", "start", "end", "fps", "every", "frames")}
    | {("live", name) for name in ("policy", "transport", "connect_timeout", "stall_timeout", "wait")}
)
# The settings that belong to no group, in the boxes of the help.
_BOXES: Final[dict[str, tuple[str, Sequence[str]]]] = {
    "output": ("What else is written.", ("maps", "patches", "device_patches")),
    "search": (
        "What to look for, and where.",
        ("query_image", "query_lenient", "encoder", "text", "keep_embeddings", "regions", "region_tokens"),
    ),
    "engine": ("Where and how the pixels are processed.", ("engine", "device", "analysis_level", "depth")),
}
_ORDER: Final = (
    "output",
    "search",
    "source",
    "allocation",
    "score",
    "change",
    "cache",
    "engine",
    "clip",
    "ocr",
    "live",
)
_LISTS: Final = {"query": "TEXT", "query_image": "FILE", "maps": "NAME"}  # one entry of each, in the help
_TIMES: Final = frozenset({("source", "start"), ("source", "end")})  # written as 1:02:03.5, or as plain seconds
TIMES: Final = frozenset(f"--{name}" for _, name in _TIMES)
_SIGNS: Final[dict[Any, str]] = {int: "N", float: "X", str: "NAME"}
_TEXTS: Final[dict[Keys, str]] = {
    ("regions",): "FILE",
    ("depth",): "MODULE:FUNCTION",
    ("live", "ca_file"): "FILE",
    ("live", "size"): "WxH",
    ("score", "weights"): "FILE",
    ("clip", "weights"): "FILE|TAG",
    ("clip", "pca"): "FILE",
    ("clip", "device"): "cpu|cuda",
}
SHORT: Final = {"budget": "-b", "out": "-o", "config": "-c", "quiet": "-q"}
_BOX_OF: Final = {name: box for box, (_, members) in _BOXES.items() for name in members}
LAYOUT: Final = "spec40"
# Each command line begins with a mark: lines that begin with a letter are joined into one.
_ABOUT: Final = """Choose the tokens of every frame of a video.
  $ foveate run clip.mp4 > tokens.jsonl
  $ foveate run clip.mp4 --budget 100 --out tokens.jsonl --overlay seen.mp4
  $ foveate run clips/ --out-dir tokens"""
_ABOUT_LIVE: Final = """Choose the tokens of cameras and network streams, until stopped.
  $ foveate live rtsp://camera/stream --out tokens.jsonl --rotate 1h --web 127.0.0.1:8080
  $ foveate live 0 --duration 10m > tokens.jsonl
  $ foveate live env:DOOR @/etc/foveate/yard --out 'tokens-{}.jsonl'"""
_ABOUT_CORPUS: Final = """Choose the tokens of many videos, by all processors or by a cluster. Run it again to go on.
  $ foveate corpus clips/ --out tokens
  $ foveate corpus s3://bucket/clips --out s3://bucket/tokens --limit 600
  $ foveate corpus @list.txt --out tokens --ray 10.0.0.1:6379 --ray-gpus 0.25"""
_CORPUS_SOURCE: Final = (
    "As for foveate run: a video, a folder, a pattern such as 'clips/*.mp4', or @FILE, which names one source a line; "
    "also s3://BUCKET/PATH, an object or all videos below it."
)
_CORPUS_OUT: Final = (
    "Where the corpus goes: a folder, or s3://BUCKET/PATH, which needs the extra corpus. What is there already is not "
    "done again."
)
_WORKERS: Final = (
    "Processes that work at the same time; 0: this one works alone. Default: one for each processor, four for each GPU."
)
_RAY: Final = (
    "Work on a Ray cluster instead: HOST:PORT, auto for the one of which this machine is a node, or local for a new "
    "one on this machine. Needs the extra ray."
)
_RAY_GPUS: Final = "With --ray: the share of a GPU that each worker takes, such as 0.25."
_SEGMENT: Final = "Split videos into segments of this length, such as 10m. With stream memory, each begins anew."
_LIMIT: Final = "Stop a job that takes longer, such as 90s or 1h: it has failed."
_RETRY: Final = "Also do again what failed before."
_SHARD: Final = "Do only the I-th of N equal parts of the work, for arrays of jobs: 3/16."
_LIVE_SOURCE: Final = (
    "A camera's number, /dev/videoN, or an address that begins with rtsp, rtsps, http, https, rtmp, rtmps or udp. "
    "env:NAME and @FILE read the address from an environment variable or a file, to hide its password from other "
    "users. A file may hold several, one on each line."
)
_ROTATE: Final = (
    "Start a new file at this size or age: 100MB, 1h, 1d. Each file is complete. Default: Parquet every hour, others "
    "never; NPZ and safetensors at 64 MiB in any case."
)
_KEEP: Final = "Keep this many finished files of each output, and delete older ones. Default: all."
_DURATION: Final = "Stop after this time: 90s, 20m, 8h."
_PROCESSES: Final = "Processes that read the sources. Default: one for 25 sources."
_WEB: Final = "Serve the web page at this address, such as 127.0.0.1:8080; needs the extra web."
_WEB_TOKEN: Final = "A file with the page's access token; required if other machines can reach the page."
_SOURCE: Final = (
    "A video file, a picture, or numbered pictures such as frame_%04d.png; the http://, https:// or ftp:// address of "
    "a file; a folder, a pattern such as 'clips/*.mp4', or @FILE, which names one source a line."
)
_OVERLAY: Final = "A video of the tokens drawn over the picture: .mp4, .mkv or .mov."
_ENCODE: Final = (
    "The folder of a model with a supported vision tower. Its embeddings of the tokens are added to .npz and "
    ".safetensors outputs; needs the extra vlm."
)
_REPORT: Final = (
    "A self-contained web page, .html: the clip with its tokens, the score and what the model sees, plots over time, "
    "the queries and the settings."
)
_CONFIG: Final = "Settings: a TOML file, or the name of a preset. Flags override it."
_SHOW_CHANNELS: Final = (
    "A picture of all channels of one frame: .png, .jpg or .webp. Without --out, --overlay and --report, nothing else "
    "is written, and the run ends after that frame."
)
_SHOW_FRAME: Final = (
    "The frame for --show-channels, counted from 0. In the first one, channels that need earlier frames are 0."
)
_LAYOUT: Final = "The channels to show, in order: spec40, spec40-late, spec13, spec18, or a TOML file."
_QUIET: Final = "No progress and no summary, only warnings and errors."
_DEBUG: Final = "Show the traceback of an error."
_OUT: Final = (
    "Output files, by suffix: .jsonl, .parquet, .npz, .safetensors, .rrd; - is JSON lines on standard output, the "
    "default if there is no other output and it is no terminal; mqtt://HOST/TOPIC is short records to a broker."
)
_OUT_DIR: Final = (
    "The folder that outputs lie in. In their names {} stands for the path of a video below the folder that all "
    "sources have in common; with several videos each output needs it. Without other outputs: {}.jsonl."
)


def spelling(keys: Sequence[str]) -> str:
    """The flag of the setting at ``keys``."""
    shown = keys[-1:] if tuple(keys) in _PLAIN else keys
    return "--" + ".".join(shown).replace("_", "-")


def spellings(command: str = "run") -> list[str]:
    """All long flags of ``foveate <command>``."""
    flags = {"live": [*_outputs(), *_lasting()], "corpus": _of_corpus()}.get(
        command, [*_outputs(), *_of_run(), *_files_of_run()]
    )
    own = ["--" + name.replace("_", "-") for name, _, _ in (*flags, *_switches())]
    return [spelling(keys) for keys, _ in leaves()] + own


def shortened(arguments: Sequence[str]) -> list[str]:
    """The arguments, with ``--memory`` in place of ``--allocation.memory``, and so on."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*map(_short_of, arguments[:end]), *arguments[end:]]


def _short_of(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return _SHORTER.get(name.replace("_", "-"), name) + equals + value


_SHORTER: Final = {
    "--max-frames": "--frames",
    "--live.no-wait": "--no-wait",
    **{"--" + ".".join(keys).replace("_", "-"): spelling(keys) for keys in _PLAIN},
}


def run_flags(preset: Settings, named: str | None = None) -> type[Any]:
    """The dataclass of everything ``foveate run`` takes, with the values of ``preset`` as defaults.

    With ``named``, what ``named_in`` says of the arguments, only the flags that it may name are fields, and without
    help: tyro takes half a millisecond for each field that it reads. The others are attributes all the same.
    """
    return _command("Run", _ABOUT, _addresses(_SOURCE), [*_outputs(), *_of_run()], preset, named, _files_of_run())


def live_flags(preset: Settings, named: str | None = None) -> type[Any]:
    """The same for ``foveate live``."""
    return _command("Live", _ABOUT_LIVE, _addresses(_LIVE_SOURCE), [*_outputs(), *_lasting()], preset, named)


def corpus_flags(preset: Settings, named: str | None = None) -> type[Any]:
    """The same for ``foveate corpus``."""
    return _command("Corpus", _ABOUT_CORPUS, _addresses(_CORPUS_SOURCE), _of_corpus(), preset, named)


def named_in(arguments: Sequence[str]) -> str:
    """The flags in ``arguments``, which may be spelled in several ways, as one text that holds their names."""
    return " ".join(argument for argument in arguments if argument[:1] == "-").replace("-", "_")


def _addresses(text: str) -> Flag:
    about = arg(metavar="SOURCE ...", help=text, help_behavior_hint="")
    return "addresses", Annotated[_TUPLE, Positional, about], field()


def _command(
    name: str,
    about: str,
    sources: Flag,
    own: Sequence[Flag],
    preset: Settings,
    named: str | None,
    output: Sequence[Flag] = (),
) -> type[Any]:
    flags = {keys: _setting_flag(keys, info, preset, named) for keys, info in leaves()}
    first = [flags.pop(keys) for keys in _FIRST]
    boxes = {box: _box(box, flags, named, output if box == "output" else ()) for box in _ORDER}
    if name == "Live":
        boxes = {"live": boxes.pop("live"), **boxes}
    return _mirror(name, about, [sources, *first, *own, *_switches(), *boxes.values()], named)


def _box(name: str, flags: dict[Keys, Flag], named: str | None, output: Sequence[Flag]) -> Flag:
    """A box of the help: a nested dataclass of the flags of one group of Settings, or of several without a group."""
    if name in _BOXES:
        about, members = _BOXES[name]
        read = [*output, *(flags[member,] for member in members)]
    else:
        about = Settings.model_fields[name].annotation.__doc__ or ""
        read = [flag for keys, flag in flags.items() if keys[0] == name and len(keys) > 1]
    group = _mirror(name, about, read, named)
    return name, group, field(default_factory=group)


def chosen(parsed: Any, preset: Settings) -> dict[str, Any]:
    """The settings in ``parsed``, an instance of ``run_flags(preset)``, as nested plain data."""
    tree: dict[str, Any] = {}
    for keys, info in leaves():
        value = value_of(parsed, keys)
        if _is_list(info):
            value = tuple(chain.from_iterable(value)) or _at(preset, keys)
        branch = tree
        for key in keys[:-1]:
            branch = branch.setdefault(key, {})
        branch[keys[-1]] = value
    return tree


def value_of(parsed: Any, keys: Keys) -> Any:
    """What the flag of the setting at ``keys`` was given, in an instance of ``run_flags(preset)``."""
    if keys in _FIRST:
        return _at(parsed, keys[-1:])
    return _at(parsed, keys if len(keys) > 1 else (_BOX_OF[keys[0]], keys[0]))


def _outputs() -> list[Flag]:
    return [
        _repeatable("out", "FILE", _OUT),
        _single("overlay", str | None, "FILE", _OVERLAY, None),
        _single("config", str | None, "FILE", _CONFIG, None),
    ]


def _lasting() -> list[Flag]:
    return [
        _single("rotate", str | None, "SIZE|TIME", _ROTATE, None),
        _single("keep", int | None, "N", _KEEP, None),
        _single("duration", str | None, "TIME", _DURATION, None),
        _single("processes", int | None, "N", _PROCESSES, None),
        _single("web", str | None, "HOST:PORT", _WEB, None),
        _single("web_token", str | None, "FILE", _WEB_TOKEN, None),
    ]


def _of_run() -> list[Flag]:
    return [
        _single("report", str | None, "FILE", _REPORT, None),
        _single("out_dir", str | None, "DIR", _OUT_DIR, None),
    ]


def _files_of_run() -> list[Flag]:
    return [
        _single("encode", str | None, "DIR", _ENCODE, None),
        _single("show_channels", str | None, "FILE", _SHOW_CHANNELS, None),
        _single("show_frame", int, "N", _SHOW_FRAME, 0),
        _single("layout", str, "NAME|FILE", _LAYOUT, LAYOUT),
    ]


def _of_corpus() -> list[Flag]:
    return [
        _single("out", str | None, "DIR|s3://...", _CORPUS_OUT, None),
        _single("config", str | None, "FILE", _CONFIG, None),
        _single("workers", int | None, "N", _WORKERS, None),
        _single("limit", str | None, "TIME", _LIMIT, None),
        _switch("retry", _RETRY),
        _single("segment", str | None, "TIME", _SEGMENT, None),
        _single("shard", str | None, "I/N", _SHARD, None),
        _single("ray", str | None, "ADDRESS", _RAY, None),
        _single("ray_gpus", float, "X", _RAY_GPUS, 0.0),
    ]


def _switches() -> list[Flag]:
    return [_switch("quiet", _QUIET), _switch("debug", _DEBUG)]


def _setting_flag(keys: Keys, info: FieldInfo, preset: Settings, named: str | None) -> Flag:
    text = text_of(*keys) if named is None else ""
    if _is_list(info):
        return _repeatable(keys[-1], _LISTS[keys[-1]], text)
    dotted = len(keys) > 1 and keys not in _PLAIN
    if keys in _TIMES:
        return _single(keys[-1], str | None, "TIME", text, _written(_at(preset, keys)))
    kinds = (info.annotation, *get_args(info.annotation))
    sign = next((sign for kind, sign in _SIGNS.items() if kind in kinds), None)
    metavar = _TEXTS.get(keys) or ("{True,False}" if bool in kinds[1:] else sign)
    return _single(keys[-1], info.annotation, metavar, text, _at(preset, keys), dotted=dotted)


def _written(seconds: float | None) -> str | None:
    return None if seconds is None else repr(seconds)


def _single(name: str, kind: Any, metavar: str | None, text: str, default: Any, *, dotted: bool = False) -> Flag:
    """A flag with one value; ``dotted``: spelled with the name of its box."""
    state = {True: "on", False: "off"}[default] if isinstance(default, bool) else default
    shown = "" if default is None else f"[{state}]"
    about = arg(help=text, metavar=metavar, aliases=_short(name), help_behavior_hint=shown, prefix_name=dotted)
    plain = Union[get_args(kind)] if isinstance(kind, UnionType) else kind  # noqa: UP007 - for X | Y tyro imports typeguard
    return name, Annotated[plain, about], field(default=default)


def _switch(name: str, text: str) -> Flag:
    about = arg(help=text, aliases=_short(name), help_behavior_hint="")
    return name, FlagCreatePairsOff[Annotated[bool, about]], field(default=False)


def _repeatable(name: str, metavar: str, text: str) -> Flag:
    """A flag that takes one or more values, and may be given again to add more."""
    about = arg(help=text, metavar=f"{metavar} ...", aliases=_short(name), help_behavior_hint="", prefix_name=False)
    return name, Annotated[_TUPLE, _VALUES, UseAppendAction, about], field(default=())


def _short(name: str) -> list[str]:
    return [SHORT[name]] if name in SHORT else []


def _mirror(name: str, about: str, flags: Sequence[Flag], named: str | None) -> type[Any]:
    read = [flag for flag in flags if named is None or _may_be_named(flag, named)]
    others = {flag[0]: _default(flag[2]) for flag in flags if flag not in read}
    return make_dataclass(name, read, frozen=True, namespace={"__doc__": about, **others})


def _may_be_named(flag: Flag, named: str) -> bool:
    name, kind, made = flag
    if is_dataclass(kind):
        return bool(fields(kind))
    required = made.default is MISSING
    return required or name in named or SHORT.get(name, name).replace("-", "_") in named


def _default(made: Any) -> Any:
    return made.default_factory() if made.default is MISSING else made.default


def _is_list(info: FieldInfo) -> bool:
    return get_origin(info.annotation) is tuple


def _at(tree: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        tree = getattr(tree, key)
    return tree
