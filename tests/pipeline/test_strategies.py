"""The strategies from the literature: one contract for all, and what is particular to each."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.pipeline.cascade.cluster_first import ClusterFirst
from foveate.pipeline.cascade.culling import detailed
from foveate.pipeline.cascade.foveated import Foveated
from foveate.pipeline.cascade.problem import Problem
from foveate.pipeline.cascade.soft import soft_top_k, soft_top_k_gradient
from foveate.pipeline.cascade.strategies import channels_read, strategy
from foveate.pipeline.cascade.top_k import FIVE_STAGES, ONE_STAGE, TopK, complexity
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.settings import AllocationSettings

NAMES = ("rate_distortion", "three_stage", "five_stage", "adaptive", "cluster_first", "foveated", "soft")
FINE = ("three_stage", "five_stage", "adaptive", "cluster_first", "soft")


def made_up(geometry, budget, seed=0, merge=1, **given):
    """A problem of random maps; those in ``given`` instead of their own. Errors go as far up as coverage asks."""
    rng = np.random.default_rng(seed)
    grid = geometry.grid
    maps = {name: rng.random(grid).astype(np.float32) for name in ("saliency", "motion", "score")}
    label = (np.indices(grid).sum(axis=0) // 5 % 50).astype(np.float32)
    top, size = 4, (geometry.width, geometry.height)
    while math.prod(math.ceil(side / (16 * merge * 2**top)) for side in size) * merge**2 > budget:
        top += 1
    errors = tuple(np.cumsum(rng.random((top, *grid)) ** 4 * 1e5, axis=0).astype(np.float32))
    score = given.pop("score", maps.pop("score"))
    channels = {**maps, "cluster_id": label, **given.pop("channels", {})}
    weight = ((0.05 + score) * geometry.inside).astype(np.float32)
    kept = given.pop("kept", None)
    errors = given.pop("errors", errors)
    return Problem(geometry, budget, weight, errors, errors, kept, channels, score, **given)


def cells_of(tokens, geometry):
    """How many different tokens lie on each cell of the grid: int[grid]; one outside the picture is an error."""
    count = np.zeros(geometry.grid, int)
    for lod, row, column in set(zip(*(values.tolist() for values in tokens), strict=True)):
        under = np.s_[row << lod : (row + 1) << lod, column << lod : (column + 1) << lod]
        assert row >= 0
        assert column >= 0
        assert geometry.inside[under].any()
        count[under] += 1
    return count


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 900), st.integers(1, 700)),
    st.integers(1, 400),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([1, 2, 3]),
)
def test_the_contract(name, size, budget, seed, stream, merge):
    """Never over budget, no cell twice, no token wholly outside, groups whole and sorted, the same the second time."""
    geometry = Geometry(*size)
    budget = max(budget, merge**2)
    kept = None
    if stream:
        kept = (np.random.default_rng(seed).random(geometry.grid) ** 6 * 1e6).astype(np.float32)
    asked = made_up(geometry, budget, seed, merge, kept=kept)
    chosen = AllocationSettings(strategy=name, merge=merge)
    first, again = strategy(chosen).allocate(asked), strategy(chosen).allocate(asked)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert len(first.lod) <= budget
    assert cells_of(first, geometry).max(initial=0) <= 1
    flat = list(zip(*(values.tolist() for values in first), strict=True))
    order = [(-lod, row // merge, column // merge) for lod, row, column in flat[:: merge**2]]
    assert order == sorted(set(order))
    for start, (lod, row, column) in zip(range(0, len(flat), merge**2), order, strict=True):
        side = 16 << -lod
        last_row, last_column = (geometry.height - 1) // side, (geometry.width - 1) // side
        parts = itertools.product(range(row * merge, (row + 1) * merge), range(column * merge, (column + 1) * merge))
        inside = [(-lod, min(at, last_row), min(across, last_column)) for at, across in parts]
        assert flat[start : start + merge**2] == inside  # what would lie outside repeats its neighbour


@pytest.mark.parametrize("name", ["five_stage", "cluster_first", "soft", "foveated"])
@pytest.mark.parametrize("budget", [40, 273, 1500])
def test_the_budget_is_used_up(name, budget):
    geometry = Geometry(1280, 720)
    asked = made_up(geometry, budget)
    count = len(strategy(AllocationSettings(strategy=name)).allocate(asked).lod)
    assert budget - 3 <= count <= budget


@pytest.mark.parametrize("name", FINE)
def test_all_is_fine_and_what_stands_out_is_taken(name):
    geometry = Geometry(640, 480)
    score = np.full(geometry.grid, 0.01, np.float32)
    score[10:20, 12:22] = 1.0
    label = np.zeros(geometry.grid, np.float32)
    label[10:20, 12:22] = 7
    even = np.full(geometry.grid, 0.01, np.float32)
    stands_out = {"saliency": score, "motion": even * 0, "cluster_id": label}
    asked = made_up(geometry, 100, score=score, channels=stands_out, errors=(even * 1e6,) * 4)
    tokens = strategy(AllocationSettings(strategy=name, share=0.5)).allocate(asked)
    assert not tokens.lod.any()
    assert set(zip(tokens.row.tolist(), tokens.column.tolist(), strict=True)) <= set(
        itertools.product(range(10, 20), range(12, 22))
    )
    # The looks of adaptive keep at least the budget, here the 100 that stand out; of these, 50 hold half of the worth.
    assert len(tokens.lod) == (50 if name == "adaptive" else 100)


@pytest.mark.parametrize("name", [*FINE, "foveated"])
def test_a_reader_that_lacks_nothing_is_given_nothing(name):
    geometry = Geometry(640, 480)
    kept = np.zeros(geometry.grid, np.float32)
    allocate = strategy(AllocationSettings(strategy=name)).allocate
    assert len(allocate(made_up(geometry, 273, kept=kept)).lod) == 0
    kept[3, 7] = 1e6
    score = np.ones(geometry.grid, np.float32)
    tokens = allocate(made_up(geometry, 273, kept=kept, score=score))
    assert (tokens.lod.tolist(), tokens.row.tolist(), tokens.column.tolist()) == ([0], [3], [7])


@pytest.mark.parametrize("name", FINE)
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_in_stream_memory_the_cells_are_shown_of_which_the_reader_lacks_most(name, budget, seed):
    """Not those with the highest score, which the reader may know already. 300 cells of one cluster."""
    geometry = Geometry(320, 240)
    kept = (np.random.default_rng(seed).random(geometry.grid) ** 3 * 1e5).astype(np.float32)
    one = {"cluster_id": np.zeros(geometry.grid, np.float32)}
    asked = made_up(geometry, budget, seed, kept=kept, channels=one)
    tokens = strategy(AllocationSettings(strategy=name, share=1.0)).allocate(asked)
    lost = (kept * asked.weight).ravel()
    worst = [at for at in np.argsort(-lost, kind="stable")[:budget].tolist() if lost[at] > 64]
    assert sorted(worst) == (tokens.row * geometry.grid[1] + tokens.column).tolist()


@pytest.mark.parametrize("name", FINE)
def test_where_everything_is_noisy_the_whole_picture_is_seen_all_the_same(name):
    """Each cell lacks 2 grey values at each pixel as soon as it is shown, and 64 before: 6 frames show 300 cells."""
    geometry = Geometry(320, 240)
    seen = np.zeros(geometry.grid, np.bool_)
    chosen = strategy(AllocationSettings(strategy=name, share=1.0))
    for _ in range(6):
        kept = np.where(seen, np.float32(256 * 2**2), np.float32(256 * 64**2))
        even = np.ones(geometry.grid, np.float32)
        tokens = chosen.allocate(made_up(geometry, 50, kept=kept, score=even))
        seen[tokens.row, tokens.column] = True
    assert seen[geometry.inside].all()


@pytest.mark.parametrize("level", [0, 1, 3])
def test_the_detail_that_a_level_adds_counts_up_to_half_of_the_score(level):
    """Root mean squares of 0, 2, 4 and 8 grey values; 4, a 64th of the range, and more count in full."""
    geometry = Geometry(32, 32)
    shown = np.zeros(geometry.grid, np.float32)
    shown[:2, :2] = [[0, 256 * 2**2], [256 * 4**2, 256 * 8**2]]
    finer = np.full(geometry.grid, 2.0**19 if level else 0, np.float32)  # what the next finer level hides already
    errors = [finer if lod <= level else finer + shown for lod in (1, 2, 3, 4)]
    score = np.full(geometry.grid, 0.6, np.float32)
    worth = detailed(made_up(geometry, 4, score=score, errors=tuple(errors)), level)
    assert worth[:2, :2] == pytest.approx(np.array([[0.3, 0.45], [0.6, 0.6]]))


def test_adaptive_keeps_the_fewest_cells_that_hold_the_share():
    values = np.array([5, 1, 0, 3, 1], np.float32)  # 10 in all
    every = np.arange(5)
    shares = {0.4: 1, 0.5: 1, 0.51: 2, 0.8: 2, 0.85: 3, 0.9: 3, 1.0: 4}
    assert {share: complexity(values, every, share) for share in shares} == shares
    assert complexity(values, np.array([2]), 0.9) == 1  # where all is worth nothing, one cell
    assert complexity(values, np.array([], np.intp), 0.9) == 0


def test_adaptive_gives_a_plain_frame_few_tokens_and_a_busy_one_the_budget():
    geometry = Geometry(640, 480)
    even = (np.full(geometry.grid, 1e6, np.float32),) * 4
    plain = np.zeros(geometry.grid, np.float32)
    plain[4, 4:10] = 1.0
    allocate = strategy(AllocationSettings(strategy="adaptive")).allocate
    assert len(allocate(made_up(geometry, 100, score=plain, errors=even)).lod) == 6
    assert len(allocate(made_up(geometry, 100, score=np.ones_like(plain), errors=even)).lod) == 100


def test_five_stage_drops_a_cell_at_the_level_that_finds_it_dull():
    """4,800 cells: the look at level 4 keeps all, the one at level 2 keeps the 1,000 with the highest score."""
    geometry = Geometry(1280, 960)
    score = (np.arange(80 * 60, dtype=np.float32) / 4800).reshape(60, 80)
    detail = np.zeros_like(score)
    detail.ravel()[:3800] = 1e6  # much that only level 0 shows, on the 3,800 cells of low score
    tokens = TopK(FIVE_STAGES, 64.0).allocate(made_up(geometry, 300, score=score, errors=(detail, *[detail + 1e6] * 3)))
    assert (tokens.row * 80 + tokens.column).min() >= 3800


def test_cluster_first_stays_in_the_best_regions_even_where_a_single_cell_elsewhere_is_better():
    geometry = Geometry(800, 640)
    label = (np.indices(geometry.grid)[1] // 2).astype(np.float32)  # 25 stripes of 80 cells
    score = np.full(geometry.grid, 0.1, np.float32)
    score[:, :20] = 0.5  # ten stripes
    score[5, 40] = 1.0
    even = (np.full(geometry.grid, 1e6, np.float32),) * 4
    asked = made_up(geometry, 300, score=score, channels={"cluster_id": label}, errors=even)
    tokens = ClusterFirst(64.0).allocate(asked)
    assert len(tokens.lod) == 300
    assert tokens.column.max() < 20
    more = ClusterFirst(64.0).allocate(made_up(geometry, 810, score=score, channels={"cluster_id": label}, errors=even))
    assert len(more.lod) == 810  # ten clusters hold 800 cells: an eleventh is taken
    assert (5, 40) in set(zip(more.row.tolist(), more.column.tolist(), strict=True))
    assert channels_read(AllocationSettings(strategy="cluster_first")) == {"cluster_id"}


def lods(tokens, geometry):
    """The LOD shown on each cell: int[grid]."""
    shown = np.full(geometry.span, -1)
    for lod, row, column in zip(*(values.tolist() for values in tokens), strict=True):
        shown[row << lod : (row + 1) << lod, column << lod : (column + 1) << lod] = lod
    return shown[: geometry.grid[0], : geometry.grid[1]]


@pytest.mark.parametrize("gaze", [None, (100.0, 50.0), (1279.0, 719.0), (-500.0, 3000.0)])
def test_foveated_tiles_the_picture_and_gets_coarser_with_the_distance(gaze):
    geometry = Geometry(1280, 720)
    tokens = Foveated(None, 0.05, 64.0).allocate(made_up(geometry, 273, gaze=gaze))
    assert (cells_of(tokens, geometry)[geometry.inside] == 1).all()
    shown = lods(tokens, geometry)
    x, y = gaze or (640.0, 360.0)
    row, column = np.indices(geometry.grid)
    away = np.hypot(column * 16 + 8 - x, row * 16 + 8 - y)
    means = [away[geometry.inside & (shown == lod)].mean() for lod in np.unique(shown[geometry.inside])]
    assert means == sorted(means)
    nearest = np.unravel_index(np.argmin(np.where(geometry.inside, away, np.inf)), geometry.grid)
    assert shown[nearest] == shown[geometry.inside].min()


def test_foveated_follows_the_magnification():
    """With M0 = 0.1 and e0 = 0.05, M is 2 at the fixation point, 1 at e = 0.05, 1/2 at 0.15, 1/4 at 0.35."""
    geometry = Geometry(1024, 1024)
    tokens = Foveated(0.1, 0.05, 64.0).allocate(made_up(geometry, 4096))

    def magnification(lod, row, column):
        """At the node's point nearest to the centre; nodes do not straddle it."""
        side = 16 << lod
        across, down = (min(abs(at * side - 512), abs((at + 1) * side - 512)) for at in (column, row))
        return 0.1 / (np.hypot(across, down) / np.hypot(512, 512) + 0.05)

    for lod, row, column in zip(*(values.tolist() for values in tokens), strict=True):
        assert lod == 0 or magnification(lod, row, column) <= 2.0**-lod  # fine enough
        assert lod == 4 or magnification(lod + 1, row // 2, column // 2) > 2.0 ** -(lod + 1)  # and not finer
    assert len(tokens.lod) < 4096


def test_foveated_looks_where_the_query_finds_something_unless_there_is_a_gaze():
    geometry = Geometry(1280, 720)
    found = np.zeros(geometry.grid, np.float32)
    found[40, 70] = 0.9
    peak = lods(Foveated(None, 0.05, 64.0).allocate(made_up(geometry, 273, participation=found)), geometry)
    assert peak[40, 70] == 0
    both = made_up(geometry, 273, participation=found, gaze=(40.0, 40.0))
    assert lods(Foveated(None, 0.05, 64.0).allocate(both), geometry)[2, 2] == 0
    assert lods(Foveated(None, 0.05, 64.0).allocate(both), geometry)[40, 70] > 0
    nothing = made_up(geometry, 273, participation=found * 0)
    assert lods(Foveated(None, 0.05, 64.0).allocate(nothing), geometry)[22, 40] == 0


def test_foveated_covers_a_large_picture_with_few_tokens_finest_at_the_gaze():
    geometry = Geometry(7680, 4320)  # 510 tokens of LOD 4, 135 of LOD 5, 40 of LOD 6
    tokens = Foveated(None, 0.05, 64.0).allocate(made_up(geometry, 100, gaze=(0.0, 0.0)))
    assert 97 <= len(tokens.lod) <= 100
    assert (cells_of(tokens, geometry)[geometry.inside] == 1).all()
    away = np.hypot(tokens.row << tokens.lod, tokens.column << tokens.lod)
    means = [away[tokens.lod == lod].mean() for lod in np.unique(tokens.lod)]
    assert means == sorted(means)
    assert tokens.lod.max() == 6


def test_foveated_in_stream_memory_spends_what_is_not_lacking_elsewhere():
    geometry = Geometry(1280, 720)
    kept = np.full(geometry.grid, 1e6, np.float32)
    whole = Foveated(None, 0.05, 64.0).allocate(made_up(geometry, 273, kept=kept, gaze=(640.0, 360.0)))
    kept[:, :40] = 0  # the left half is known
    right = Foveated(None, 0.05, 64.0).allocate(made_up(geometry, 273, kept=kept, gaze=(640.0, 360.0)))
    assert (lods(whole, geometry)[:, 40:] == 0).sum() < (lods(right, geometry)[:, 40:] == 0).sum()
    assert (lods(right, geometry)[:, :36] == -1).all()


def test_foveated_in_stream_memory_shows_what_is_wrong_before_what_is_merely_noisy():
    """2,304 cells, all with more than min_gain to win, and in a far corner 100 that are quite unknown."""
    geometry = Geometry(1024, 576)
    kept = np.full(geometry.grid, 256 * 2**2, np.float32)
    kept[:10, :10] = 256 * 64**2
    errors = tuple(np.full(geometry.grid, 256 * 4**lod, np.float32) for lod in (1, 2, 3, 4))
    even = np.ones(geometry.grid, np.float32)
    asked = made_up(geometry, 100, kept=kept, errors=errors, score=even, gaze=(1023.0, 575.0))
    shown = lods(Foveated(None, 0.05, 64.0).allocate(asked), geometry)
    assert (shown[:10, :10] >= 0).all()
    # LOD 1 leaves 4 of 4,096 there, and takes a quarter of the tokens of LOD 0.
    assert shown[:10, :10].max() <= 1


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.3, 2.0]))
def test_soft_weights_add_up_and_their_gradient_is_that_of_small_steps(length, seed, temperature):
    rng = np.random.default_rng(seed)
    values, upstream = rng.random(length), rng.standard_normal(length)
    count = int(rng.integers(1, length))
    weights = soft_top_k(values, count, temperature)
    assert weights.sum() == pytest.approx(count)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert (np.diff(weights[np.argsort(values)]) >= 0).all()
    step = 1e-5 * temperature
    slopes = []
    for at in range(length):
        ahead, behind = values.copy(), values.copy()
        ahead[at] += step
        behind[at] -= step
        change = soft_top_k(ahead, count, temperature) - soft_top_k(behind, count, temperature)
        slopes.append((change * upstream).sum() / (2 * step))
    # Central differences: the third derivative times the step squared is far below this.
    assert soft_top_k_gradient(weights, temperature, upstream) == pytest.approx(slopes, rel=1e-4, abs=1e-5)


def test_soft_weights_become_the_hard_choice():
    rng = np.random.default_rng(1)
    geometry = Geometry(320, 240)
    score = np.pad(rng.permutation(300).reshape(15, 20) / 300, ((0, 1), (0, 0))).astype(np.float32)
    asked = made_up(geometry, 50, score=score, errors=(np.full(geometry.grid, 1e6, np.float32),) * 4)
    tokens = TopK(ONE_STAGE, 64.0).allocate(asked)
    weights = soft_top_k(score[:15].ravel(), 50, 1e-5)
    assert set(np.flatnonzero(weights > 0.5).tolist()) == set((tokens.row * 20 + tokens.column).tolist())
    assert soft_top_k(np.arange(4.0), 4, 1.0).tolist() == [1, 1, 1, 1]
    assert soft_top_k(np.arange(4.0), 0, 1.0).tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="count must be between 0 and 4"):
        soft_top_k(np.arange(4.0), 5, 1.0)
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        soft_top_k(np.arange(4.0), 2, 0.0)


def test_soft_weights_in_torch_carry_the_same_gradient():
    torch = pytest.importorskip("torch")
    from foveate.pipeline.cascade.soft_torch import soft_top_k_tensor

    values = torch.rand(20, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: soft_top_k_tensor(v, 7, 0.3), (values,), eps=1e-6, atol=1e-5)


def test_soft_weights_train_what_the_worth_is_made_of():
    """Two channels, one of which tells where the wanted cells are: gradient steps find which."""
    rng = np.random.default_rng(2)
    channels = rng.random((2, 100))
    wanted = channels[1] >= np.sort(channels[1])[-20]
    mixture = np.array([1.0, 0.0])
    for _ in range(60):
        weights = soft_top_k(mixture @ channels, 20, 0.2)
        mixture += 0.5 * channels @ soft_top_k_gradient(weights, 0.2, wanted.astype(float)) / 10
    assert wanted[np.argsort(-(mixture @ channels))[:20]].mean() > 0.9
