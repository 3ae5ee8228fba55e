"""Reader: Selections and a question in, a model's answer out."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from transformers import DynamicCache

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.context import Context
from foveate.pipeline.vlm.conversation import Conversation
from foveate.pipeline.vlm.eviction import droppable
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.prompts import Prompt, marks, prompt_of
from foveate.pipeline.vlm.towers import Tower

_LATE: Final = 99_999.9  # seconds; earlier times have no more digits
_MARK: Final = "@@answer@@"  # placeholder for an answer, to find what a chat template puts after one


class Reader:
    """Hands Selections to a vision-language model of transformers; only the chosen patches enter it.

    ``model`` is one of the families in ``families.FAMILIES``, ``processor`` its processor, of which the tokenizer, the
    chat template, and the image processor's mean and deviation are used. ``exact`` positions in the vision tower are
    the tokens' centres, else those of the cells that hold them, whole numbers as in training. ``stamp`` is the text
    before each picture, a format of its time in seconds; "" for none. Raises ValueError for a model that does not fit.
    """

    def __init__(self, model: Any, processor: Any, *, exact: bool = True, stamp: str = "<{:.1f} seconds>") -> None:
        self.model = model
        self._processor = processor
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self._tower = Tower(model)
        self._exact = exact
        self._stamp = stamp
        self.cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    @property
    def merge(self) -> int:
        """The ``allocation.merge`` that the stream needs."""
        return self._tower.merge

    @property
    def context_length(self) -> int | None:
        """Tokens that the model can attend to, by its configuration; None if that does not say."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None)

    @property
    def can_evict(self) -> bool:
        """Whether conversations can drop what is obsolete from the key-value cache."""
        return droppable(self.model, DynamicCache(config=self.model.config))

    def length(self, text: str, pictures: int = 0) -> int:
        """Language-model tokens of a first turn with ``text`` and so many ``pictures``, without their groups."""
        ids = self.tokenizer(self._rendered([self._question([_LATE] * pictures, text)]), add_special_tokens=False)
        return len(ids["input_ids"]) + pictures * (sum(map(len, marks(self.model))) - 1)

    def inputs(self, selections: Sequence[Selection], text: str) -> dict[str, Any]:
        """What ``model(...)`` and ``model.generate(...)`` take, for one turn of a user.

        Raises ValueError for Selections without patches or of another ``merge``, and for a prompt that exceeds the
        model's context.
        """
        prompt, features = self.turn(selections, text)
        return self.inputs_of(prompt, features)

    def ask(self, selections: Sequence[Selection], text: str, **how: Any) -> str:
        """The answer to ``text`` about ``selections``. ``how`` goes to ``generate``, such as ``max_new_tokens``."""
        return "".join(self.stream(selections, text, **how))

    def stream(self, selections: Sequence[Selection], text: str, **how: Any) -> Iterator[str]:
        """The same, piece by piece as it comes."""
        return self.conversation().stream(selections, text, **how)

    def conversation(self, context: Context | None = None, tokens: int | None = None) -> Conversation:
        """A new conversation of several turns.

        With a ``context`` the model holds only what still shows of a stream with stream memory, and with ``tokens`` at
        most so many tokens of pictures and text; see Conversation. Raises ValueError for a context of another
        ``merge``, ``tokens`` below 1, and with either of them for layers whose memory cannot be dropped in parts.
        """
        return Conversation(self, context, tokens)

    def turn(self, selections: Sequence[Selection], text: str, before: Prompt | None = None) -> tuple[Prompt, Any]:
        """One turn's prompt behind ``before``, and the features of its pictures."""
        frames = [Groups.of(selection, self._tower.merge) for selection in selections]
        question = self._question([selection.time for selection in selections], text)
        rendered = self._rendered([question]) if before is None else self._continued(question, int(before.ids[0, -1]))
        ids = self.tokenizer(rendered, add_special_tokens=False)["input_ids"]
        return prompt_of(self.model, ids, frames), self._features(selections, frames)

    def _continued(self, question: dict[str, Any], last: int) -> str:
        """What the chat template puts between an answer that ends with token ``last`` and the next question."""
        asked = {"role": "user", "content": [{"type": "text", "text": "?"}]}
        answered = {"role": "assistant", "content": [{"type": "text", "text": _MARK}]}
        tail = self._rendered([asked, answered, question]).rpartition(_MARK)[2]
        end = self.tokenizer.decode([last])
        return tail.removeprefix(end) if last in self._ends() else tail  # an answer that is cut has no end of its own

    def _ends(self) -> Sequence[int]:
        ends = self.model.generation_config.eos_token_id
        return [] if ends is None else [ends] if isinstance(ends, int) else ends

    def _question(self, times: Sequence[float], text: str) -> dict[str, Any]:
        content: list[dict[str, str]] = []
        for seconds in times:
            if self._stamp:
                content.append({"type": "text", "text": self._stamp.format(seconds)})
            content.append({"type": "image"})
        return {"role": "user", "content": [*content, {"type": "text", "text": text}]}

    def _rendered(self, messages: list[dict[str, Any]]) -> str:
        return str(self._processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))

    def _features(self, selections: Sequence[Selection], frames: Sequence[Groups]) -> Any:
        """The tower's, of all frames at once; None where none has a token."""
        if not any(map(len, frames)):
            return None
        rows = []
        images = getattr(self._processor, "image_processor", self._processor)
        for selection, groups in zip(selections, frames, strict=True):
            if selection.patches is None:
                raise ValueError("the selections must hold patches; open the stream with patches=True")
            rows.append(self._tower.rows(selection.patches[groups.order], images.image_mean, images.image_std))
        return self._tower.encode(torch.cat(rows), frames, self._exact)

    def inputs_of(self, prompt: Prompt, features: Any) -> dict[str, Any]:
        """What ``model(...)`` takes, of a whole prompt and the features of pictures in it; None: there are none new."""
        device = self.model.device
        inputs: dict[str, Any] = {
            "input_ids": prompt.ids.to(device),
            "attention_mask": torch.ones_like(prompt.ids).to(device),
            "position_ids": prompt.positions.to(device),
        }
        if getattr(self.model.config.get_text_config(), "use_bidirectional_attention", None) == "vision":
            inputs["mm_token_type_ids"] = prompt.types.to(device)  # which tokens of a picture see each other
        if features is not None:
            inputs["mm_encoder_outputs"] = {"image": features}
        return inputs
