"""Who answers: a model on this machine, or one behind a server. Both keep the latest frames until they are asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from foveate.app.ask.arguments import AskArguments
from foveate.app.model_folder import OFFLINE, ModelFolder
from foveate.pipeline.errors import ModelError, one_line
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.pictures import pictures_of, tokens_of
from foveate.pipeline.vlm.server import Server, Shown

if TYPE_CHECKING:
    from foveate.pipeline.vlm.reader import Reader


class Cost(NamedTuple):
    """Language-model tokens of a frame."""

    spent: int
    whole: int  # of all of the frame, at its own size


class Answering(Protocol):
    """What is needed of a model."""

    merge: int  # what allocation.merge must be
    tokens: int  # of a Selection
    patches: bool  # whether it must hold them

    def add(self, selection: Selection, frame: FrameView | None) -> Cost:
        """Keep a frame, in place of the oldest where there are as many as may be asked about."""

    def answer(self, question: str) -> Iterator[str]:
        """The answer about the frames that are kept, piece by piece. Raises ModelError."""


class LocalModel:
    """A model of transformers, from a folder."""

    patches = True

    def __init__(self, arguments: AskArguments) -> None:
        """Raises SettingsError for what is no folder of a model, ModelError for one that cannot be loaded."""
        self._reader = local_reader(
            Path(arguments.model),
            otherwise="; --server URL asks one that is served",
            besides=", or any behind --server URL",
        )
        self._most = arguments.most_words
        self._kept: deque[Selection] = deque(maxlen=arguments.most_frames)
        self.merge = self._reader.merge
        self.tokens = arguments.budget * self.merge**2

    def add(self, selection: Selection, frame: FrameView | None) -> Cost:
        """See Answering."""
        self._kept.append(selection)
        groups = Groups.of(selection, self.merge)
        return Cost(len(groups), groups.grid[0] * groups.grid[1])

    def answer(self, question: str) -> Iterator[str]:
        """See Answering."""
        try:
            yield from self._reader.stream(list(self._kept), question, max_new_tokens=self._most)
        except ValueError as error:  # too many tokens for its context
            raise ModelError(one_line(error)) from error
        except RuntimeError as error:
            if "out of memory" not in str(error).casefold():
                raise
            raise ModelError(f"{one_line(error)}; ask about fewer frames, or give each a smaller --budget") from error


class ServedModel:
    """A model behind a server, which takes pictures."""

    merge = 1
    patches = False

    def __init__(self, arguments: AskArguments, address: str) -> None:
        """Raises SettingsError."""
        self._server = Server(address, arguments.model, key_variable=arguments.key_variable)
        self._arguments = arguments
        self._kept: deque[Shown] = deque(maxlen=arguments.most_frames)
        self.tokens = max(1, arguments.budget * arguments.pixels_per_token // PATCH**2)  # which say where to look

    def add(self, selection: Selection, frame: FrameView | None) -> Cost:
        """See Answering."""
        assert frame is not None
        budget, pixels = self._arguments.budget, self._arguments.pixels_per_token
        pictures = pictures_of(selection, budget, frame.rgb(), pixels_per_token=pixels)
        self._kept.append(Shown(selection.time, pictures))
        return Cost(sum(picture.tokens for picture in pictures), tokens_of(selection.width, selection.height, pixels))

    def answer(self, question: str) -> Iterator[str]:
        """See Answering."""
        return self._server.stream(list(self._kept), question, max_tokens=self._arguments.most_words)


def open_model(arguments: AskArguments) -> Answering:
    """The one that is asked for. Raises as they do."""
    return LocalModel(arguments) if arguments.server is None else ServedModel(arguments, arguments.server)


def local_reader(path: Path, otherwise: str = "", besides: str = "") -> Reader:
    """The model in the folder that --model names, on the GPU where there is one; for the rest see ModelFolder.

    Raises SettingsError for what is no folder of a model, ModelError for one that cannot be loaded.
    """
    folder = ModelFolder(path, "--model", otherwise=otherwise, besides=besides)
    folder.kind()
    return folder.loaded(lambda: _loaded(path))


def _loaded(path: Path) -> Reader:
    import torch
    import transformers

    from foveate.pipeline.vlm.reader import Reader

    processor = transformers.AutoProcessor.from_pretrained(path, **OFFLINE)
    model = transformers.AutoModelForImageTextToText.from_pretrained(path, dtype="auto", **OFFLINE)
    return Reader(model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), processor)
