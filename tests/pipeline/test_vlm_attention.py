"""Attention noted beside whichever function the model uses, against the weights that its eager function returns."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foveate.pipeline import open_stream

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # noqa: E402

from foveate.pipeline.vlm.attention_recorder import AttentionRecorder  # noqa: E402
from foveate.pipeline.vlm.context import Context  # noqa: E402
from foveate.pipeline.vlm.reader import Reader  # noqa: E402
from tests.models.processor import processor  # noqa: E402
from tests.models.vision_language import model_of  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, EXACT_ATTENTION, given, part_of, whole  # noqa: E402

TALK = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}


@pytest.fixture(scope="module", params=EXACT_ATTENTION)
def model(request: pytest.FixtureRequest) -> Any:
    return model_of(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = dict(ALL_ATTENTION_FUNCTIONS)
    yield
    assert dict(ALL_ATTENTION_FUNCTIONS) == before


@torch.no_grad()
def eager(model: Any, inputs: dict[str, Any]) -> tuple[Any, ...]:
    """The attention of each layer, float[heads, L, L], as the model itself returns it."""
    model.set_attn_implementation("eager")
    try:
        return tuple(each[0] for each in model(**inputs, output_attentions=True).attentions)
    finally:
        model.set_attn_implementation("sdpa")


@pytest.mark.parametrize("layers", [None, [0], [-1], [1, 0]])
@torch.no_grad()
def test_it_notes_what_eager_attention_returns(model: Any, layers: list[int] | None) -> None:
    inputs = given(model, [part_of(whole(1), CHOSEN), whole(2)])
    plain = model(**inputs).logits
    with AttentionRecorder(model, layers) as recorder:
        logits = model(**inputs).logits
    expected = torch.stack([eager(model, inputs)[at][:, -1] for at in layers or (0, 1)]).mean((0, 1))
    assert np.abs(recorder.attention - expected.numpy()).max() <= 1e-6
    assert abs(float(recorder.attention.sum()) - 1) <= 1e-5
    assert (logits == plain).all()


@torch.no_grad()
def test_eager_models_are_tapped_as_well(model: Any) -> None:
    inputs = given(model, [whole(1)])
    expected = torch.stack(eager(model, inputs))[:, :, -1].mean((0, 1))
    model.set_attn_implementation("eager")
    with AttentionRecorder(model) as recorder:
        model(**inputs)
    model.set_attn_implementation("sdpa")
    assert np.abs(recorder.attention - expected.numpy()).max() <= 1e-6


def test_each_token_of_an_answer_counts_and_each_selection_gets_its_own(model: Any) -> None:
    """In the second turn of a conversation, of Selections whose tokens are in another order than the prompt's."""
    reader = Reader(model, processor())
    talk = reader.conversation()
    talk.ask([whole(3)], "before", **TALK)
    turned = CHOSEN[::-1]
    selections = [part_of(whole(1), turned), part_of(whole(2), []), whole(2)]
    selections = [replace(each, index=at) for at, each in enumerate(selections, 5)]
    before = talk.tokens
    with AttentionRecorder(model) as recorder:
        talk.ask(selections, "what?", **TALK)
    prompt = talk.prompt
    length = prompt.ids.shape[1] - TALK["max_new_tokens"]
    shown = [whole(3), *selections]
    features = reader.inputs(shown, "")["mm_encoder_outputs"]
    inputs = {"input_ids": prompt.ids, "position_ids": prompt.positions, "mm_encoder_outputs": features}
    attention = torch.stack(eager(model, inputs)).mean((0, 1))  # [L, L]
    expected = attention[length - 1 : -1, :length].mean(0).numpy()
    assert np.abs(recorder.attention - expected).max() <= 1e-6
    at = before + prompt.types[0, before:].nonzero()[:, 0].numpy()
    most = expected[at].max()
    found = talk.attended(recorder)
    assert [frame for frame, _ in found] == [5, 6, 7]
    assert [weights.shape for _, weights in found] == [(28,), (0,), (96,)]
    in_prompt = dict(zip(sorted(turned), expected[at[:7]] / most, strict=True))  # row by row
    for number, group in enumerate(turned):
        assert np.abs(found[0].weights[4 * number : 4 * number + 4] - in_prompt[group]).max() <= 1e-5
    assert np.abs(found[2].weights.reshape(24, 4) - (expected[at[7:]] / most)[:, None]).max() <= 1e-5
    assert max(float(weights.max(initial=0)) for _, weights in found) == 1.0
    talk.ask([], "and?", **TALK)
    with pytest.raises(ValueError, match="the recorder saw one of"):
        talk.attended(recorder)


def test_taps_are_closed_in_any_order_and_after_errors(model: Any) -> None:
    first, second = AttentionRecorder(model), AttentionRecorder(model)
    inputs = [given(model, selections) for selections in ([whole(1)], [whole(2), whole(3)], [whole(4)])]
    expected = [torch.stack(eager(model, each))[:, :, -1].mean((0, 1)).numpy() for each in inputs]
    with torch.no_grad():
        first.__enter__()
        second.__enter__()
        model(**inputs[0])
        first.__exit__()
        model(**inputs[1])
        second.__exit__()
        model(**inputs[2])
    assert np.abs(first.attention - expected[0]).max() <= 1e-6
    assert np.abs(second.attention - expected[1]).max() <= 1e-6
    with pytest.raises(ZeroDivisionError), AttentionRecorder(model):
        _ = 1 / 0


def test_an_attention_function_of_ones_own_comes_back(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def mine(*given: Any, **how: Any) -> Any:
        return own(*given, **how)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", mine)
    with AttentionRecorder(model):
        assert ALL_ATTENTION_FUNCTIONS["sdpa"] is not mine
    assert ALL_ATTENTION_FUNCTIONS["sdpa"] is mine
    monkeypatch.undo()
    del ALL_ATTENTION_FUNCTIONS["sdpa"]  # undo set it for this table; the class's own shows again


def test_models_of_other_threads_are_left_alone() -> None:
    """Four threads, a model each, at the same time: each recorder notes its own model's runs alone."""
    models = [model_of("qwen3_vl") for _ in range(4)]
    inputs = [given(models[at], [whole(at)] * (at + 1)) for at in range(4)]
    expected = [torch.stack(eager(models[at], inputs[at]))[:, :, -1].mean((0, 1)).numpy() for at in range(4)]
    noted: dict[int, list[Any]] = {at: [] for at in range(4)}

    def work(at: int) -> None:
        for _ in range(5):
            with AttentionRecorder(models[at]) as recorder, torch.no_grad():
                models[at](**inputs[at])
            noted[at].append(recorder.attention)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in range(4):
        assert len(noted[at]) == 5
        assert all(np.abs(each - expected[at]).max() <= 1e-6 for each in noted[at])


@pytest.mark.parametrize("family", ["gemma4", "gemma4_e"])
def test_of_gemma_4_layers_without_windows_and_with_their_own_keys_are_noted(family: str) -> None:
    """In two turns on one cache; of the small model's layers of full attention, 1 and 3, the last uses the first's."""
    model = model_of(family)
    reader = Reader(model, processor())
    talk = reader.conversation()
    selections = [replace(part_of(whole(1, 3), CHOSEN), index=4), replace(whole(2, 3), index=5)]
    with AttentionRecorder(model) as recorder:
        for selection in selections:
            talk.ask([selection], "what?", **TALK)
    prompt = talk.prompt
    length = prompt.ids.shape[1] - TALK["max_new_tokens"]
    inputs = reader.inputs_of(prompt, reader.inputs(selections, "")["mm_encoder_outputs"]["image"])
    expected = eager(model, inputs)[1].mean(0)[length - 1 : -1, :length].mean(0).detach().numpy()
    assert np.abs(recorder.attention - expected).max() <= 1e-6
    assert [(frame, len(weights)) for frame, weights in talk.attended(recorder)] == [(5, 216)]
    with pytest.raises(ValueError, match=r"layers must be some of full attention, \[1\], got \[0\]"):
        AttentionRecorder(model, [0])


def test_what_does_not_fit_is_told(model: Any) -> None:
    with pytest.raises(ValueError, match=r"layers must be some of full attention, \[0, 1\], got \[2\]"):
        AttentionRecorder(model, [2])
    with pytest.raises(ValueError, match=r"got \[\]"):
        AttentionRecorder(model, [])
    with pytest.raises(RuntimeError, match="there is no attention yet"):
        _ = AttentionRecorder(model).attention
    linear = model_of("qwen3_5")
    with pytest.raises(ValueError, match=r"layers must be some of full attention, \[1\], got \[0\]"):
        AttentionRecorder(linear, [0])


def test_a_stream_takes_it(model: Any, samples: Any) -> None:
    reader = Reader(model, processor())
    talk = reader.conversation(Context(merge=reader.merge))
    settings = {"allocation": {"memory": "stream", "merge": reader.merge}, "source": {"frames": 3}}
    with (
        open_stream(str(samples / "pedestrians.mp4"), budget=64, patches=True, **settings) as stream,
        AttentionRecorder(model) as recorder,
    ):
        selections = {}
        for selection in stream:
            selections[selection.index] = selection
            talk.ask([selection], "who?", **TALK)
            for frame, weights in talk.attended(recorder):
                assert weights.shape == (len(selections[frame]),)
                assert weights.dtype == np.float32
                assert 0 <= weights.min() <= weights.max() <= 1
                stream.add_attention(frame, weights)
