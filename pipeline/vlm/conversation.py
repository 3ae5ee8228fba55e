"""Several turns with a vision-language model on one key-value cache, from which obsolete tokens are evicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, StoppingCriteria, StoppingCriteriaList, TextIteratorStreamer

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.context import Context, Part, part_of
from foveate.pipeline.vlm.eviction import check_droppable, droppable, keep, move
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.prompts import Prompt, closed, joined
from foveate.pipeline.vlm.server import ANSWER

if TYPE_CHECKING:
    from foveate.pipeline.vlm.attention_recorder import AttentionRecorder
    from foveate.pipeline.vlm.reader import Reader

_FIRST: Final = 4  # tokens that always stay, as models attend to the first ones whatever they are (Xiao et al. 2023)
_TEXT: Final = -1


class Attended(NamedTuple):
    """What the model attended to of one Selection."""

    frame: int  # ``index`` of the Selection
    weights: NDArray[np.float32]  # [K] in [0, 1], one for each of its tokens; 1 is the most of all Selections


class _Marks(NamedTuple):
    """What each of L tokens of a prompt is: int64[L] each."""

    number: torch.Tensor  # of a group; _TEXT: no group
    picture: torch.Tensor  # which picture of the conversation; _TEXT: none
    turn: torch.Tensor

    def __add__(self, other: Any) -> _Marks:  # one behind the other
        return _Marks(*(torch.cat(pair) for pair in zip(self, other, strict=True)))

    def of(self, kept: torch.Tensor) -> _Marks:
        """The marks of the selected tokens."""
        return _Marks(*(each[kept] for each in self))


class Conversation:
    """Several turns on one key-value cache: what was read is not read again.

    With a ``context`` the cache holds of a stream what still shows. Selections given to a turn are added to it (or call
    its ``add`` yourself, of frames between turns). At the next turn the groups that are dead leave the cache, as if
    they were masked, and of the new ones only those are read that still show.

    With ``tokens`` the prompt and the answer never exceed so many. Where they would, text leaves (questions, answers,
    times, marks around pictures), the oldest turn's first; the first four tokens and the pictures' live groups stay, so
    let the context's limit be less. Positions go on as they were until they would pass the model's context; then all
    that is left is moved together, piece by piece, so that they stay bounded. Tokens then lie nearer to each other than
    when they were read.

    ``cache`` is the key-value cache. ``prompt`` holds the tokens in it, and the last token of the latest answer, which
    is not in it yet; None before the first turn.
    """

    def __init__(self, reader: Reader, context: Context | None = None, tokens: int | None = None) -> None:
        self._reader, self._model = reader, reader.model
        self._context, self._tokens = context, tokens
        self.prompt: Prompt | None = None
        self._marks = _Marks(*[torch.empty(0, dtype=torch.int64)] * 3)
        self.cache: Any = DynamicCache(config=self._model.config)
        self._pictures = self._turns = 0
        self._over = False  # a turn failed and cannot be undone
        self._latest: tuple[list[tuple[Part, Groups]], NDArray[np.int64], int] | None = None
        if tokens is not None and tokens < 1:
            raise ValueError(f"tokens must be at least 1, got {tokens}")
        if context is not None and context.merge != reader.merge:
            raise ValueError(f"the model merges {reader.merge}x{reader.merge} tokens, and the context {context.merge}")
        if context is not None or tokens is not None:
            check_droppable(self._model, self.cache)

    @property
    def context(self) -> Context:
        """The context that was given. Raises ValueError if there is none."""
        if self._context is None:
            raise ValueError("the conversation has no context; give reader.conversation() one")
        return self._context

    @property
    def tokens(self) -> int:
        """Language-model tokens that the model holds."""
        return 0 if self.prompt is None else self.prompt.ids.shape[1]

    @property
    def groups(self) -> NDArray[np.int64]:
        """Numbers of the groups that the model holds, as in GroupList: int64[G]."""
        return np.asarray(self._marks.number[self._marks.number != _TEXT])

    def ask(self, selections: Sequence[Selection], text: str, **how: Any) -> str:
        """The answer to ``text``, with ``selections`` as new pictures; there may be none."""
        return "".join(self.stream(selections, text, **how))

    def stream(self, selections: Sequence[Selection], text: str, **how: Any) -> Iterator[str]:
        """As ``ask``, piece by piece. Stopping early ends the turn there.

        Raises ValueError where the turn does not fit, before anything is read. What fails later is raised as it comes;
        the conversation is then as before that turn, but with layers of linear attention over: RuntimeError.
        """
        if self._over:
            raise RuntimeError("an earlier turn failed and cannot be undone: start a new conversation")
        # A picture's token in an answer would count, from the next turn on, as one that has features.
        defaults: dict[str, Any] = {"max_new_tokens": ANSWER, "suppress_tokens": [self._model.config.image_token_id]}
        how = defaults | how
        parts = self._parts(selections)
        self._drop_dead()
        turn, features = self._reader.turn([part.selection for part in parts], text, self.prompt)
        self._make_room(turn, how["max_new_tokens"])
        before, whole = self.tokens, joined(self.prompt, turn)
        frames = [(part, Groups.of(part.selection, self._reader.merge)) for part in parts]
        marks = self._marks + self._marked(turn, frames)
        inputs = self._reader.inputs_of(whole, features) | {self._reader.cache_name: self.cache}
        self._latest = frames, turn.types[0].nonzero()[:, 0].numpy() + before, whole.ids.shape[1]
        yield from self._generate(whole, marks, inputs, how)

    def attended(self, recorder: AttentionRecorder) -> list[Attended]:
        """What the model attended to of each Selection that entered with the latest turn, made with ``recorder`` open.

        Ready for ``stream.add_attention(*each)``. Groups that did not enter, since later ones covered them, have 0.
        Raises ValueError for a recorder that was not open at the latest turn, or saw another prompt since.
        """
        if self._latest is None:
            return []
        frames, at, length = self._latest
        attention = recorder.attention
        if len(attention) != length:
            raise ValueError(f"the latest prompt has {length} tokens, and the recorder saw one of {len(attention)}")
        of_groups = attention[at]
        of_groups = of_groups / (float(of_groups.max(initial=0.0)) or 1.0)
        ends = np.cumsum([len(groups) for _, groups in frames])
        found, each = [], self._reader.merge**2
        for (part, groups), values in zip(frames, np.split(of_groups, ends)[:-1], strict=True):
            weights = np.zeros((part.whole, each), np.float32)
            weights[part.group] = groups.per_token(values).reshape(-1, each)
            found.append(Attended(part.selection.index, weights.ravel()))
        return found

    def _parts(self, selections: Sequence[Selection]) -> list[Part]:
        if self._context is not None:
            for selection in selections:
                self._context.add(selection)
            return self._context.unsent()
        return [part_of(selection, self._reader.merge, 0) for selection in selections]

    def _drop_dead(self) -> None:
        if self._context is not None:
            live = torch.from_numpy(self._context.live.number)
            self._keep((self._marks.number == _TEXT) | torch.isin(self._marks.number, live))

    def _make_room(self, turn: Prompt, answer: int) -> None:
        """Drop old text where the turn would not fit otherwise; where positions go too far, move what is left."""
        context = self._reader.context_length
        new = turn.ids.shape[1]
        if self._tokens is not None:
            self._drop_text(new, answer, self._tokens)
        if context is not None and self.tokens + new >= context:
            raise ValueError(
                f"the prompt has {self.tokens + new} tokens, and the model's context {context}; "
                "ask about fewer frames, or give each a smaller budget"
            )
        bounded = self._tokens is not None or self._context is not None
        if bounded and context and self.prompt is not None and self.prompt.next + turn.next + answer > context:
            self._close_gaps()

    def _drop_text(self, new: int, answer: int, limit: int) -> None:
        """The oldest turns' first, turn by turn, until ``new`` tokens and the answer to them fit."""
        text = self._marks.number == _TEXT
        text[:_FIRST] = False
        text[-1:] = False  # it is not in the cache yet
        excess = self.tokens + new + answer - limit
        if excess > int(text.sum()):
            raise ValueError(
                f"the turn has {new} tokens, its answer may have {answer}, and {self.tokens - int(text.sum())} before "
                f"it still count, more than {limit} together: lower the context's limit, or ask for a shorter answer"
            )
        gone = torch.zeros_like(text)
        for turn in self._marks.turn[text].unique().tolist():
            if int(gone.sum()) < excess:
                gone |= text & (self._marks.turn == turn)
        self._keep(~gone)

    def _keep(self, kept: torch.Tensor) -> None:
        """Of the prompt and the cache, which lacks the prompt's last token; ``kept`` is bool[L]."""
        if self.prompt is None or bool(kept.all()):
            return
        keep(self.cache, kept[:-1].nonzero()[:, 0])
        ids, positions, types = (each[..., kept] for each in self.prompt)
        if positions.ndim == 3:
            positions[0] = torch.arange(
                positions.shape[-1]
            )  # the token's number in the prompt, unrelated to its position in the picture
        self.prompt, self._marks = Prompt(ids, positions, types), self._marks.of(kept)

    def _close_gaps(self) -> None:
        assert self.prompt is not None
        moved, shift = closed(self.prompt, self._marks.picture)
        move(self._model, self.cache, shift[:-1])
        self.prompt = moved

    def _marked(self, turn: Prompt, frames: Sequence[tuple[Part, Groups]]) -> _Marks:
        each = self._reader.merge**2
        marks = _Marks(*(torch.full(turn.ids.shape[1:], _TEXT) for _ in _Marks._fields))
        marks.turn[:] = self._turns
        shown = turn.types[0] == 1
        counts = torch.tensor([len(groups) for _, groups in frames], dtype=torch.int64)
        numbers = [part.number[groups.order[::each] // each] for part, groups in frames]
        marks.number[shown] = torch.from_numpy(np.concatenate([np.empty(0, np.int64), *numbers]))
        marks.picture[shown] = torch.repeat_interleave(self._pictures + torch.arange(len(frames)), counts)
        return marks

    def _generate(self, whole: Prompt, marks: _Marks, inputs: dict[str, Any], how: dict[str, Any]) -> Iterator[str]:
        stop = _Stop()
        pieces = TextIteratorStreamer(self._reader.tokenizer, skip_prompt=True, skip_special_tokens=True)
        found: list[Any] = []

        def work() -> None:
            try:
                with torch.no_grad():
                    criteria = StoppingCriteriaList([stop])
                    found.append(self._model.generate(**inputs, **how, streamer=pieces, stopping_criteria=criteria))
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                found.append(error)
                pieces.end()

        thread = Thread(target=work, name="foveate-answer", daemon=True)
        thread.start()
        try:
            yield from (piece for piece in pieces if piece)
        finally:
            stop.asked = True
            thread.join()
            if isinstance(found[0], BaseException):
                self._take_back(found[0])
            else:
                self._end_turn(whole, marks, found[0][:, whole.ids.shape[1] :].cpu())
        if isinstance(found[0], BaseException):
            raise found[0]

    def _take_back(self, error: BaseException) -> None:
        """Remove what a failed turn has left in the cache."""
        held = max(0, self.tokens - 1)
        if held == 0:
            self.cache = DynamicCache(config=self._model.config)
        elif self.cache.get_seq_length() > held and not droppable(self._model, self.cache):
            self._over = True
            error.add_note("this turn failed and cannot be undone: start a new conversation")
        elif self.cache.get_seq_length() > held:
            keep(self.cache, torch.arange(held))

    def _end_turn(self, whole: Prompt, marks: _Marks, said: torch.Tensor) -> None:
        self.prompt = joined(whole, _text(whole, said))
        nothing = torch.full(said.shape[1:], _TEXT)
        self._marks = marks + _Marks(nothing, nothing, torch.full_like(nothing, self._turns))
        self._turns += 1
        self._pictures += len(self._latest[0]) if self._latest else 0
        if self._context is not None:
            self._context.sent()


class _Stop(StoppingCriteria):  # type: ignore[misc] # its package is not typed
    """Ends the generation on request."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.full((input_ids.shape[0],), self.asked, dtype=torch.bool, device=input_ids.device)


def _text(like: Prompt, ids: torch.Tensor) -> Prompt:
    """A piece of text alone."""
    positions = torch.arange(ids.shape[1])
    positions = positions.expand(4, 1, -1) if like.positions.ndim == 3 else positions[None]
    return Prompt(ids, positions, torch.zeros_like(ids))
