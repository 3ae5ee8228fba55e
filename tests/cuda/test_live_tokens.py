"""What looks like a camera, decoded and chosen from on the card."""

from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from foveate.bench.speed.lossy import LossySender
from foveate.bench.speed.paced import PacedFeed, open_paced
from foveate.pipeline import open_stream
from foveate.pipeline.errors import EngineError
from foveate.pipeline.settings import Settings
from tests.bench.speed.test_paced import check_tokens, clip  # noqa: F401 - a fixture
from tests.pipeline.test_live_loss import check_loss, lossy  # noqa: F401 - a fixture
from tests.pipeline.test_live_rtsp import check_tokens_at_once, footage

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_tokens_are_those_of_the_file(clip: Path, memory: str) -> None:  # noqa: F811
    check_tokens(clip, "cuda", memory)


def test_a_frame_does_not_wait_for_the_next_one(clip: Path) -> None:  # noqa: F811
    """At ten frames a second one that did would be 100 ms old."""
    with open_paced(partial(PacedFeed, clip, 10.0, 0.0), Settings(engine="cuda")) as stream:
        assert stream.info.decoded_on_cpu is None
        latencies = sorted(selection.extras["latency"] for selection in islice(stream, 20))
    assert latencies[10] < 0.05


@pytest.mark.parametrize("name", ["h264", "h264 of four slices", "hevc"])
def test_tokens_of_rtsp_come_before_the_next_picture_is_sent(name: str) -> None:
    check_tokens_at_once(footage(name), "cuda", "tcp")


def test_what_is_lost_is_over_at_the_next_keyframe(lossy: tuple[LossySender, str, set[int]]) -> None:  # noqa: F811
    check_loss(lossy, "cuda")


def test_a_gpu_that_is_not_there(clip: Path) -> None:  # noqa: F811
    with pytest.raises(EngineError, match=r"device must be at most \d+, the number of the last GPU, got 200"):
        open_stream(str(clip), engine="cuda", device=200)
