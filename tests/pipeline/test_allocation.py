"""The strategies: never over budget, tokens tile the picture, and the trees are the best ones."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foveate.pipeline.cascade.problem import Problem
from foveate.pipeline.cascade.rate_distortion import UNSEEN, RateDistortion, first_price, prices
from foveate.pipeline.cascade.top_k import THREE_STAGES, TopK
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.pruning import Allocator, Costs, Prices
from foveate.pipeline.quadtree import Quadtree


def problem(geometry, budget, errors, weight=None, kept=None, score=None):
    rows, columns = geometry.grid
    weight = np.ones((rows, columns), np.float32) if weight is None else weight
    nothing = np.zeros((rows, columns), np.float32)
    channels = {"saliency": nothing, "motion": nothing}
    return Problem(
        geometry, budget, weight * geometry.inside, errors, errors, kept, channels, nothing if score is None else score
    )


def random_errors(rng, grid, scale=1e5, top=4):
    """Errors of LOD 1 .. top that grow with the LOD, as box means' do."""
    steps = rng.random((top, *grid)) ** 4 * scale
    return tuple(np.cumsum(steps, axis=0).astype(np.float32))


def covered(tokens, geometry):
    """How many different tokens lie on each cell."""
    count = np.zeros(geometry.grid, int)
    for lod, row, column in set(zip(*(values.tolist() for values in tokens), strict=True)):
        side = 1 << lod
        count[row * side : (row + 1) * side, column * side : (column + 1) * side] += 1
    return count


def coarsest(size, budget, merge):
    """The least LOD of which ``budget`` tokens, ``merge`` x ``merge`` at a time, cover a picture; at least 4."""
    return next(
        lod
        for lod in range(4, 20)
        if math.prod(math.ceil(side / (16 * merge * 2**lod)) for side in size) * merge**2 <= budget
    )


def spent(tokens, errors, weight, kept):
    """The weighted error the reader is left with."""
    total, seen = 0.0, np.zeros(weight.shape, bool)
    for lod, row, column in zip(*(values.tolist() for values in tokens), strict=True):
        side = 1 << lod
        under = np.s_[row * side : (row + 1) * side, column * side : (column + 1) * side]
        seen[under] = True
        if lod:
            total += float((errors[lod - 1][under] * weight[under]).sum(dtype=np.float64))
    return total + float((np.where(seen, 0, kept) * weight).sum(dtype=np.float64)) if kept is not None else total


sizes = st.tuples(st.integers(1, 900), st.integers(1, 700))


@settings(max_examples=80, deadline=None)
@given(sizes, st.integers(1, 400), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([1, 2, 3]))
def test_never_over_budget_and_no_two_tokens_on_one_cell(size, budget, seed, stream, merge):
    rng = np.random.default_rng(seed)
    geometry = Geometry(*size)
    strategy = RateDistortion(64.0, merge)
    budget = max(budget, merge**2)
    for _ in range(3):
        kept = (rng.random(geometry.grid) ** 6 * 1e6).astype(np.float32) if stream else None
        weight = rng.random(geometry.grid).astype(np.float32)
        errors = random_errors(rng, geometry.grid, top=coarsest(size, budget, merge))
        tokens = strategy.allocate(problem(geometry, budget, errors, weight, kept))
        assert len(tokens.lod) <= budget
        count = covered(tokens, geometry)
        assert count.max(initial=0) <= 1
        for lod, row, column in zip(*tokens, strict=True):
            under = np.s_[row << lod : (row + 1) << lod, column << lod : (column + 1) << lod]
            assert geometry.inside[under].any()
        if not stream:
            assert (count[geometry.inside] == 1).all()  # the whole picture is covered


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(40, 600))
def test_the_budget_is_spent_up_to_three_tokens(seed, budget):
    rng = np.random.default_rng(seed)
    geometry = Geometry(1280, 720)
    tokens = RateDistortion(0.0).allocate(problem(geometry, budget, random_errors(rng, geometry.grid)))
    assert budget - 3 <= len(tokens.lod) <= budget


def test_equal_costs_do_not_waste_the_budget():
    geometry = Geometry(512, 512)
    errors = tuple(np.full(geometry.grid, value, np.float32) for value in (1e3, 2e3, 3e3, 4e3))
    tokens = RateDistortion(0.0).allocate(problem(geometry, 273, errors))
    assert 270 <= len(tokens.lod) <= 273


def corners(costs):
    """The token counts at the corners of the lower convex hull of {count: least cost}: best for some price."""
    hull = []
    for point in sorted(costs.items()):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (point[0] - hull[-2][0]) >= (point[1] - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        if not hull or point[1] < hull[-1][1]:
            hull.append(point)
    return [count for count, _ in hull]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_tree_is_the_best_of_all_with_as_many_tokens(seed, stream):
    """On one 32x32 node all trees can be listed: one token of LOD 1 or more, or up to four of LOD 0."""
    rng = np.random.default_rng(seed)
    geometry = Geometry(32, 32)
    errors = tuple(values * 100 for values in random_errors(rng, geometry.grid))
    weight = (0.1 + rng.random(geometry.grid)).astype(np.float32)
    kept = (1e3 + rng.random(geometry.grid) * 1e7).astype(np.float32) if stream else None
    best = {1: float((errors[0] * weight).sum(dtype=np.float64)), 4: 0.0}
    if kept is not None:
        losses = np.sort((kept * weight).ravel().astype(np.float64))
        for count in range(5):  # tokens on the cells with the greatest losses
            best[count] = min(best.get(count, np.inf), float(losses[: 4 - count].sum()))
    for budget in range(1, 5):
        tokens = RateDistortion(1.0).allocate(problem(geometry, budget, errors, weight, kept))
        count = len(tokens.lod)
        assert count <= budget
        reachable = [corner for corner in corners(best) if corner <= budget]
        assert count >= max(reachable, default=0)
        if count in reachable:
            assert spent(tokens, errors, weight, kept) <= best[count] * (1 + 1e-5) + 1.0


def test_detail_goes_where_the_weight_is():
    geometry = Geometry(768, 512)
    rng = np.random.default_rng(3)
    errors = random_errors(rng, geometry.grid)
    weight = np.full(geometry.grid, 0.05, np.float32)
    weight[:8, :8] = 1.0
    tokens = RateDistortion(64.0).allocate(problem(geometry, 100, errors, weight))
    fine = tokens.lod == 0
    assert fine.sum() >= 16  # of the 64 heavy cells, with 6 roots to cover on 100 tokens
    assert (tokens.row[fine] < 8).mean() > 0.9
    assert (tokens.column[fine] < 8).mean() > 0.9


def test_a_reader_that_lacks_nothing_gets_nothing():
    geometry = Geometry(640, 480)
    errors = random_errors(np.random.default_rng(0), geometry.grid)
    kept = np.zeros(geometry.grid, np.float32)
    assert len(RateDistortion(64.0).allocate(problem(geometry, 273, errors, kept=kept)).lod) == 0
    kept[3, 7] = 1e5
    tokens = RateDistortion(64.0).allocate(problem(geometry, 273, errors, kept=kept))
    assert (tokens.lod.tolist(), tokens.row.tolist(), tokens.column.tolist()) == ([0], [3], [7])


def test_differences_nobody_can_see_cost_no_token():
    geometry = Geometry(640, 480)
    errors = tuple(np.full(geometry.grid, 1e4, np.float32) for _ in range(4))
    kept = np.full(geometry.grid, 60.0, np.float32)
    assert len(RateDistortion(64.0).allocate(problem(geometry, 273, errors, kept=kept)).lod) == 0
    assert len(RateDistortion(1.0).allocate(problem(geometry, 273, errors, kept=kept)).lod) == 273


def test_an_empty_reader_gets_the_whole_picture_first():
    geometry = Geometry(1920, 1080)
    errors = random_errors(np.random.default_rng(0), geometry.grid, 1e4)
    kept = np.full(geometry.grid, UNSEEN, np.float32)
    tokens = RateDistortion(64.0).allocate(problem(geometry, 273, errors, kept=kept))
    assert (covered(tokens, geometry)[geometry.inside] == 1).all()


def test_detail_goes_where_the_weight_is_also_among_coarse_tokens():
    geometry = Geometry(7680, 4320)  # 510 tokens of LOD 4, 135 of LOD 5
    weight = np.full(geometry.grid, 0.05, np.float32)
    weight[:64, :64] = 1.0
    errors = random_errors(np.random.default_rng(0), geometry.grid, 1e3, top=5)
    tokens = RateDistortion(64.0).allocate(problem(geometry, 273, errors, weight))
    assert 270 <= len(tokens.lod) <= 273
    heavy = (tokens.row << tokens.lod < 64) & (tokens.column << tokens.lod < 64)
    assert tokens.lod[heavy].mean() < 4 < tokens.lod[~heavy].mean()
    with pytest.raises(ValueError, match="errors must go up to LOD 5 to cover the picture with 273 units, got 4"):
        RateDistortion(64.0).allocate(problem(geometry, 273, errors[:4], weight))


def test_three_stage_takes_the_highest_scores_at_full_detail():
    geometry = Geometry(1920, 1080)
    score = np.zeros(geometry.grid, np.float32)
    score[10:20, 30:50] = 1.0
    errors = tuple(np.full(geometry.grid, 1e5, np.float32) for _ in range(4))
    asked = problem(geometry, 200, errors, score=score)
    asked.channels["saliency"][10:20, 30:50] = 1.0
    tokens = TopK(THREE_STAGES, 64.0).allocate(asked)
    assert len(tokens.lod) == 200
    assert set(tokens.lod.tolist()) == {0}
    assert set(zip(tokens.row.tolist(), tokens.column.tolist(), strict=True)) == set(
        itertools.product(range(10, 20), range(30, 50))
    )


@pytest.mark.parametrize(("merge", "count"), [(1, 16), (2, 16), (3, 36)])  # the last in 2x2 groups of 3x3 tokens
def test_three_stage_never_selects_the_padding_or_more_than_there_is(merge, count):
    geometry = Geometry(64, 64)
    errors = tuple(np.zeros(geometry.grid, np.float32) for _ in range(4))
    tokens = TopK(THREE_STAGES, 64.0, merge).allocate(problem(geometry, 273, errors))
    assert len(tokens.lod) == count
    assert (covered(tokens, geometry) == 1).all()


def plain_tree(price, leaf, kept, inside, level, row, column):
    """(cost, tokens) of the best tree under a node, by the definition, in float64."""
    side = 1 << level
    if not inside[row * side : (row + 1) * side, column * side : (column + 1) * side].any():
        return 0.0, 0
    if level == 0:
        return (kept[row, column], 0) if kept is not None and kept[row, column] <= price else (price, 1)
    parts = [
        plain_tree(price, leaf, kept, inside, level - 1, 2 * row + i, 2 * column + j) for i in (0, 1) for j in (0, 1)
    ]
    cost, tokens = sum(part[0] for part in parts), sum(part[1] for part in parts)
    alone = float(leaf[level][row * side : (row + 1) * side, column * side : (column + 1) * side].sum()) + price
    return (alone, 1) if alone < cost or (alone == cost and tokens > 1) else (cost, tokens)


def whole_groups(values, merge):
    """Sums over the groups of merge x merge cells, in float64; what a group lacks of cells counts nothing."""
    rows, columns = (-(-length // merge) for length in values.shape)
    parts = itertools.product(range(rows), range(columns))
    sums = [values[merge * r : merge * (r + 1), merge * c : merge * (c + 1)].sum(dtype=np.float64) for r, c in parts]
    return np.array(sums).reshape(rows, columns)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 600),
    st.integers(1, 600),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.integers(1, 120),
    st.sampled_from([1, 2, 3]),
)
@example(600, 550, 1, False, 1, 1)  # one token of LOD 6, over 3 x 3 of LOD 4
@example(600, 550, 1, False, 3, 1)
@example(520, 100, 1, True, 2, 1)
@example(1600, 800, 1, False, 2, 3)  # two groups of LOD 5, over 3 x 2 of LOD 4
def test_the_lowest_price_that_fits_is_taken_and_its_tree_is_the_best(width, height, seed, stream, budget, merge):
    """``budget`` counts units, which are whole groups of merge x merge cells."""
    rng = np.random.default_rng(seed)
    geometry = Geometry(width, height)
    top = coarsest((width, height), budget * merge**2, merge)
    errors = random_errors(rng, geometry.grid, top=top)
    weight = ((0.1 + rng.random(geometry.grid)) * geometry.inside).astype(np.float32)
    kept = (rng.random(geometry.grid) ** 4 * 1e6).astype(np.float32) if stream else None
    inside = whole_groups(geometry.inside, merge) > 0
    allocator = Allocator(Quadtree(inside), geometry.grid, merge)
    guess = int(rng.integers(0, len(prices())))
    costs = Costs(weight, errors, kept)
    chosen = allocator.allocate(costs, budget, Prices(prices(), 0, guess), np.inf)  # no step gains enough to be taken
    doubles = [None, *(whole_groups(error.astype(float) * weight, merge) for error in errors)]
    losses = None if kept is None else whole_groups(kept.astype(float) * weight, merge)

    def best(price):
        side = 1 << top
        roots = range(-(-inside.shape[0] // side)), range(-(-inside.shape[1] // side))
        padded = [None if v is None else np.pad(v, ((0, side), (0, side))) for v in (*doubles, losses)]
        within = np.pad(inside, ((0, side), (0, side)))
        parts = [plain_tree(price, padded[:-1], padded[-1], within, top, *root) for root in itertools.product(*roots)]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)

    count, price = len(chosen.lod), float(prices()[chosen.price])
    cost, tokens = best(price)
    # float32 sums of up to 256 errors: a tie may fall either way.
    assert (
        abs(spent(chosen[:3], doubles[1:], np.ones(inside.shape), losses) + price * count - cost) <= 1e-4 * cost + 1e-3
    )
    assert count <= budget
    assert abs(tokens - count) <= 3
    if chosen.price > 0:
        assert best(float(prices()[chosen.price - 1]))[1] >= budget - 2


def test_what_came_before_does_not_matter():
    geometry, rng = Geometry(640, 360), np.random.default_rng(4)
    frames = [problem(geometry, 100, random_errors(rng, geometry.grid, 10.0**scale)) for scale in (5, 2, 7, 3)]
    strategy = RateDistortion(1.0)
    for frame in frames:
        remembered, fresh = strategy.allocate(frame), RateDistortion(1.0).allocate(frame)
        assert all((a == b).all() for a, b in zip(remembered, fresh, strict=True))


@pytest.mark.parametrize(("gain", "power"), [(0.0, -10), (1.0, 0), (64.0, 6), (1e30, 50)])
def test_no_price_below_the_least_gain(gain, power):
    assert float(prices()[first_price(gain)]) == 2.0**power


def test_equal_inputs_give_equal_tokens():
    geometry = Geometry(1280, 720)
    runs = []
    for _ in range(2):
        strategy, rng = RateDistortion(64.0), np.random.default_rng(9)
        runs.append([strategy.allocate(problem(geometry, 273, random_errors(rng, geometry.grid))) for _ in range(4)])
    for first, second in zip(*runs, strict=True):
        assert all((a == b).all() for a, b in zip(first, second, strict=True))
