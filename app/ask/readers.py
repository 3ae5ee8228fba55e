"""The models that answer: on this machine or behind a server. They collect frames until a question is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from foveate.app.ask.arguments import AskArguments
from foveate.app.ask.frames_held import Account, LatestFrames, LiveTokens
from foveate.pipeline.errors import ModelError, one_line, out_of_memory_advice
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.local import local_reader
from foveate.pipeline.vlm.pictures import pictures_of, tokens_of
from foveate.pipeline.vlm.server import Server, Shown
from foveate.pipeline.vlm.vllm.request import content_of

if TYPE_CHECKING:
    from foveate.pipeline.vlm.reader import Reader

_LIMIT: Final = 8192  # language-model tokens of a prompt and its answer, where the model's context allows them
_MARKS: Final = 16  # tokens that a later turn may have around it, beyond those of a first turn


class Answering(Protocol):
    """A model that collects frames and answers a question about them."""

    merge: int  # what allocation.merge must be
    tokens: int  # of a Selection
    patches: bool  # whether it must hold them

    def add(self, selection: Selection, frame: FrameView | None) -> None:
        """Collect one more frame."""

    def account(self) -> Account:
        """How many tokens the next answer will be made from."""

    def answer(self) -> Iterator[str]:
        """The answer to the question, piece by piece. Raises ModelError."""


class LocalModel:
    """A model of transformers, from a folder.

    For a live source with stream memory, one conversation goes on: at each question, tokens that are no longer visible
    are removed from its key-value cache, and only new ones are read. Models whose cache cannot drop tokens, and all
    models with frame memory or a file, read everything at each question.
    """

    patches = True

    def __init__(self, arguments: AskArguments) -> None:
        """Raises as ``local_reader``, and ModelError where not even one frame fits."""
        reader = local_reader(
            Path(arguments.model),
            otherwise="; use --server URL for a model on a server",
            besides=", or any behind --server URL",
        )
        self._reader, self._arguments = reader, arguments
        self.merge = reader.merge
        self.tokens = arguments.budget * self.merge**2
        per_frame = reader.length(arguments.question, 1) - reader.length(arguments.question)
        limit = _limit(reader, arguments)
        room = _room(reader, arguments, limit, per_frame)
        self._frames: LatestFrames[Selection] | None = None
        if arguments.memory == "frame":
            self._frames = LatestFrames(arguments.most_frames, room, per_frame)
        self._live = LiveTokens(room, self.merge, per_frame, scenes=arguments.every is None)
        talks = arguments.memory == "stream" and arguments.every is not None and reader.can_evict
        self._talk = reader.conversation(self._live.context, limit) if talks else None

    def add(self, selection: Selection, frame: FrameView | None) -> None:
        """See Answering."""
        if self._frames is None:
            self._live.add(selection)
            return
        groups = Groups.of(selection, self.merge)
        self._frames.add(selection.time, len(groups), groups.grid[0] * groups.grid[1], selection)

    def account(self) -> Account:
        """See Answering."""
        if self._frames is not None:
            return self._frames.account()
        account = self._live.account()
        if self._talk is None or not self._talk.tokens:
            return account
        return replace(account, new=sum(len(part.number) for part in self._live.context.unsent()))

    def answer(self) -> Iterator[str]:
        """See Answering."""
        try:
            with out_of_memory_advice("lower --limit, or --budget, which each frame gets"):
                yield from self._pieces()
        except ValueError as error:  # too many tokens for its context
            raise ModelError(one_line(error)) from error

    def _pieces(self) -> Iterator[str]:
        question, most = self._arguments.question, self._arguments.most_words
        if self._talk is not None:
            return self._talk.stream([], question, max_new_tokens=most)
        shown = self._live.shown if self._frames is None else self._frames.shown
        return self._reader.stream(shown, question, max_new_tokens=most)


class ServedModel:
    """A model behind a server, which takes pictures."""

    merge = 1
    patches = False

    def __init__(self, arguments: AskArguments, address: str) -> None:
        """Raises SettingsError."""
        self._server = Server(address, arguments.model, key_variable=arguments.key_variable)
        self._arguments = arguments
        self._frames: LatestFrames[Shown] = LatestFrames(arguments.most_frames, arguments.limit)
        self.tokens = max(1, arguments.budget * arguments.pixels_per_token // PATCH**2)  # which say where to look

    def add(self, selection: Selection, frame: FrameView | None) -> None:
        """See Answering."""
        assert frame is not None
        budget, pixels = self._arguments.budget, self._arguments.pixels_per_token
        pictures = pictures_of(selection, budget, frame.rgb(), pixels_per_token=pixels)
        whole = tokens_of(selection.width, selection.height, pixels)
        shown = Shown(selection.time, pictures)
        self._frames.add(selection.time, sum(picture.tokens for picture in pictures), whole, shown)

    def account(self) -> Account:
        """See Answering."""
        return self._frames.account()

    def answer(self) -> Iterator[str]:
        """See Answering."""
        return self._server.stream(self._frames.shown, self._arguments.question, max_tokens=self._arguments.most_words)


class ServedTokens:
    """A model behind a vLLM with the plugin, which takes the chosen tokens themselves."""

    merge = 2  # of all families there
    patches = True

    def __init__(self, arguments: AskArguments, address: str) -> None:
        """Raises SettingsError."""
        self._server = Server(address, arguments.model, key_variable=arguments.key_variable)
        self._arguments = arguments
        self._frames: LatestFrames[Selection] = LatestFrames(arguments.most_frames, arguments.limit)
        self.tokens = arguments.budget * self.merge**2

    def add(self, selection: Selection, frame: FrameView | None) -> None:
        """See Answering."""
        groups = Groups.of(selection, self.merge)
        self._frames.add(selection.time, len(groups), groups.grid[0] * groups.grid[1], selection)

    def account(self) -> Account:
        """See Answering."""
        return self._frames.account()

    def answer(self) -> Iterator[str]:
        """See Answering."""
        content = content_of(self._frames.shown, self._arguments.question)
        return self._server.stream_content(content, max_tokens=self._arguments.most_words)


def open_model(arguments: AskArguments) -> Answering:
    """The one that is asked for. Raises as they do."""
    if arguments.server is None:
        return LocalModel(arguments)
    return (ServedTokens if arguments.sends_tokens else ServedModel)(arguments, arguments.server)


def _limit(reader: Reader, arguments: AskArguments) -> int:
    """Tokens of a prompt and its answer. Raises ModelError for more than the model's context."""
    context, asked = reader.context_length, arguments.limit
    if context is not None and asked is not None and asked > context:
        raise ModelError(f"--limit {asked} exceeds the model's context of {context} tokens")
    return min(_LIMIT, context or _LIMIT) if asked is None else asked


def _room(reader: Reader, arguments: AskArguments, limit: int, per_frame: int) -> int:
    """Tokens for pictures and what stands around them. Raises ModelError where not even one frame fits."""
    question = reader.length(arguments.question)
    room = limit - question - arguments.most_words - _MARKS
    if arguments.budget + per_frame > room:
        what = "the model's context holds" if limit == reader.context_length else f"--limit {limit} allows"
        raise ModelError(
            f"a frame's {arguments.budget} tokens, the question's {question} and the answer's {arguments.most_words} "
            f"are more than {what}: {limit}; lower --budget or --max-tokens"
        )
    return room
