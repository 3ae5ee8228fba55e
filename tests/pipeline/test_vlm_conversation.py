"""Conversations that forget: against the model's own answer where what was dropped is masked, and without an end."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foveate.pipeline import open_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.context import Context

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from transformers import DynamicCache  # noqa: E402

from foveate.pipeline.vlm.eviction import keep, move  # noqa: E402
from foveate.pipeline.vlm.prompts import Prompt, closed, joined  # noqa: E402
from foveate.pipeline.vlm.reader import Reader  # noqa: E402
from tests.models.processor import processor  # noqa: E402
from tests.models.vision_language import model_of  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, EXACT_ATTENTION, part_of, whole  # noqa: E402

TALK = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}


@pytest.fixture(scope="module", params=EXACT_ATTENTION)
def reader(request: pytest.FixtureRequest) -> Reader:
    return Reader(model_of(request.param), processor())


@pytest.fixture
def logits(reader: Reader) -> Any:
    """The logits behind each prompt that the model reads; filled while it runs."""
    seen: list[Any] = []
    handle = reader.model.register_forward_hook(lambda _, __, output: seen.append(output.logits[0, -1].clone()))
    yield seen
    handle.remove()


def streamed(index: int, groups: list[int]) -> Selection:
    """A frame of a stream: these groups, of 24."""
    made = part_of(whole(index), groups)
    return replace(made, index=index, time=float(index), keyframe=None if index else "first")


FIRST = [streamed(0, list(range(24))), streamed(1, CHOSEN), streamed(2, [0, 1, 2])]
SECOND = [streamed(3, [0, 9, 23]), streamed(4, [5])]
DEAD = {
    0: [*CHOSEN, 0, 1, 2, 5],
    1: [23, 2, 9, 0],
    2: [0],
}  # by hand: before the second turn, of the first three frames


def test_what_is_dead_is_as_if_masked(reader: Reader, logits: list[Any]) -> None:
    """The second turn does not see the seven groups of the first frame that those of the second cover."""
    plain = reader.conversation()
    plain.ask(FIRST[:1], "what?", **TALK)
    first = plain.prompt
    everything = joined(first, reader.turn(FIRST[1:2], "and?", first)[0])
    hidden = (everything.types[0] == 1).nonzero()[:, 0][sorted(CHOSEN)]
    expected = masked(reader, everything, FIRST[:2], {first.ids.shape[1] - 1: hidden})
    unmasked = masked(reader, everything, FIRST[:2], {})
    talk = reader.conversation(Context(merge=reader.merge))
    talk.ask(FIRST[:1], "what?", **TALK)
    logits.clear()
    talk.ask(FIRST[1:2], "and?", **TALK)
    assert (logits[0] - expected).abs().max() <= 1e-5
    assert (unmasked - expected).abs().max() > 1e-4
    assert talk.tokens == everything.ids.shape[1] - len(CHOSEN) + TALK["max_new_tokens"]


def test_of_groups_in_any_order_the_right_ones_are_masked(reader: Reader, logits: list[Any]) -> None:
    """The first frame's groups are not in the prompt's order; three of them are covered by the second's."""
    frames = [streamed(0, CHOSEN), streamed(1, [0, 9, 23])]
    plain = reader.conversation()
    plain.ask(frames[:1], "what?", **TALK)
    first = plain.prompt
    everything = joined(first, reader.turn(frames[1:], "and?", first)[0])
    in_prompt = sorted(CHOSEN)
    hidden = (everything.types[0] == 1).nonzero()[:, 0][[in_prompt.index(group) for group in (0, 9, 23)]]
    expected = masked(reader, everything, frames, {first.ids.shape[1] - 1: hidden})
    talk = reader.conversation(Context(merge=reader.merge))
    talk.ask(frames[:1], "what?", **TALK)
    logits.clear()
    talk.ask(frames[1:], "and?", **TALK)
    assert (logits[0] - expected).abs().max() <= 1e-5


@torch.no_grad()
def masked(reader: Reader, prompt: Prompt, selections: list[Selection], hidden: dict[int, Any]) -> Any:
    """The model's logits behind the prompt; ``hidden``: from which token on which others are not seen."""
    length = prompt.ids.shape[1]
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    for start, which in hidden.items():
        seen[start:, which] = False
    features = reader.inputs(selections, "")["mm_encoder_outputs"]["image"]
    return reader.model(
        input_ids=prompt.ids, position_ids=prompt.positions, attention_mask=seen[None, None],
        mm_encoder_outputs={"image": features},
    ).logits[0, -1]  # fmt: skip


def test_only_what_still_shows_is_read(reader: Reader) -> None:
    """Three frames in one turn, then two; which groups are dead is written down by hand."""
    context = Context(merge=reader.merge)
    talk = reader.conversation(context)
    talk.ask(FIRST, "what?", **TALK)
    alive = [n for n in range(24) if n not in (*CHOSEN, 0, 1, 2)]
    alive += [24 + at for at, group in enumerate(CHOSEN) if group not in (0, 1, 2)]
    assert sorted(talk.groups.tolist()) == [*alive, 31, 32, 33]
    talk.ask(SECOND, "and?", **TALK)
    held: dict[int, list[int]] = {}
    frames = [*FIRST, *SECOND]
    firsts = np.cumsum([0, *(len(each) // 4 for each in frames)])
    for number in talk.groups.tolist():
        frame = int(np.searchsorted(firsts, number, "right")) - 1
        held.setdefault(frame, []).append(number - int(firsts[frame]))
    orders = [list(range(24)), CHOSEN, [0, 1, 2], [0, 9, 23], [5]]
    for frame, order in enumerate(orders):
        expected = [group for group in order if group not in DEAD.get(frame, [])]
        assert sorted(order[at] for at in held.get(frame, [])) == sorted(expected)
    assert talk.tokens == talk.cache.get_seq_length() + 1
    rows = talk.prompt.positions
    assert rows.ndim == 2 or rows[0, 0].tolist() == list(range(talk.tokens))


@torch.no_grad()
def test_moved_by_the_same_all_reads_the_same(reader: Reader) -> None:
    model = reader.model
    inputs = reader.inputs([whole(1)], "what is it?")
    half = inputs["input_ids"].shape[1] - 4
    found = []
    for shift in (0, -7, 1000):
        cache = DynamicCache(config=model.config)
        ids, positions = inputs["input_ids"], inputs["position_ids"].clone()
        model(**inputs | {"input_ids": ids[:, :half], "position_ids": positions[..., :half],
                          "attention_mask": None, reader.cache_name: cache})  # fmt: skip
        move(model, cache, torch.full((half,), shift))
        (positions[1:] if positions.ndim == 3 else positions)[:] += shift
        rest = {"input_ids": ids[:, half:], "position_ids": positions[..., half:], reader.cache_name: cache}
        found.append(model(**rest).logits)
    assert (found[1] - found[0]).abs().max() <= 1e-5
    assert (found[2] - found[0]).abs().max() <= 5e-5  # float32 angles of positions around 1000


@torch.no_grad()
def test_keys_are_those_of_the_new_positions(reader: Reader) -> None:
    """In the first layer, where nothing else enters into a key: those of the prompt read at the new positions."""
    model = reader.model
    prompt, features = reader.turn([part_of(whole(1), CHOSEN), part_of(whole(2), [3])], "what is it?")
    kept = torch.arange(prompt.ids.shape[1]) % 3 != 1
    pictures = torch.where(prompt.types[0] == 1, (torch.arange(len(kept)) > 40).long(), -1)
    cache = DynamicCache(config=model.config)
    model(**reader.inputs_of(prompt, features) | {reader.cache_name: cache})
    keep(cache, kept.nonzero()[:, 0])
    moved, shift = closed(Prompt(*(each[..., kept] for each in prompt)), pictures[kept])
    assert int(shift.min()) < 0
    move(model, cache, shift)
    again = DynamicCache(config=model.config)
    positions = prompt.positions.clone()
    (positions[1:] if positions.ndim == 3 else positions)[..., kept] = (
        moved.positions[1:] if positions.ndim == 3 else moved.positions
    )
    model(**reader.inputs_of(prompt._replace(positions=positions), features) | {reader.cache_name: again})
    assert (cache.layers[0].keys - again.layers[0].keys[:, :, kept]).abs().max() <= 1e-5
    assert cache.layers[0].keys.shape[2] == int(kept.sum())


def test_gaps_are_closed_piece_by_piece() -> None:
    """Text at 3, a picture of which three groups are left, text at 20, 21; along one axis and along three."""
    pictures = torch.tensor([-1, 5, 5, 5, -1, -1])
    axes = torch.tensor([[3, 7, 7, 7, 20, 21], [3, 8, 9, 9, 20, 21], [3, 12, 7, 11, 20, 21]])
    number = torch.arange(6)[None]
    three = torch.cat([number, axes])[:, None]
    nothing = torch.zeros(1, 6, dtype=torch.int64)
    moved, shift = closed(Prompt(nothing, three, nothing), pictures)
    assert shift.tolist() == [-3, -6, -6, -6, -13, -13]
    assert moved.positions[1:, 0].tolist() == [[0, 1, 1, 1, 7, 8], [0, 2, 3, 3, 7, 8], [0, 6, 1, 5, 7, 8]]
    assert (moved.positions[0] == number).all()
    one = torch.tensor([[3, 7, 8, 11, 20, 21]])
    moved, shift = closed(Prompt(nothing, one, nothing), pictures)
    assert moved.positions.tolist() == [[0, 1, 2, 5, 6, 7]]
    _, shift = closed(moved, pictures)
    assert shift.tolist() == [0] * 6


def test_a_stream_without_an_end(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty turns: tokens stay within what was set, positions within the model's context, the first tokens stay."""
    config = reader.model.config.get_text_config()
    monkeypatch.setattr(config, "max_position_embeddings", 400)
    context = Context(limit=30, merge=reader.merge)
    talk = reader.conversation(context, tokens=160)
    rng = np.random.default_rng(0)
    seen: list[Any] = []
    handle = reader.model.register_forward_pre_hook(
        lambda _, __, given: seen.append(int(given["position_ids"].max())), with_kwargs=True
    )
    start = None
    most = 0
    for index in range(60):
        frame = streamed(index, sorted(rng.permutation(24)[:5].tolist()))
        talk.ask([frame], "now?", **TALK)
        start = talk.prompt.ids[0, :4].tolist() if start is None else start
        most = max(most, talk.tokens)
        assert talk.tokens <= 160
        assert talk.cache.get_seq_length() == talk.tokens - 1
        assert sorted(talk.groups.tolist()) == context.live.number.tolist()
        assert talk.prompt.ids[0, :4].tolist() == start
    handle.remove()
    assert most > 120
    assert 300 < max(seen) < 400


def test_a_turn_that_does_not_fit_is_refused_and_nothing_is_lost(reader: Reader) -> None:
    context = Context(merge=reader.merge)
    talk = reader.conversation(context, tokens=80)
    with pytest.raises(ValueError, match=r"the turn has \d+ tokens, its answer may have 60, .* more than 80 together"):
        talk.ask(FIRST[:1], "what?", max_new_tokens=60)
    assert talk.tokens == 0
    talk.ask([], "now?", **TALK | {"max_new_tokens": 12})
    assert sorted(talk.groups.tolist()) == list(range(24))


def test_an_answer_that_was_left_or_failed_leaves_the_conversation_right(reader: Reader, logits: list[Any]) -> None:
    talk = reader.conversation()
    pieces = talk.stream([whole(1)], "what?", **TALK)
    next(pieces)
    pieces.close()
    assert talk.cache.get_seq_length() == talk.tokens - 1
    held = talk.tokens
    failing = FailingAt(3)
    with pytest.raises(RuntimeError, match="the third run"):
        talk.ask([], "and?", **TALK, logits_processor=[failing])
    assert talk.tokens == held
    assert talk.cache.get_seq_length() == held - 1
    assert len(talk.ask([], "and?", **TALK)) > 0


def test_a_turn_that_failed_is_asked_again(reader: Reader, logits: list[Any]) -> None:
    """Its pictures are read again, and the answer begins as if nothing had happened."""
    found = []
    for fails in (False, True):
        talk = reader.conversation(Context(merge=reader.merge))
        talk.ask(FIRST[:1], "what?", **TALK)
        if fails:
            with pytest.raises(RuntimeError, match="the third run"):
                talk.ask(FIRST[1:2], "and?", **TALK, logits_processor=[FailingAt(3)])
        logits.clear()
        talk.ask([] if fails else FIRST[1:2], "and?", **TALK)
        found.append((logits[0], talk.tokens, talk.groups.tolist()))
    assert (found[0][0] - found[1][0]).abs().max() <= 1e-5
    assert found[0][1:] == found[1][1:]


@pytest.mark.parametrize(("family", "merge"), [("qwen3_5", 2), ("gemma4", 3)])
def test_linear_attention_and_windows_cannot_take_a_turn_back(family: str, merge: int) -> None:
    talk = Reader(model_of(family), processor()).conversation()
    talk.ask([whole(1, merge)], "what?", **TALK)
    with pytest.raises(RuntimeError, match="the third run") as told:
        talk.ask([], "and?", **TALK, logits_processor=[FailingAt(3)])
    assert "start a new conversation" in told.value.__notes__[0]
    with pytest.raises(RuntimeError, match="an earlier turn failed and cannot be undone"):
        talk.ask([], "and?", **TALK)


class FailingAt:
    """Part of a generation that fails at the n-th token."""

    def __init__(self, run: int) -> None:
        self.left = run

    def __call__(self, ids: Any, scores: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("the third run")
        return scores


def test_what_does_not_fit_is_told(reader: Reader) -> None:
    with pytest.raises(ValueError, match="the model merges 2x2 tokens, and the context 1"):
        reader.conversation(Context())
    with pytest.raises(ValueError, match="tokens must be at least 1, got 0"):
        reader.conversation(tokens=0)
    linear = Reader(model_of("qwen3_5"), processor())
    with pytest.raises(ValueError, match=r"layers of LinearAttentionLayer cannot forget single tokens"):
        linear.conversation(Context(merge=2))
    windows = Reader(model_of("gemma4_e"), processor())
    with pytest.raises(ValueError, match=r"layers of DynamicSlidingWindowLayer cannot forget single tokens"):
        windows.conversation(Context(merge=3))


def test_a_live_clip_within_a_set_number_of_tokens(reader: Reader, samples: Any) -> None:
    """Every frame is chosen from, every tenth asked about; the picture stays covered."""
    context = Context(limit=600, merge=reader.merge)
    talk = reader.conversation(context, tokens=800)
    settings = {"allocation": {"memory": "stream", "merge": reader.merge}, "source": {"frames": 40}}
    given = 0
    with open_stream(str(samples / "pedestrians.mp4"), budget=200, patches=True, **settings) as stream:
        for selection in stream:
            context.add(selection)
            given += len(selection) // 4
            if selection.index % 10 == 9:
                assert len(talk.ask([], "who?", **TALK)) > 0
                assert talk.tokens <= 800
    assert len(context) < given
