"""Chosen tokens through a vLLM that serves small models of random weights, against transformers: ``make test-vllm``."""

import base64
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.vlm.vllm.plugin import architecture
from foveate.pipeline.vlm.vllm.request import PLACES, content_of, image_data, message
from tests.pipeline.vllm_malformed import MALFORMED
from tests.pipeline.vlm_selections import selection_of

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

from foveate.pipeline.vlm.reader import Reader  # noqa: E402
from tests.models import served  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, part_of, whole  # noqa: E402
from tests.servers.vllm_server import ENVIRONMENT, NAME, VllmServer  # noqa: E402

LONGEST = 256
COARSE = selection_of(
    192, 128, [(1, x, y) for y in (16, 48) for x in (16, 48)] + [(0, 64 + x, y) for y in (8, 24) for x in (8, 24)]
)
CASES = {
    "all": [whole(1)],
    "some": [part_of(whole(1), CHOSEN)],
    "coarse": [COARSE],
    "frames": [part_of(whole(1), CHOSEN), whole(2), COARSE],
}
CLOSE = 1e-5  # of log-probabilities: float32 sums in other orders
STEPS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("qwen3_vl")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return served.write(folder, "qwen3_vl")


@pytest.fixture(scope="module")
def server(folder: Path, model: Any) -> Iterator[VllmServer]:
    name = architecture("Qwen3VLForConditionalGeneration")
    with VllmServer(folder, name, LONGEST, folder / "log.txt") as running:
        yield running


def of_transformers(model: Any, family: str, selections: list[Any]) -> Any:
    """Log-probabilities of STEPS greedy tokens: float32[STEPS, 256]."""
    inputs = Reader(model, served.processor(family)).inputs(selections, "what?")
    say = {"max_new_tokens": STEPS, "min_new_tokens": STEPS, "do_sample": False}
    with torch.no_grad():
        found = model.generate(**inputs, **say, output_logits=True, return_dict_in_generate=True)
    return torch.log_softmax(torch.stack(found.logits)[:, 0], -1).numpy()


def answered(server: VllmServer, asked: dict[str, Any]) -> Any:
    """The same of the server."""
    how = {"max_tokens": STEPS, "min_tokens": STEPS, "logprobs": True, "top_logprobs": 256}
    status, page = server.ask(asked, return_tokens_as_token_ids=True, **how)
    assert status == 200, page
    found = np.full((STEPS, 256), -np.inf)
    for step, said in zip(found, page["choices"][0]["logprobs"]["content"], strict=True):
        for each in said["top_logprobs"]:
            step[int(each["token"].removeprefix("token_id:"))] = each["logprob"]
    assert np.isfinite(found).all()
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_server_says_what_transformers_says(server: VllmServer, model: Any, case: str) -> None:
    found = answered(server, message(CASES[case], "what?"))
    assert np.abs(found - of_transformers(model, "qwen3_vl", CASES[case])).max() <= CLOSE


def picture_of(selection: Any) -> Any:
    """The picture that a Selection of all its cells was made from: uint8[H, W, 3]."""
    picture = np.zeros((selection.height, selection.width, 3), np.uint8)
    for x, y, patch in zip(selection.x, selection.y, selection.patches, strict=True):
        picture[y - 8 : y + 8, x - 8 : x + 8] = patch
    return picture


def whole_picture(selection: Any) -> dict[str, Any]:
    """The message with the picture itself, as servers take it without the plugin."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture_of(selection)).save(file, "PNG")
    url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    stamp, *_, question = content_of([selection], "what?")
    return {"role": "user", "content": [stamp, {"type": "image_url", "image_url": {"url": url}}, question]}


def test_all_tokens_say_what_the_picture_itself_says(server: VllmServer) -> None:
    expected = answered(server, whole_picture(whole(1)))
    assert np.abs(answered(server, message([whole(1)], "what?")) - expected).max() <= CLOSE


def test_requests_of_all_kinds_at_once_do_not_mix(server: VllmServer) -> None:
    text = {"role": "user", "content": [{"type": "text", "text": "what?"}]}
    asked = [message(selections, "what?") for selections in CASES.values()] + [whole_picture(whole(3)), text]
    alone = [answered(server, each) for each in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        together = list(pool.map(lambda each: answered(server, each), asked))
    for expected, found in zip(alone, together, strict=True):
        assert np.abs(found - expected).max() <= CLOSE


def test_the_prompt_counts_only_what_was_chosen(server: VllmServer) -> None:
    pages = [server.ask(message([each], "what?"))[1] for each in (whole(1), part_of(whole(1), CHOSEN))]
    counts = [page["usage"]["prompt_tokens"] for page in pages]
    assert counts[0] - counts[1] == 24 - len(CHOSEN)


def coded(array: Any) -> str:
    file = io.BytesIO()
    np.save(file, array)
    return base64.b64encode(file.getvalue()).decode()


def in_parts(*parts: Any) -> dict[str, Any]:
    content = [{"type": "image_embeds", "image_embeds": part} for part in parts]
    return {"role": "user", "content": [*content, {"type": "text", "text": "what?"}]}


def right() -> dict[str, Any]:
    """Arrays of one part of a request."""
    return {name: array for name, (array,) in image_data([part_of(whole(1), CHOSEN)]).items()}


def still_answers(server: VllmServer) -> None:
    assert server.healthy()
    status, page = server.ask(in_parts({name: coded(array) for name, array in right().items()}))
    assert status == 200, page


JOINED = {"patches of int8": 200, "patches of bool": 200, "flat patches": 500}
"""Beside a right one, parts of other types are cast, or fail, where vLLM joins them, before the plugin sees them."""


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a right one"])
def test_what_is_malformed_gets_400_and_the_next_is_answered(server: VllmServer, beside: bool) -> None:
    found = {}
    for name, (change, _) in MALFORMED.items():
        part = {key: coded(array) for key, array in change(right()).items()}
        parts = [{key: coded(array) for key, array in right().items()}, part] if beside else [part]
        found[name], _ = server.ask(in_parts(*parts))
        still_answers(server)
    assert found == dict.fromkeys(MALFORMED, 400) | (JOINED if beside else {})


def test_the_reason_is_told(server: VllmServer) -> None:
    part = right()
    part[PLACES][0, 0] = 4000
    status, page = server.ask(in_parts({name: coded(array) for name, array in part.items()}))
    assert status == 400
    assert "the token at (4000, " in json.dumps(page)


GARBAGE = {
    "no base64": "%%%",
    "no array": base64.b64encode(b"what is this").decode(),
    "an array cut short": coded(np.zeros((8, 3), np.int32))[:100],
    "an array of objects": base64.b64encode(b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False}").decode(),
    "numbers": [1, 2, 3],
    "nothing": None,
    "a part": {},
}


def test_what_vllm_cannot_read_ends_nothing(server: VllmServer) -> None:
    """It never comes to the plugin; vLLM refuses it, with a status of its own."""
    for name, garbage in GARBAGE.items():
        for key in (PLACES, None):
            arrays = {each: coded(array) for each, array in right().items()}
            part = garbage if key is None else {**arrays, key: garbage}
            status, page = server.ask(in_parts(part))
            assert (name, 400 <= status < 600) == (name, True), page
            still_answers(server)


def test_foveate_ask_is_answered(server: VllmServer, samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from foveate.app.main import main

    clip, sparing = str(samples / "pedestrians.mp4"), ["--frames", "2", "--budget", "20", "--max-tokens", "4"]
    assert main(["ask", clip, "who?", "--server", server.address, "--model", NAME, "--tokens", *sparing]) == 0
    said = capsys.readouterr()
    assert 1 <= len(said.out) <= 5
    assert "of 864 language-model tokens" in said.err


FAMILIES = {
    "qwen2_vl": "Qwen2VLForConditionalGeneration",
    "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3_vl": "Qwen3VLForConditionalGeneration",
}
"""Those that vLLM runs in float32: not Qwen3.5, whose linear attention needs bfloat16 there."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_gets_what_transformers_says(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``LLM``, in processes that end with the test."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    from vllm import LLM, SamplingParams

    model = served.write(tmp_path, family)
    llm = LLM(
        str(tmp_path), dtype="float32", enforce_eager=True, max_model_len=LONGEST, enable_mm_embeds=True,
        limit_mm_per_prompt={"image": 8, "video": 0}, max_logprobs=256,
        hf_overrides={"architectures": [architecture(FAMILIES[family])]},
    )  # fmt: skip
    how = SamplingParams(temperature=0, max_tokens=STEPS, min_tokens=STEPS, logprobs=256)
    for selections in CASES.values():
        said = llm.chat([message(selections, "what?")], how, use_tqdm=False)[0].outputs[0]
        found = np.array([[step[token].logprob for token in range(256)] for step in said.logprobs])
        assert np.abs(found - of_transformers(model, family, selections)).max() <= CLOSE
    prompt = "<0.0 seconds><|vision_start|><|image_pad|><|vision_end|>what?<|im_end|>"
    asked = {"prompt": prompt, "multi_modal_data": {"image": image_data(CASES["some"])}}
    said = llm.generate(asked, how, use_tqdm=False)[0].outputs[0]
    found = np.array([[step[token].logprob for token in range(256)] for step in said.logprobs])
    assert np.abs(found - of_transformers(model, family, CASES["some"])).max() <= CLOSE
