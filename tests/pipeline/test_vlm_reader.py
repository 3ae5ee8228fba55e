"""Questions about Selections, to small models of random weights: how they come to an answer counts, not its words."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foveate.pipeline import open_stream

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from foveate.pipeline.vlm.reader import Reader  # noqa: E402
from tests.models.processor import processor  # noqa: E402
from tests.models.vision_language import BEFORE, BEHIND, IMAGE, MAKERS, model_of  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, part_of, whole  # noqa: E402

TALK = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}


@pytest.fixture(scope="module", params=MAKERS)
def reader(request: pytest.FixtureRequest) -> Reader:
    return Reader(model_of(request.param), processor())


def first_logits(model: Any) -> list[Any]:
    """The logits behind each prompt that the model reads; filled while it runs."""
    seen: list[Any] = []

    def note(_: Any, __: Any, output: Any) -> None:
        seen.append(output.logits[0, -1].clone())

    model.register_forward_hook(note)
    return seen


def test_the_second_turn_is_as_if_all_had_been_read_at_once(reader: Reader) -> None:
    model = reader.model
    selections = [part_of(whole(1, reader.merge), CHOSEN), whole(2, reader.merge)]
    conversation = reader.conversation()
    conversation.ask(selections[:1], "what?", **TALK)
    seen = first_logits(model)
    conversation.ask(selections[1:], "and now?", **TALK)
    found = seen[0]
    prompt = conversation.prompt
    length = conversation.tokens - TALK["max_new_tokens"]
    features = reader.inputs(selections, "")["mm_encoder_outputs"]["image"]
    with torch.no_grad():
        expected = model(
            input_ids=prompt.ids[:, :length],
            position_ids=prompt.positions[..., :length],
            mm_encoder_outputs={"image": features},
            attention_mask=torch.ones(1, length, dtype=torch.int64),
            **({"mm_token_type_ids": prompt.types[:, :length]} if reader.merge == 3 else {}),
        ).logits[0, -1]
    assert (found - expected).abs().max() <= 1e-5


def test_positions_go_on_behind_the_first_turn(reader: Reader) -> None:
    """Text behind a picture begins one after the picture's last position, in every turn."""
    conversation = reader.conversation()
    conversation.ask([whole(1, reader.merge)], "a", **TALK)
    first = conversation.prompt
    conversation.ask([], "b", **TALK)
    positions = conversation.prompt.positions
    assert (positions[..., : first.ids.shape[1]] == first.positions).all()
    steps = positions[..., first.ids.shape[1] :].diff(dim=-1)
    assert (steps == 1).all()
    assert int(positions.reshape(-1, positions.shape[-1])[-1, first.ids.shape[1]]) == first.next


def test_the_prompt_holds_the_template_the_times_and_the_groups(reader: Reader) -> None:
    selections = [part_of(whole(1, reader.merge), CHOSEN), part_of(whole(2, reader.merge), [])]
    ids = reader.inputs(selections, "why?")["input_ids"][0]
    kept = ids[ids != IMAGE]
    assert len(ids) - len(kept) == len(CHOSEN)
    said = reader.tokenizer.decode(kept)
    marks = reader.tokenizer.decode([BEFORE, BEHIND]) if reader.merge == 3 else ""
    assert said == f"<start>user:<0.0 seconds>{marks}<0.0 seconds>{marks}why?<end><start>assistant:"


@pytest.mark.parametrize("family", ["gemma4", "gemma4_e"])
@torch.no_grad()
def test_gemma_4_is_given_what_its_own_processor_makes(family: str) -> None:
    """Of a picture all groups of which are chosen: the same prompt, and the same logits but for rounding.

    The processor fills every picture up to 2,520 patches. So the tower's averages, float32 in any model, are sums of
    more terms, which differ in the last bit; all else is float64.
    """
    pytest.importorskip("torchvision", reason="needs torchvision")
    from tests.models.folder import gemma4_processor

    model, made, selection = model_of(family).double(), gemma4_processor(), whole(1, 3)
    picture = np.zeros((selection.height, selection.width, 3), np.uint8)
    for patch, x, y in zip(selection.patches, selection.x.tolist(), selection.y.tolist(), strict=True):
        picture[y - 8 : y + 8, x - 8 : x + 8] = patch
    asked = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "why?"}]}]
    text = made.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    usual = made(text=[text], images=[[picture]], return_tensors="pt", add_special_tokens=False)
    reader = Reader(model, made, stamp="")
    ours = reader.inputs([selection], "why?")
    assert (ours["input_ids"] == usual["input_ids"]).all()
    assert (ours["position_ids"] == torch.arange(ours["input_ids"].shape[1])).all()
    assert (model(**ours).logits - model(**usual).logits).abs().max() <= 5e-6
    assert reader.length("why?", 1) == ours["input_ids"].shape[1] - 24


def test_an_answer_comes_in_pieces_and_may_be_left(reader: Reader) -> None:
    whole_answer = reader.ask([whole(1, reader.merge)], "what?", **TALK)
    pieces = reader.stream([whole(1, reader.merge)], "what?", **TALK)
    first = next(pieces)
    assert whole_answer.startswith(first)
    pieces.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "foveate-answer"]


def test_what_goes_wrong_while_it_answers_is_told(reader: Reader) -> None:
    with pytest.raises(ValueError, match="temperature"):
        reader.ask([whole(1, reader.merge)], "what?", do_sample=True, temperature=-1.0)


def test_more_than_the_context_is_refused(reader: Reader) -> None:
    with pytest.raises(ValueError, match="the model's context 4096; ask about fewer frames"):
        reader.ask([whole(1, reader.merge)] * 200, "what?")


def test_patches_are_needed(reader: Reader) -> None:
    with pytest.raises(ValueError, match="patches=True"):
        reader.ask([replace(whole(1, reader.merge), patches=None)], "what?")


def test_a_stream_is_asked_about(reader: Reader, samples: Any) -> None:
    clip = str(samples / "pedestrians.mp4")
    with open_stream(clip, budget=64, patches=True, allocation={"merge": reader.merge}, source={"frames": 3}) as stream:
        selections = list(stream)
    assert len(reader.ask(selections, "who?", **TALK)) > 0
