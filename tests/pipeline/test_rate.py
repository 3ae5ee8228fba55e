"""A budget that is an average: what streams may spend, and that a reader gets what it waits for."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from foveate.app.main import main
from foveate.pipeline import open_stream
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings

CLIP = Path(__file__).parents[2] / "sample_videos" / "pedestrians.mp4"
SIZES = ((112, 144), (70, 200))  # height and width

EVENTS = ("still", "still", "noise", "patch", "shift", "flash", "cut", "size", "jump", "pause")


def pictures(events, seed):
    """A Frame for each event. A pause leaves numbers out, a jump is a discontinuity."""
    random = np.random.default_rng(seed)
    size, index, now = SIZES[0], 0, None
    for event in events:
        if event == "size":
            size, now = SIZES[size == SIZES[0]], None
        if now is None or event == "cut":
            now = random.integers(0, 256, (size[0] // 4 + 1, size[1] // 4 + 1)).repeat(4, 0).repeat(4, 1)
            now = now[: size[0], : size[1]]
        if event == "noise":
            now = random.integers(0, 256, size)
        if event == "patch":
            now = now.copy()
            now[20:60, 30:90] = random.integers(0, 256)
        if event == "shift":
            now = np.roll(now, (3, 5), (0, 1))
        shown = 255 - now if event == "flash" else now
        chroma = (np.full((-(-size[0] // 2), -(-size[1] // 2)), 128, np.uint8),) * 2
        index += 20 if event == "pause" else 1
        yield Frame(index, index / 25, shown.astype(np.uint8), chroma, Colour("bt601", True), event == "jump")


def spent(events, seed, averages=None, **settings):
    """Tokens and extras of each frame. ``averages``: those to change to, by the frame behind which that is said."""
    chosen, feedback = Settings(**settings), Feedback()
    engine = CpuEngine(plan_stream(chosen), feedback)
    selections = []
    for step in engine.cascade(engine.pyramid(engine.upload(pictures(events, seed)))):
        if len(selections) in (averages or {}):
            feedback.set_budget(averages[len(selections)])
        selections.append(step.selection)
    return [len(each) for each in selections], [dict(each.extras) for each in selections]


def most_over(counts, average):
    """The most that any frames in a row have spent beyond the average each: the largest rise of the running sum."""
    sums = np.concatenate([[0], np.cumsum(np.asarray(counts) - average)])
    return int((sums - np.minimum.accumulate(sums)).max())


OPTIONS = st.fixed_dictionaries(
    {
        "average": st.integers(9, 80),
        "burst": st.sampled_from([1.0, 1.5, 4.0, 8.0]),
        "merge": st.sampled_from([1, 2, 3]),
        "min_gain": st.sampled_from([0.0, 64.0, 1e4]),
    }
)


@examples(max_examples=60, deadline=None)
@given(
    events=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=40),
    seed=st.integers(0, 2**32 - 1),
    options=OPTIONS,
    passes=st.sampled_from([1, 2]),
    interval=st.sampled_from([1, 4, 30]),
)
def test_no_frames_in_a_row_spend_more_than_their_average_and_seven_more(events, seed, options, passes, interval):
    """Through cuts, flashes, pauses, jumps and changes of size; the debt told is what follows from the counts."""
    average, burst, merge = options["average"], options["burst"], options["merge"]
    allocation = {
        "memory": "stream",
        "budget_average": average,
        **{k: options[k] for k in ("burst", "merge", "min_gain")},
    }
    counts, extras = spent(
        events, seed, allocation=allocation, score={"passes": passes}, change={"keyframe_interval": interval}
    )
    assert max(counts) <= burst * average
    assert most_over(counts, average) <= 7 * average
    units, debt = average // merge**2, 0
    for count, told in zip(counts, extras, strict=True):
        debt = max(0, debt + count // merge**2 - units)
        assert told["debt"] == debt * merge**2


@examples(max_examples=40, deadline=None)
@given(
    events=st.lists(st.sampled_from(EVENTS), min_size=20, max_size=40),
    seed=st.integers(0, 2**32 - 1),
    averages=st.dictionaries(st.integers(0, 18), st.integers(1, 120), max_size=5),
)
def test_the_average_may_change(events, seed, averages):
    """The bound is the sum of the averages, the deepest debt, and what each fall of the average forgives."""
    allocation = {"memory": "stream", "budget_average": 30}
    counts, _ = spent(events, seed, averages, allocation=allocation)
    asked, now = [], 30
    for index in range(len(counts)):
        asked.append(now)
        now = averages.get(index, now)
    asked = np.array(asked)
    assert all(count <= 4 * rate for count, rate in zip(counts, asked, strict=True))
    falls = np.array([7 * max(0, before - after) for before, after in pairwise([asked[0], *asked])])
    sums = np.concatenate([[0], np.cumsum(counts - asked - falls)])
    assert (sums - np.minimum.accumulate(sums)).max() <= 7 * asked.max()


def test_streams_have_debts_of_their_own():
    """Two read in turns spend what each spends alone."""
    options = {"budget": 50, "engine": "cpu", "allocation": {"memory": "stream", "budget_average": 40}}
    options["source"] = {"frames": 6}
    with open_stream(CLIP, **options) as alone:
        expected = [len(selection) for selection in alone]
    with open_stream(CLIP, **options) as first, open_stream(CLIP, **options) as second:
        counts = [(len(one), len(two)) for one, two in zip(first, second, strict=True)]
    assert counts == [(count, count) for count in expected]
    assert expected[0] == 160


def test_on_a_still_picture_the_debt_is_paid_and_nothing_more_is_sent():
    counts, extras = spent(("cut", *("still",) * 40), 1, allocation={"memory": "stream", "budget_average": 12})
    assert counts[0] == 48
    assert counts[-5:] == [0] * 5
    assert extras[-1] == {"debt": 0, "price": 64.0}


def test_what_was_too_dear_is_sent_once_the_debt_is_paid():
    """A frame without tokens is no rest while its price was raised."""
    events = ("cut", "noise", "noise", "noise", *("still",) * 40)
    options = {"score": {"enabled": True}, "allocation": {"memory": "stream", "budget_average": 10, "burst": 8}}
    counts, extras = spent(events, 3, **options)
    waits = [
        index for index, (count, told) in enumerate(zip(counts, extras, strict=True)) if not count and told["debt"]
    ]
    assert waits
    assert sum(counts[waits[0] :]) > 0


def test_the_price_doubles_twice_for_each_average_of_debt():
    """14 octaves over 7 averages: price(Q) = min_gain 2^(14 Q/D); the lattice has 512 steps an octave."""
    events = ("cut", *("noise",) * 12)
    average = 30
    counts, extras = spent(events, 5, allocation={"memory": "stream", "budget_average": average, "min_gain": 64})
    debt = 0
    for count, told in zip(counts, extras, strict=True):
        least = 64 * 2 ** (2 * debt / average)
        assert told["price"] >= least * 2 ** (-1 / 512)
        if count < min(4 * average, 8 * average - debt) - 3:
            assert told["price"] == pytest.approx(least, rel=2 / 512)
        debt = told["debt"]


def test_a_fixed_budget_tells_of_no_debt():
    counts, extras = spent(("cut", "noise", "still"), 0, budget=20, allocation={"memory": "stream"})
    assert max(counts) <= 20
    assert extras == [{}] * 3


@pytest.mark.parametrize(
    ("allocation", "said"),
    [
        ({"budget_average": 30}, "needs memory 'stream'"),
        ({"budget_average": 30, "memory": "stream", "strategy": "soft"}, "strategy 'rate_distortion'"),
        ({"budget_average": 8, "memory": "stream", "merge": 3}, "must be at least 9 with merge = 3, got 8"),
        ({"budget_average": 0, "memory": "stream"}, "budget_average must be greater than or equal to 1"),
        ({"budget_average": 5, "memory": "stream", "burst": 0.5}, "burst must be greater than or equal to 1"),
    ],
)
def test_what_cannot_be(allocation, said):
    with pytest.raises(SettingsError, match=said):
        open_stream(CLIP, allocation=allocation)


def test_the_command_line_writes_debt_and_price(tmp_path):
    out = tmp_path / "tokens.jsonl"
    flags = [
        "--memory",
        "stream",
        "--budget-average",
        "50",
        "--burst",
        "2",
        "--max-frames",
        "3",
        "--engine",
        "cpu",
        "-q",
    ]
    assert main(["run", str(CLIP), *flags, "--out", str(out)]) == 0
    header, *records = map(json.loads, out.read_text().splitlines())
    assert header["config"]["allocation"]["budget_average"] == 50
    assert len(records[0]["x"]) == 100
    assert records[0]["debt"] == 50
    assert records[0]["price"] > 64
