"""open_stream end to end: budgets, time, memory of the reader, feedback, and what is left behind."""

import gc
import itertools
import threading
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from foveate.pipeline import open_stream
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.errors import EngineError, SettingsError, SinkError
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.info import EngineInfo
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import AllocationSettings, CacheSettings, ChangeSettings, ScoreSettings, Settings
from foveate.pipeline.sinks import open_sink

STREAM = AllocationSettings(memory="stream")


def select(pictures, settings=None, feedback=None):
    """The Selections of luma pictures, without threads."""
    engine = CpuEngine(plan_stream(settings or Settings()), feedback or Feedback())
    frames = (Frame(i, i / 25, picture, None, Colour("bt601", True)) for i, picture in enumerate(pictures))
    for step in engine.cascade(engine.pyramid(engine.upload(frames))):
        yield step.selection


def scene(seed, shape=(240, 320)):
    """A picture with smooth areas and busy ones."""
    rng = np.random.default_rng(seed)
    picture = np.add.outer(np.linspace(40, 120, shape[0]), np.linspace(0, 60, shape[1]))
    for _ in range(6):
        top, left = rng.integers(0, shape[0] - 40), rng.integers(0, shape[1] - 40)
        picture[top : top + 40, left : left + 40] = rng.integers(0, 256, (40, 40))
    return picture.astype(np.uint8)


def same(first, second):
    return all((getattr(first, name) == getattr(second, name)).all() for name in ("x", "y", "lod"))


def painted(selection):
    """Cells of a 240x320 picture under the selection's tokens."""
    cells = np.zeros((32, 32), bool)
    for x, y, lod in zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True):
        half = 8 << lod
        cells[max(0, y - half) // 16 : (y + half) // 16, max(0, x - half) // 16 : (x + half) // 16] = True
    return cells[:15, :20]


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_few_processors_find_the_same_with_fewer_threads(samples, memory, monkeypatch):
    """Where all stages share a thread, the levels are not copied for the one that reads them."""
    found, threads = [], []
    for processors in (2, 8):
        monkeypatch.setattr("os.cpu_count", lambda processors=processors: processors)
        wanted = {"engine": "cpu", "patches": True, "allocation": {"memory": memory}, "source": {"frames": 12}}
        with open_stream(str(samples / "pedestrians.mp4"), **wanted) as stream:
            found.append([next(stream)])
            threads.append({each.name for each in threading.enumerate() if each.name.startswith("foveate-")})
            found[-1] += stream
    assert threads[0] == {"foveate-decode", "foveate-upload-pyramid-cascade-output"}
    assert threads[1] == {"foveate-decode", "foveate-upload", "foveate-pyramid", "foveate-cascade-output"}
    for few, many in zip(*found, strict=True):
        assert same(few, many)
        assert (few.patches == many.patches).all()


@pytest.mark.parametrize("clip", ["pedestrians", "bunny", "tree"])
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_real_clips_stay_in_budget_and_in_range(samples, clip, memory):
    counts = []
    with open_stream(str(samples / f"{clip}.mp4"), allocation={"memory": memory}, source={"frames": 40}) as stream:
        for selection in stream:
            counts.append(len(selection))
            assert len(selection) <= 273
            for name in ("score", "information", "perspective"):
                values = getattr(selection, name)
                assert np.isfinite(values).all()
                assert ((values >= 0) & (values <= 1)).all()
            half = 8 << selection.lod.astype(int)
            assert (selection.x - half < selection.width).all()
            assert (selection.y - half < selection.height).all()
            assert (selection.age >= 0).all()
            assert 0 <= selection.changed <= 1
            assert 0 <= selection.recomputed <= 1
    assert len(counts) == 40
    if memory == "frame":
        assert min(counts) >= 270 or clip == "tree"


def test_two_runs_select_the_same(samples):
    runs = []
    for _ in range(2):
        with open_stream(str(samples / "pedestrians.mp4"), source={"frames": 45}, patches=True) as stream:
            runs.append(list(stream))
    for first, second in zip(*runs, strict=True):
        assert same(first, second)
        assert (first.score == second.score).all()
        assert (first.patches == second.patches).all()


def test_patches_are_the_pixels_of_their_level(samples):
    with open_stream(str(samples / "pedestrians.mp4"), source={"frames": 1}, patches=True) as stream:
        selection = next(stream)
    luma = first_luma(samples / "pedestrians.mp4")
    for index in np.flatnonzero(selection.lod <= 2)[::7].tolist():
        side = 16 << int(selection.lod[index])
        left, top = int(selection.x[index]) - side // 2, int(selection.y[index]) - side // 2
        block = luma[top : top + side, left : left + side].astype(float)
        if block.shape != (side, side):
            continue
        true = block.reshape(16, side // 16, 16, side // 16).mean(axis=(1, 3))
        red, green, blue = (selection.patches[index, ..., channel].astype(float) for channel in range(3))
        seen = 16 + (0.299 * red + 0.587 * green + 0.114 * blue) * 219 / 255  # back to limited-range luma
        clipped = (selection.patches[index] == 0).any(-1) | (selection.patches[index] == 255).any(-1)
        # Three channels rounded to whole numbers carry luma to within one step.
        assert np.abs(seen - true)[~clipped].max(initial=0) <= 1.0


def first_luma(path):
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
        rows = np.frombuffer(frame.planes[0], np.uint8).reshape(frame.height, frame.planes[0].line_size)
        return rows[:, : frame.width].copy()


def test_a_naflex_view_is_padded_and_marked(samples):
    with open_stream(str(samples / "bunny.mp4"), source={"frames": 1}, patches=True, budget=50) as stream:
        selection = next(stream)
    view = selection.naflex(64)
    count = len(selection)
    assert view.patches.shape == (64, 768)
    assert view.valid.sum() == count
    assert (view.patches[:count].reshape(-1, 16, 16, 3) == selection.patches).all()
    assert (view.coords[0] == [selection.y[0] // 16, selection.x[0] // 16]).all()
    with pytest.raises(ValueError, match="at least"):
        selection.naflex(3)


def test_naflex_coordinates_lie_in_the_grid_of_the_picture():
    """The centres of large tokens at the edges lie beyond it: an encoder would infer a larger grid from them."""
    (selection,) = select([np.full((300, 340), 90, np.uint8)], Settings(patches=True, budget=4))
    assert max(selection.y) >= 300
    assert max(selection.x) >= 340
    view = selection.naflex()
    assert view.grid == (19, 22)
    assert view.coords.max(axis=0).tolist() == [18, 21]
    assert (view.coords >= 0).all()


@pytest.mark.parametrize("length", [None, 5])
def test_a_frame_without_tokens_has_an_empty_naflex_view(length):
    """What a still scene comes to with stream memory."""
    selections = list(select([scene(1)] * 10, Settings(patches=True, allocation=STREAM)))
    assert len(selections[-1]) == 0
    patches, coords, valid, _ = selections[-1].naflex(length)
    count = length or 0
    assert (patches.shape, coords.shape, valid.shape) == ((count, 768), (count, 2), (count,))
    assert not valid.any()
    assert not patches.any()


def test_a_still_scene_costs_a_streaming_reader_nothing():
    picture = scene(1)
    selections = list(select([picture] * 40, Settings(allocation=STREAM)))
    assert len(selections[0]) > 0
    assert [len(selection) for selection in selections[10:]] == [0] * 30


def test_a_still_scene_repeats_its_tokens_with_growing_age():
    selections = list(select([scene(1)] * 6))
    for earlier, later in itertools.pairwise(selections):
        assert same(earlier, later)
        assert (later.age == earlier.age + 1).all()
        assert later.changed == 0
        assert not later.fresh.any()
    assert selections[0].fresh.all()


def test_a_moving_square_gets_the_fresh_tokens():
    pictures = [scene(2)] * 8
    for step in range(8):
        picture = scene(2)
        picture[100:132, 40 + 8 * step : 72 + 8 * step] = np.random.default_rng(0).integers(0, 256, (32, 32))
        pictures.append(picture)
    for selection in list(select(pictures, Settings(allocation=STREAM)))[8:]:
        assert len(selection) > 0
        assert selection.fresh.mean() >= 0.8  # a coarse token may be refined a frame later


def test_a_cut_starts_the_readers_picture_anew():
    pictures = [scene(1) // 3] * 5 + [255 - scene(2) // 4] * 5
    selections = list(select(pictures, Settings(allocation=STREAM)))
    assert selections[5].keyframe == "cut"
    assert selections[5].recomputed == 1
    assert painted(selections[5]).all()  # no token of the first scene is left in use
    assert (selections[5].age == 0).all()


def test_a_flash_leaves_no_trace_two_frames_later():
    still = scene(3)
    flash = np.minimum(still.astype(int) + 120, 255).astype(np.uint8)
    part = still.copy()
    part[60:120, 80:200] = 255  # not enough of the picture for a cut
    for bright in (flash, part):
        pictures = [still] * 5 + [bright] + [still] * 5
        with_cache = list(select(pictures))
        without = list(select(pictures, Settings(cache=CacheSettings(enabled=False))))
        for index in (7, 8, 9):
            assert same(with_cache[index], without[index])
            assert same(with_cache[index], with_cache[4])


def test_noise_cannot_be_carried_along_any_flow():
    rng = np.random.default_rng(4)
    pictures = [rng.integers(0, 256, (240, 320), dtype=np.uint8) for _ in range(4)]
    # Means of 8x8 pixels of such noise differ by 10 grey values on average; a tenth of the cells agree by chance.
    assert all(selection.recomputed > 0.8 for selection in select(pictures))


def test_a_panning_picture_is_mostly_reused():
    wide = np.random.default_rng(5).integers(0, 256, (30, 100), dtype=np.uint8)
    wide = wide.repeat(16, 0).repeat(16, 1)
    wide = cv2.GaussianBlur(wide, (0, 0), 6)
    pictures = [np.ascontiguousarray(wide[:, 6 * i : 640 + 6 * i]) for i in range(10)]
    shares = [selection.recomputed for selection in select(pictures)]
    assert max(shares[1:]) < 0.2


def test_the_error_alone_decides_until_the_score_is_put_on():
    pictures = [scene(6)]
    even, off, on = (
        next(select(pictures, Settings(score=ScoreSettings(enabled=enabled), budget=60)))
        for enabled in (None, False, True)
    )
    assert same(even, off)
    assert len(even) != len(on) or not same(even, on)
    assert len(even) <= 60


def test_the_score_counts_while_there_is_a_gaze():
    """Tokens are those of a score put on while someone looks, and those of one put off before and after."""
    pictures, gaze = [scene(6)] * 9, (40.0, 200.0)

    def seen(enabled):
        feedback, found = Feedback(), []
        for selection in select(pictures, Settings(score=ScoreSettings(enabled=enabled), budget=60), feedback):
            found.append(selection)
            if len(found) in (3, 6):
                feedback.set_gaze(gaze if len(found) == 3 else None)
        return found

    ours, off, on = seen(None), seen(False), seen(True)
    for index in (0, 1, 2, 6, 7, 8):
        assert same(ours[index], off[index])
    for index in (3, 4, 5):
        assert same(ours[index], on[index])
        assert len(ours[index]) != len(off[index]) or not same(ours[index], off[index])


def test_three_stage_selects_cells_at_full_detail():
    settings = Settings(budget=40, allocation=AllocationSettings(strategy="three_stage"))
    selection = next(select([scene(7)], settings))
    assert len(selection) == 40
    assert (selection.lod == 0).all()


@pytest.mark.parametrize("merge", [2, 3])
def test_merged_groups_reach_the_record(merge):
    settings = Settings(allocation=AllocationSettings(merge=merge), patches=True)
    selection = next(select([scene(8, (720, 1296))], settings))
    assert len(selection) % merge**2 == 0
    assert selection.patches.shape == (len(selection), 16, 16, 3)
    cells = {
        (int(x) // 16, int(y) // 16)
        for x, y, lod in zip(selection.x, selection.y, selection.lod, strict=True)
        if not lod
    }
    assert cells
    for x, y in cells:  # 1296 and 720 pixels are whole groups of either kind but for the last row of 2x2 ones
        left, top = x - x % merge, y - y % merge
        group = {(left + i, top + j) for i in range(merge) for j in range(merge)}
        assert {(x, min(y, 44)) for x, y in group} <= cells


SHAPES = [(1, 1), (1, 17), (17, 1), (31, 639), (241, 321), (224, 1600), (1600, 224), (130, 500)]


@pytest.mark.parametrize("shape", SHAPES)
def test_any_size_has_tokens_on_its_pixels(shape):
    rng = np.random.default_rng(9)
    pictures = [rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(3)]
    for memory in ("frame", "stream"):
        settings = Settings(allocation=AllocationSettings(memory=memory), patches=True)
        for selection in select(pictures, settings):
            assert 1 <= len(selection) <= 273
            assert (selection.x // 16 * 16 < max(shape[1], 16) + 240).all()


@pytest.mark.parametrize("merge", [2, 3])
@pytest.mark.parametrize("memory", ["frame", "stream"])
@pytest.mark.parametrize("shape", [*SHAPES, (720, 1280)])
def test_whole_groups_may_reach_beyond_a_picture_of_any_size(shape, memory, merge):
    """Where part of a group lies outside the texture, it is still a whole group."""
    allocation = AllocationSettings(memory=memory, merge=merge)
    rng = np.random.default_rng(9)
    pictures = [rng.integers(0, 256, shape, dtype=np.uint8) // (1 + index) for index in range(4)]
    for selection in select(pictures, Settings(allocation=allocation, patches=True)):
        assert len(selection) <= 273
        assert len(selection) % merge**2 == 0
        side = merge * (16 << selection.lod.astype(int))
        groups = set(zip(selection.lod, selection.y // side, selection.x // side, strict=True))
        assert merge**2 * len(groups) == len(selection)


def test_maps_are_handed_out_by_name():
    names = tuple(sorted({"score", "red", "edges", "edge_distance", "eccentricity", "x", "y", "fixation", "boundary",
                          "cluster_id", "cluster_size", "prev_relevance", "prev_saliency", "attention", "gaze",
                          "prev_attention", "motion", "lowpass", "cluster_distance"}))  # fmt: skip
    for selection in select([scene(1)] * 3, Settings(maps=names)):
        assert tuple(sorted(selection.maps)) == names
        for name, values in selection.maps.items():
            assert values.shape == (16, 20)
            assert values.dtype == np.float32
            assert np.isfinite(values).all()
            assert values.min() >= 0
            assert values.max() <= (49 if name == "cluster_id" else 1)
    assert selection.maps["x"][0, 0] == pytest.approx(8 / 320)
    assert selection.maps["y"][-1, 0] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="maps must be among"):
        Settings(maps=("nonsense",))


def test_a_fixation_builds_up_where_detail_is_spent():
    first, second = select([scene(1)] * 2, Settings(maps=("fixation",), budget=60))
    assert first.maps["fixation"].max() == pytest.approx(0.1)
    assert second.maps["fixation"].max() == pytest.approx(0.19)
    assert len(set(first.lod.tolist())) > 2
    for x, y, lod in zip(first.x.tolist(), first.y.tolist(), first.lod.tolist(), strict=True):
        under = first.maps["fixation"][y // 16 - (1 << lod >> 1), x // 16 - (1 << lod >> 1)]  # its upper left cell
        assert under == pytest.approx(0.1 / 4**lod)


def test_gaze_moves_the_eccentricity_and_fades():
    feedback = Feedback()
    feedback.set_gaze((8.0, 8.0))
    settings = Settings(maps=("eccentricity", "gaze"))
    first, second = itertools.islice(select([scene(1)] * 2, settings, feedback), 2)
    assert first.maps["eccentricity"][0, 0] == 0
    assert first.maps["gaze"][0, 0] == pytest.approx(1.0)
    assert second.maps["gaze"][0, 0] == pytest.approx(0.9)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1e308, -1_000_001])
def test_a_gaze_must_be_somewhere_near(wrong):
    with pytest.raises(ValueError, match="gaze must be two numbers from -1000000 to 1000000"):
        Feedback().set_gaze((0.0, wrong))


@pytest.mark.parametrize(
    "wrong",
    [
        (None, 0),
        (0, None),
        (1j, 0),
        (True, 0),
        ("1", 2),
        (b"1", 2),
        ([1], 2),
        pytest.param((10**5000, 1), id="huge"),
        (0, float("nan")),
    ],
)
def test_a_gaze_is_two_numbers(samples, wrong):
    with (
        open_stream(str(samples / "tree.mp4")) as stream,
        pytest.raises(ValueError, match="gaze must be two numbers from -1000000 to 1000000, got"),
    ):
        stream.set_gaze(*wrong)


def test_a_gaze_of_thousands_of_digits_is_told():
    with pytest.raises(ValueError, match="gaze must be two numbers from -1000000 to 1000000, got a number of"):
        Feedback().set_gaze((10**5000, 1))


def test_a_gaze_may_be_numbers_of_numpy():
    feedback = Feedback()
    feedback.set_gaze((np.float32(2.5), np.int64(7)))
    gaze = feedback.take(Geometry(64, 48)).gaze
    assert gaze == (2.5, 7.0)
    assert {type(value) for value in gaze} == {float}


@pytest.mark.parametrize(
    "wrong", ["red", b"red", ["red", 5], [b"red"], 5, None, {"red": 1}, {"red"}, iter(["red"]), [["red"]]]
)
def test_a_query_is_a_list_of_texts(samples, wrong):
    with (
        open_stream(str(samples / "tree.mp4"), query=["red"]) as stream,
        pytest.raises(ValueError, match="query must be a list of texts, got "),
    ):
        stream.set_query(wrong)


@pytest.mark.parametrize("wrong", ["7", 7.0, True, None, 2**63, -1, pytest.param(10**5000, id="huge")])
def test_a_budget_and_an_interval_are_whole_numbers_in_bounds(samples, wrong):
    with open_stream(str(samples / "tree.mp4")) as stream:
        with pytest.raises(ValueError, match="budget must be"):
            stream.set_budget(wrong)
        with pytest.raises(ValueError, match=r"change\.keyframe_interval must be"):
            stream.set_keyframe_interval(wrong)


NO_SOURCE = "source must be a path, an address, a camera's number, a binary file object or an iterable of frames"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x", "stream"), "settings must be a Settings, got 'stream'; single ones are keywords, such as budget=100"),
        (("x", {"budget": 100}), "settings must be a Settings, got {'budget': 100}; single ones are keywords"),
        ((b"x",), f"{NO_SOURCE}, got b'x'"),
        ((None,), f"{NO_SOURCE}, got None"),
    ],
)
def test_what_is_opened_has_the_right_type(arguments, said):
    with pytest.raises(SettingsError) as caught:
        open_stream(*arguments)
    assert str(caught.value).startswith(said)


def test_what_is_no_sink_is_refused(samples):
    with pytest.raises(SettingsError, match=r"^a sink must have open, .* got 'a.jsonl'; .* give open_sink\(name\)$"):
        open_stream(str(samples / "tree.mp4"), sinks=["a.jsonl"])


def test_attention_lands_on_the_tokens_it_was_given_to():
    feedback = Feedback()
    run = select([scene(1)] * 4, Settings(maps=("attention", "prev_attention")), feedback)
    first = next(run)
    weights = np.zeros(len(first), np.float32)
    finest = int(np.argmin(first.lod))
    weights[finest] = 1.0
    feedback.add_attention(first.index, weights)
    second, third = next(run), next(run)
    row, column = first.y[finest] // 16, first.x[finest] // 16
    assert second.maps["attention"][row, column] == 1
    assert second.maps["attention"].sum() == 4 ** first.lod[finest]
    assert third.maps["attention"][row, column] == pytest.approx(0.9)
    assert third.maps["prev_attention"][row, column] == 1
    with pytest.raises(ValueError, match="one weight per token"):
        feedback.add_attention(0, weights[:-1])
    with pytest.raises(ValueError, match="last 64 frames"):
        feedback.add_attention(99, weights)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        feedback.add_attention(0, weights * 2)


def test_attention_is_taken_for_the_last_64_frames():
    feedback = Feedback()
    counts = [len(selection) for selection in select([scene(1)] * 70, Settings(budget=20), feedback)]
    for index in (69, 6):
        feedback.add_attention(index, np.ones(counts[index]))
    for index in (5, 70):
        with pytest.raises(ValueError, match=f"one of the last 64 frames, got frame {index}"):
            feedback.add_attention(index, np.ones(20))


@pytest.mark.parametrize("begun", [True, False])
def test_a_stream_that_nobody_holds_any_more_leaves_no_thread_and_no_file(samples, begun):
    def held():
        gc.collect()
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    with open_stream(str(samples / "tree.mp4")) as stream:
        next(stream)
    del stream
    before = held()
    for _ in range(5):
        stream = open_stream(samples / "tree.mp4")
        if begun:
            next(stream)
        del stream
    assert held() == before


def test_what_is_changed_mid_stream_is_the_checked_value(samples):
    with open_stream(str(samples / "tree.mp4"), source={"frames": 20}) as stream:
        next(stream)
        stream.set_budget(np.int64(7))
        stream.set_keyframe_interval(np.int8(5))
        late = [selection for selection in stream if selection.index > 8]
    assert {len(selection) <= 7 for selection in late} == {True}
    assert [selection.index for selection in late if selection.keyframe == "periodic"] == [10, 15]


def test_a_gaze_outlives_a_change_of_size():
    feedback = Feedback()
    feedback.set_gaze((8.0, 8.0))
    pictures = [scene(1)] * 2 + [scene(2, (360, 640))] * 2
    maps = [selection.maps for selection in select(pictures, Settings(maps=("eccentricity", "gaze")), feedback)]
    assert [each["eccentricity"][0, 0] for each in maps] == [0.0] * 4
    assert maps[2]["gaze"][0, 0] == pytest.approx(1.0)


def test_a_stream_tells_what_it_is(samples):
    with open_stream(str(samples / "pedestrians.mp4"), engine="cpu", name="door") as stream:
        assert repr(stream) == "Stream(door, 768x576, 10 fps, cpu)"


def test_overrides_are_checked(samples):
    clip = str(samples / "tree.mp4")
    with pytest.raises(SettingsError, match="budget"):
        open_stream(clip, budget=0)
    with pytest.raises(SettingsError, match=r"^unknown setting 'bugdet'; did you mean budget=\.\.\.\?$"):
        open_stream(clip, bugdet=3)
    with pytest.raises(SettingsError, match=r"'memory'; did you mean allocation=\{'memory': \.\.\.\}\?"):
        open_stream(clip, memory="stream")
    with pytest.raises(SettingsError, match=r"^unknown setting 'zzzzzz'$"):
        open_stream(clip, zzzzzz=1)
    with pytest.raises(SettingsError, match="budget must be at least 4 with merge = 2, got 3"):
        open_stream(clip, budget=3, allocation={"merge": 2})
    with pytest.raises(SettingsError, match="budget must be at least 9 with merge = 3, got 8"):
        open_stream(clip, budget=8, allocation={"merge": 3})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"query": "red car"}, "query must be a list such as ['red car'], got 'red car'"),
        ({"maps": "score"}, "maps must be a list such as ['score'], got 'score'"),
        ({"query": 3}, "query must be a list, got 3"),
        ({"query": ["red", 3]}, "query.1 must be a valid string, got 3"),
        ({"allocation": "stream"}, "allocation must be a table of settings, got 'stream'"),
        ({"budget": 0}, "budget must be greater than or equal to 1, got 0"),
        ({"allocation": {"memory": "strem"}}, "allocation.memory must be 'frame' or 'stream', got 'strem'"),
    ],
)
def test_an_override_that_cannot_be_is_told_in_plain_words(samples, wrong, said):
    with pytest.raises(SettingsError) as caught:
        open_stream(str(samples / "tree.mp4"), **wrong)
    assert str(caught.value) == said


def test_without_a_gpu_cuda_is_refused_and_auto_is_the_cpu(samples, monkeypatch):
    monkeypatch.setattr("foveate.cuda.driver.device.gpu_problem", lambda: "there is no card")
    clip = str(samples / "tree.mp4")
    with pytest.raises(EngineError, match=r"engine 'cuda' cannot run here: there is no card; use --engine cpu"):
        open_stream(clip, engine="cuda")
    with open_stream(clip, source={"frames": 2}) as stream:
        assert stream.header.config["engine"] == "cpu"
        assert len(list(stream)) == 2


@pytest.mark.parametrize("expected", [True, False])
def test_auto_warns_once_where_a_gpu_was_to_be_expected(expected, samples, monkeypatch, caplog):
    monkeypatch.setattr("foveate.cuda.driver.device.gpu_problem", lambda: "the driver does not answer")
    monkeypatch.setattr("foveate.cuda.driver.device.gpu_expected", lambda: expected)
    with open_stream(str(samples / "tree.mp4"), source={"frames": 2}) as stream:
        list(stream)
    reason = "the driver does not answer"
    assert stream.engine == EngineInfo("cpu", instead_of_cuda=reason if expected else None)
    assert stream.header.notes == ((f"engine cpu instead of cuda: {reason}",) if expected else ())
    assert len([message for message in caplog.messages if reason in message]) == int(expected)


def test_a_stream_left_half_way_leaves_no_thread(samples):
    before = threading.active_count()
    with open_stream(str(samples / "pedestrians.mp4")) as stream:
        for selection in itertools.islice(stream, 5):
            assert len(selection)
    assert threading.active_count() == before
    with open_stream(str(samples / "pedestrians.mp4")):
        pass  # never iterated
    assert threading.active_count() == before


class FailingSink:
    """Fails where ``failing`` says so."""

    needs_patches = needs_heat = needs_query = False

    def __init__(self, name, *failing):
        self.name, self.failing, self.closed = name, failing, False

    def open(self, header):
        pass

    def write(self, frame, selection):
        self.fail("write")

    def close(self):
        self.closed = True
        self.fail("close")

    def fail(self, where):
        if where in self.failing:
            raise SinkError(f"{self.name} fails in {where}")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (("write", "close"), ("close",), "a fails in write"),
        (("close",), ("write",), "b fails in write"),
        (("close",), ("close",), "a fails in close"),
    ],
)
def test_of_several_failures_of_sinks_the_first_is_told_and_all_are_closed(samples, first, second, said):
    sinks = [FailingSink("a", *first), FailingSink("b", *second)]
    with (
        pytest.raises(SinkError, match=f"^{said}"),
        open_stream(str(samples / "tree.mp4"), source={"frames": 3}, sinks=sinks) as stream,
    ):
        list(stream)
    assert [sink.closed for sink in sinks] == [True, True]


def test_a_sink_that_cannot_end_fails_a_stream_that_is_left_early(samples):
    sink = FailingSink("a", "close")
    stream = open_stream(str(samples / "tree.mp4"), sinks=[sink])
    next(stream)
    with pytest.raises(SinkError, match=r"^a fails in close"):
        stream.close()


def test_slow_drift_reaches_the_reader():
    """Every frame differs from the last by less than the threshold; the reader's picture may not stay behind."""
    base = scene(11)
    pictures = [np.clip(base.astype(float) + 0.5 * step, 0, 255).astype(np.uint8) for step in range(60)]
    settings = Settings(allocation=STREAM, change=ChangeSettings(keyframe_interval=1000))
    tokens = [len(selection) for selection in select(pictures, settings)]
    assert sum(tokens[10:]) > 0


def test_settings_of_the_cases(cases):
    """S2: a cut at frame 60. S4: from frame 61 on nothing is older than the end of the fade."""
    with open_stream(str(cases / "S2_cut60.mp4")) as stream:
        selections = list(stream)
    assert [selection.index for selection in selections if selection.keyframe == "cut"] == [60]
    assert (selections[60].age == 0).all()
    for memory in ("frame", "stream"):
        with open_stream(str(cases / "S4_fade.mp4"), allocation={"memory": memory}) as stream:
            for selection in stream:
                if 61 <= selection.index <= 89:
                    assert (selection.age <= selection.index - 30).all()


@pytest.mark.parametrize("still", [True, False])
def test_another_budget_counts_from_the_next_frame_as_in_a_run_of_its_own(still):
    """Of the kind of case Q4; a still picture must not keep its settled tokens."""
    pictures = [scene(0 if still else seed) for seed in range(8)]
    feedback = Feedback()
    changing = select(pictures, Settings(budget=40), feedback)
    before = list(itertools.islice(changing, 4))
    feedback.set_budget(120)
    after = list(changing)
    fresh = list(select(pictures, Settings(budget=120)))
    assert [len(selection) <= 40 for selection in before + after] == [True] * 4 + [False] * 4
    assert all(same(*pair) for pair in zip(after, fresh[4:], strict=True))


def test_another_keyframe_interval():
    feedback = Feedback()
    changing = select([scene(0)] * 12, Settings(change=ChangeSettings(keyframe_interval=100)), feedback)
    assert [next(changing).keyframe for _ in range(4)] == ["first", None, None, None]
    feedback.keyframe_interval = 3
    # Frame 4 is 4 frames behind the last keyframe, so one is due; then every third.
    due = [None, "periodic"]
    assert [selection.keyframe for selection in changing] == ["periodic", None, *due, None, *due, None]


def test_what_the_settings_refuse_cannot_be_set_later(samples):
    with open_stream(str(samples / "tree.mp4"), budget=9, engine="cpu", allocation={"merge": 2}) as stream:
        for budget in (0, 3, 2_000_000):
            with pytest.raises(ValueError, match="budget"):
                stream.set_budget(budget)
        with pytest.raises(ValueError, match="keyframe_interval"):
            stream.set_keyframe_interval(0)


@pytest.mark.parametrize("merge", [2, 3])
@pytest.mark.parametrize("name", ["five_stage", "adaptive", "cluster_first", "foveated", "soft"])
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_every_strategy_runs_on_a_real_clip_within_the_budget(name, memory, merge, samples):
    chosen = {"strategy": name, "memory": memory, "merge": merge}
    with open_stream(str(samples / "tree.mp4"), source={"frames": 40}, budget=60, allocation=chosen) as stream:
        counts = [len(selection) for selection in stream]
    assert len(counts) == 40
    assert max(counts) <= 60
    assert counts[0] > min(40, 60 - 3 * merge**2)  # a quadtree grows by three groups


def test_foveated_is_fine_where_the_gaze_is(samples):
    with open_stream(str(samples / "pedestrians.mp4"), allocation={"strategy": "foveated"}, budget=150) as stream:
        for wanted in ((384, 288), (70, 500)):
            selection = next(stream)
            fine = selection.lod == 0
            assert np.hypot(selection.x[fine].mean() - wanted[0], selection.y[fine].mean() - wanted[1]) < 40
            stream.set_gaze(70, 500)
            for _ in range(12):  # frames that were under way
                next(stream)


@pytest.mark.parametrize(("offset", "expected"), [(0, [5, 10, 15]), (2, [3, 8, 13, 18]), (7, [3, 8, 13, 18])])
def test_periodic_keyframes_can_come_earlier(samples: Path, offset: int, expected: list[int]) -> None:
    """By two frames, with an interval of five; seven is the same as two."""
    change = {"keyframe_interval": 5, "keyframe_offset": offset}
    with open_stream(str(samples / "pedestrians.mp4"), change=change, budget=20, source={"frames": 20}) as stream:
        kinds = [selection.keyframe for selection in stream]
    assert [number for number, kind in enumerate(kinds) if kind == "periodic"] == expected
    assert kinds[0] == "first"


def test_where_only_sinks_take_the_selections(samples: Path, tmp_path: Path) -> None:
    """From the beginning, and from the middle on; the records are those of a loop."""
    written = []
    for taken in (None, 0, 3):
        file = tmp_path / f"{taken}.jsonl"
        sinks = [open_sink(str(file))]
        with open_stream(str(samples / "pedestrians.mp4"), sinks=sinks, budget=20, source={"frames": 9}) as stream:
            if taken is None:
                for _ in stream:
                    pass
            else:
                for _ in range(taken):
                    next(stream)
                stream.drain()
                with pytest.raises(StopIteration):
                    next(stream)
        written.append(file.read_bytes())
    assert written[0].count(b"\n") == 10
    assert written[1] == written[2] == written[0]
