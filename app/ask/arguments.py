"""The flags of ``foveate ask``, checked, as one plain object."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ValidationError
from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg

from foveate.app.addresses import resolved
from foveate.app.flags import spelling
from foveate.app.quantities import seconds_in
from foveate.pipeline.attributes.vocabulary import queries_in
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import Settings
from foveate.pipeline.settings_errors import check_count, complaint

_MOST_FRAMES: Final = 10_000
_MOST_BUDGET: Final = 100_000  # language-model tokens
_MOST_WORDS: Final = 1_000_000
_FRAMES_WHOLE: Final = 16  # by default, where each frame is given whole
_SOURCE = "A video file, a picture, numbered pictures, or with --every a camera or network stream as for foveate live."
_QUESTION = "What to ask."
_MODEL = "The folder of a transformers model; with --server, the model's name on the server."
_SERVER = "The address of a server with an OpenAI-compatible API, such as http://localhost:8000."
_TOKENS = "With --server: send the chosen tokens instead of pictures. The server must be a vLLM with Foveate's plugin."
_KEY_ENV = "The environment variable that holds the server's API key."
_FPS = "Sample this many frames per second."
_FRAMES = (
    "Use at most this many frames; with --every, the latest ones. Default: 16 with --memory frame or --server, else "
    "all."
)
_BUDGET = "Language-model tokens per frame."
_MEMORY = (
    "stream: the model gets the newest token of each place. frame: it gets each frame separately, as it always does "
    "with --server."
)
_LIMIT = (
    "Maximum tokens of a prompt and its answer together. Default: 8192, or the model's context if that is shorter; no "
    "limit if pictures are sent to a server."
)
_QUERY = "What to look for, instead of the attributes named in the question; see foveate run. Can be repeated."
_START = "Start at this time, such as 12.5 or 1:02:03.5. A negative time counts from the end of the file."
_END = "Stop before this time."
_EVERY = "For a live source: ask about its latest frames at this interval, such as 10s or 5m, until Ctrl-C."
_MAX_TOKENS = "Maximum tokens of an answer."
_PIXELS = "With --server: pixels per language-model token, such as 28 * 28 = 784 for Qwen2.5-VL."
_DEBUG = "Show the traceback of an error."
_QUIET = "Print only the answer, and warnings and errors."


@dataclass(frozen=True, slots=True)
class AskArguments:
    """One ``foveate ask``."""

    address: str
    question: str
    model: str
    server: str | None
    sends_tokens: bool  # to the server, instead of pictures
    key_variable: str
    budget: int  # language-model tokens for each frame
    memory: Literal["frame", "stream"]
    limit: int | None  # language-model tokens in all
    most_frames: int | None
    most_words: int  # tokens of an answer
    pixels_per_token: int
    every: float | None  # seconds
    quiet: bool
    tree: dict[str, Any]  # settings as plain data, without what the model decides

    def settings(self, merge: int, tokens: int, patches: bool) -> Settings:
        """Settings for ``tokens`` tokens a frame in groups of ``merge`` x ``merge``. Raises SettingsError."""
        allocation = {"merge": merge, "memory": self.memory}
        decided = {"budget": tokens, "patches": patches, "allocation": allocation}
        try:
            return Settings.model_validate(self.tree | decided)
        except ValidationError as error:
            raise SettingsError(complaint(error, spelling)) from error


def ask(
    source: Annotated[Positional[str], arg(metavar="SOURCE", help=_SOURCE)],
    question: Annotated[Positional[str], arg(metavar="QUESTION", help=_QUESTION)],
    model: Annotated[str, arg(metavar="DIR|NAME", help=_MODEL)],
    server: Annotated[str | None, arg(metavar="URL", help=_SERVER)] = None,
    tokens: FlagCreatePairsOff[Annotated[bool, arg(help=_TOKENS)]] = False,
    key_env: Annotated[str, arg(metavar="NAME", help=_KEY_ENV)] = "OPENAI_API_KEY",
    fps: Annotated[float, arg(metavar="X", help=_FPS)] = 1.0,
    frames: Annotated[int | None, arg(metavar="N", help=_FRAMES)] = None,
    budget: Annotated[int, arg(metavar="N", help=_BUDGET, aliases=["-b"])] = 68,
    memory: Annotated[Literal["frame", "stream"] | None, arg(metavar="{frame,stream}", help=_MEMORY)] = None,
    limit: Annotated[int | None, arg(metavar="N", help=_LIMIT)] = None,
    query: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="TEXT", help=_QUERY)]] = (),
    start: Annotated[str | None, arg(metavar="TIME", help=_START)] = None,
    end: Annotated[str | None, arg(metavar="TIME", help=_END)] = None,
    every: Annotated[str | None, arg(metavar="TIME", help=_EVERY)] = None,
    max_tokens: Annotated[int, arg(metavar="N", help=_MAX_TOKENS)] = 256,
    pixels_per_token: Annotated[int, arg(metavar="N", help=_PIXELS)] = 32 * 32,
    debug: FlagCreatePairsOff[Annotated[bool, arg(help=_DEBUG)]] = False,
    quiet: FlagCreatePairsOff[Annotated[bool, arg(help=_QUIET, aliases=["-q"])]] = False,
) -> AskArguments:
    """Ask a vision-language model about a video: only the chosen tokens of its frames are given to it.
    $ foveate ask clip.mp4 "What are the people doing?" --model Qwen3-VL-4B-Instruct
    $ foveate ask clip.mp4 "Who is moving?" --server http://localhost:8000 --model Qwen/Qwen3-VL-4B-Instruct
    $ foveate ask rtsp://camera/stream "Is anyone at the door?" --every 10s --model Qwen3-VL-4B-Instruct
    """
    if not question.strip():
        raise SettingsError("QUESTION must not be empty")
    memory = memory or ("stream" if server is None else "frame")
    frames = _frames(frames, memory, every)
    if memory == "stream" and server is not None:
        raise SettingsError("--memory stream needs a model in a folder; one on a server gets each frame separately")
    if tokens and server is None:
        raise SettingsError("--tokens needs --server; a model in a folder always gets the chosen tokens")
    if limit is not None:
        check_count("limit", limit, most=_MOST_BUDGET)
    check_count("budget", budget, most=_MOST_BUDGET)
    check_count("max-tokens", max_tokens, most=_MOST_WORDS)
    check_count("pixels-per-token", pixels_per_token, least=64, most=1 << 16)
    seconds = None if every is None else seconds_in(every, "--every")
    looked: dict[str, Any] = {"fps": fps, "frames": None if seconds is not None else frames, "start": start, "end": end}
    tree = {"query": query or queries_in(question), "source": looked}
    address = source if seconds is None else resolved(source)
    arguments = AskArguments(
        address, question, model, server, tokens, key_env, budget, memory, limit, frames, max_tokens, pixels_per_token,
        seconds, quiet, tree,
    )  # fmt: skip
    arguments.settings(1, budget, False)
    return arguments


def _frames(asked: int | None, memory: str, every: str | None) -> int | None:
    """The most frames. Raises SettingsError for an invalid number, or one without effect."""
    if asked is None:
        return _FRAMES_WHOLE if memory == "frame" else None
    check_count("frames", asked, most=_MOST_FRAMES)
    if memory == "stream" and every is not None:
        raise SettingsError("--frames together with --every needs --memory frame")
    return asked
