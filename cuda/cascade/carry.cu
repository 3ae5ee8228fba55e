// Warps every cell's maps from the previous frame to this one along the flow, scores the cell, and weights its errors.
//
// One thread per cell, unit by unit in the order of the quadtrees, so that the weighted errors of a node's cells are
// summed where they are made, in the order of pruning.c. On unchanged frames only the cells' ages move on.
// Results equal pipeline/cascade/scores.py, cache.py and token_age.py bit for bit, given the same flow and channels,
// except that a map warped between cells may differ in its last bits. carry_linear scores by a weighted sum of channels
// instead, as pipeline/cascade/linear_scorer.py.
#include "carry.cuh"
#include "picture.cuh"
#include "spec/local_channels.h"
#include "spec/memory.h"
#include "spec/score.h"

struct Warped {
    float maps[MAPS];
    float confidence;  // of the flow
    int valid;         // the maps may be reused
};

// Where the cell's content was in the previous frame; unchanged cells have not moved.
__device__ inline void follow(const Carry& p, const Cell& cell, float* dx, float* dy, float* confidence)
{
    *dx = *dy = 0.0f;
    *confidence = 1.0f;
    if (p.dense_flow || cell.changed) {
        *dx = p.flow[cell.index];
        *dy = p.flow[cell.count + cell.index];
        *confidence = p.flow[2 * cell.count + cell.index];
        return;
    }
    p.flow[cell.index] = p.flow[cell.count + cell.index] = 0.0f;
    p.flow[2 * cell.count + cell.index] = 1.0f;
}

__device__ inline Warped warp_cell(const Carry& p, const FrameState& frame, int from, const Cell& cell)
{
    const Grid& grid = p.grid;
    Warped warped;
    for (int map = 0; map < MAPS; map++) warped.maps[map] = map == SINCE ? __int_as_float(p.max_age) : 0.0f;
    warped.confidence = 0.0f;
    warped.valid = 0;
    if (frame.keyframe || !p.cache_enabled) return warped;
    float dx = 0.0f, dy = 0.0f, confidence = 1.0f;
    if (frame.changed_count) {
        follow(p, cell, &dx, &dy, &confidence);
        warped.confidence = confidence;
    }
    float x = (float)cell.column + dx, y = (float)cell.row + dy;
    int moved = dx != 0.0f || dy != 0.0f, nearest_x = __float2int_rn(x), nearest_y = __float2int_rn(y);
#pragma unroll
    for (int map = 0; map < MAPS; map++) {
        Picture before = {p.maps + (2 * map + from) * cell.count, grid.rows, grid.columns};
        if (!moved) warped.maps[map] = before.samples[cell.index];
        else warped.maps[map] = map < LINEAR_MAPS ? between(before, y, x) : sample(before, nearest_y, nearest_x);
    }
    int within = x > -0.5f && y > -0.5f && x < (float)grid.columns - 0.5f && y < (float)grid.rows - 0.5f;
    warped.valid = within && confidence >= p.confidence && __float_as_int(warped.maps[SINCE]) < p.max_age;
    return warped;
}

__device__ inline float attention_of(const Carry& p, const Cell& cell, const Warped& warped)
{
    return fminf(ATTENTION_KEEP * warped.maps[ATTENTION] + p.attention_input[cell.index], 1.0f);
}

__device__ inline float gaze_of(const Carry& p, const Cell& cell)
{
    return fmaxf(GAZE_KEEP * p.gaze[cell.index], p.gaze_input[cell.index]);
}

// The cell's maps as the next frame finds them.
__device__ inline void remember(const Carry& p, int to, const Cell& cell, Warped warped, float score, float saliency)
{
    p.attention_before[cell.index] = warped.maps[ATTENTION];
    float attention = attention_of(p, cell, warped);
    p.gaze[cell.index] = gaze_of(p, cell);
    warped.maps[PREV_RELEVANCE] = score;
    warped.maps[PREV_SALIENCY] = saliency;
    warped.maps[FIXATION] *= FIXATION_KEEP;
    warped.maps[ATTENTION] = attention;
    warped.maps[SINCE] = __int_as_float(warped.valid ? __float_as_int(warped.maps[SINCE]) + 1 : 0);
#pragma unroll
    for (int map = 0; map < MAPS; map++) p.maps[(2 * map + to) * cell.count + cell.index] = warped.maps[map];
}

__device__ inline void keep_pictures(const Carry& p, const Cell& cell)
{
    int width = p.grid.columns * p.side;
    p.coarse_before[cell.index] = p.coarse[cell.index];
    for (int y = 0; y < p.side; y++)
        for (int x = 0; x < p.side; x++) {
            int at = (cell.row * p.side + y) * width + cell.column * p.side + x;
            p.fine_before[at] = p.fine[at];
        }
}

// With a query: information and perspective in balance with the participation.
__device__ inline float focused(float information, float perspective, float participation)
{
    float focus = 1.0f - FOCUS_LOSS * participation;
    return (focus * participation) * perspective + (1.0f - focus) * (information * information);
}

// A channel that the linear scorer weighs.
__device__ inline float weighed(const Carry& p, const Cell& cell, const Warped& warped, const Term& term)
{
    switch (term.source) {
    case PREV_RELEVANCE:
        return warped.maps[PREV_RELEVANCE];
    case PREV_SALIENCY:
        return warped.maps[PREV_SALIENCY];
    case FIXATION:
        return warped.maps[FIXATION];
    case ATTENTION:
        return warped.maps[ATTENTION];
    case NEW_ATTENTION:
        return attention_of(p, cell, warped);
    case NEW_GAZE:
        return gaze_of(p, cell);
    default:
        return term.map[cell.index];
    }
}

__device__ inline float linear_score(const Carry& p, const Cell& cell, const Warped& warped)
{
    float total = p.linear.bias;
    for (int i = 0; i < p.linear.count; i++)
        total += p.linear.terms[i].weight * weighed(p, cell, warped, p.linear.terms[i]);
    return fminf(fmaxf(total, 0.0f), 1.0f);
}

// Updates one cell and returns the weights of its errors.
template <int LINEAR>
__device__ inline ErrorWeights weigh(const Carry& p, const FrameState& frame, const Cell& cell, int* valid)
{
    int from = p.cascade->turn, anew = frame.new_scene || cell.changed;
    const float* channel = p.channels + cell.index;
    if (anew) p.pending[cell.index] = 1;
    p.age[cell.index] = anew ? 0 : p.age[cell.index] + 1;
    Warped warped = warp_cell(p, frame, from, cell);
    keep_pictures(p, cell);
    float distance = channel[EDGE_DISTANCE * cell.count], saliency = channel[SALIENCY * cell.count];
    float participation = p.participation ? p.participation[cell.index] : 0.0f;
    float wanted = distance < 1.0f || cell.changed || participation > 0.0f ? 1.0f : 0.0f;
    float detail = fmaxf(channel[EDGES * cell.count], channel[EDGES_INVERTED * cell.count]);
    float information = (INFORMATION_EDGES * detail + INFORMATION_HIGHPASS * channel[HIGHPASS * cell.count])
                        + INFORMATION_DISTANCE * (1.0f - distance);
    float pull = PERSPECTIVE_SALIENCY * saliency + PERSPECTIVE_MOTION * channel[MOTION * cell.count];
    float perspective = pull * (1.0f - ECCENTRICITY_LOSS * p.eccentricity[cell.index]);
    information *= wanted;
    perspective *= wanted;
    float score =
        p.participation ? focused(information, perspective, participation) : 0.5f * (information + perspective);
    if (LINEAR) score = linear_score(p, cell, warped) * wanted;
    float trust = warped.valid && cell.changed && !p.query_changed ? warped.confidence : 0.0f;
    score += trust * p.blend * (warped.maps[PREV_RELEVANCE] - score);
    remember(p, 1 - from, cell, warped, score, saliency);
    p.scores[cell.index] = score;
    p.scores[cell.count + cell.index] = information;
    p.scores[2 * cell.count + cell.index] = perspective;
    *valid = warped.valid;
    ErrorWeights weights = error_weights_of(p, cell, weight_of(p, cell, score));
    if (p.reader_error && p.participation && !frame.new_scene) weights.stale = stale_weight(p, cell, participation);
    return weights;
}

// Sum over the unit's cells, which lie in neighbouring lanes: each column's first, then these from left to right. Right
// where the lane is the unit's first.
__device__ inline float over_unit(float value, int merge)
{
    if (merge == 1) return value;
    if (merge == 2) {
        value += __shfl_down_sync(EVERYONE, value, 2);
        return value + __shfl_down_sync(EVERYONE, value, 1);
    }
    float second = __shfl_down_sync(EVERYONE, value, 4), third = __shfl_down_sync(EVERYONE, value, 8);
    float column = (value + second) + third;
    second = __shfl_down_sync(EVERYONE, column, 1), third = __shfl_down_sync(EVERYONE, column, 2);
    return (column + second) + third;
}

// The sums over the block's nodes of level 2, by 16 threads each: four for each level, one per child.
__device__ inline void write_costs(const Carry& p, const float (*products)[THREADS], int units)
{
    int level = threadIdx.x / 4 % 4 + 1, child = threadIdx.x % 4, node = threadIdx.x / 16;
    int exists = 16 * node < units, at = blockIdx.x * (units / 16) + node;
    float quarter = exists ? over_four(products[level] + 16 * node + 4 * child) : 0.0f, parts[4];
    for (int i = 0; i < 4; i++) parts[i] = __shfl_sync(EVERYONE, quarter, (threadIdx.x % WARP & ~3) + i);
    if (!exists) return;
    float sum = over_four(parts);
    if (level == 1) p.leaf1[4 * at + child] = quarter;
    if (child) return;
    if (level == 2) p.leaf2[at] = sum;
    if (level == 3) p.leaf3[at] = sum;
    if (level == 4) p.leaf4[at] = sum;
}

template <int LINEAR> __device__ inline void carry_cells(const Carry& p)
{
    __shared__ float products[TOP_LEVEL + 1][THREADS];
    const Grid& grid = p.grid;
    int each = threads_of_unit(grid), units = THREADS / each, unit = threadIdx.x / each;
    Cell cell = cell_of(p, blockIdx.x * THREADS + threadIdx.x);
    FrameState frame = *p.frame;
    if (frame.unchanged) {
        if (cell.exists) p.age[cell.index] += 1;
        return;
    }
    int valid = 1;
    ErrorWeights weights = {};
    if (cell.exists) weights = weigh<LINEAR>(p, frame, cell, &valid);
    float residual = 0.0f;
    for (int level = 0; level <= TOP_LEVEL; level++) {
        if (cell.exists) residual = residual_at(p, cell, level, residual);
        float error = cell.exists ? error_of(p, cell, level, residual, weights) : 0.0f;
        float sum = over_unit(error * weights.weight, grid.merge);
        if (threadIdx.x % each == 0) products[level][unit] = sum;
    }
    int recomputed = __syncthreads_count(cell.inside && !valid);
    if (threadIdx.x < units) p.kept[blockIdx.x * units + threadIdx.x] = products[0][threadIdx.x];
    write_costs(p, products, units);
    if (threadIdx.x == 0 && recomputed) atomicAdd(&p.cascade->recomputed, recomputed);
}

extern "C" __global__ void __launch_bounds__(THREADS) carry(const __grid_constant__ Carry p) { carry_cells<0>(p); }

extern "C" __global__ void __launch_bounds__(THREADS) carry_linear(const __grid_constant__ Carry p)
{
    carry_cells<1>(p);
}

// A plane's samples of a level from TOP_LEVEL on.
__device__ inline Picture samples_of(const Carry& p, int plane, int level)
{
    const Grid& grid = p.grid;
    if (level == TOP_LEVEL) return {p.cells[plane], grid.rows, grid.columns};
    const float* samples = p.samples[plane] + upper_start(grid.rows, grid.columns, level);
    return {samples, upper_length(grid.rows, level), upper_length(grid.columns, level)};
}

// Sample (row, column) of a picture enlarged bilinearly by 2.
__device__ inline float doubled(const Picture& picture, int row, int column)
{
    int near_row = row / 2, far_row = near_row + (row % 2 ? 1 : -1);
    int near_column = column / 2, far_column = near_column + (column % 2 ? 1 : -1);
    float near = sample(picture, near_row, near_column) * 0.75f + sample(picture, far_row, near_column) * 0.25f;
    float far = sample(picture, near_row, far_column) * 0.75f + sample(picture, far_row, far_column) * 0.25f;
    return near * 0.75f + far * 0.25f;
}

// What a level above TOP_LEVEL adds to the cell's error: how far the level below it is from its enlargement.
__device__ inline float further_error(const Carry& p, const Cell& cell, int level)
{
    int steps = level - 1 - TOP_LEVEL, row = cell.row >> steps, column = cell.column >> steps;
    float squares[3];
#pragma unroll
    for (int i = 0; i < 3; i++) {
        Picture fine = samples_of(p, i, level - 1);
        float difference = sample(fine, row, column) - doubled(samples_of(p, i, level), row, column);
        squares[i] = difference * difference;
    }
    return (float)(CELL * CELL) * ((squares[0] + CHROMA_WEIGHT * squares[1]) + CHROMA_WEIGHT * squares[2]);
}

// The sum of `values`, [count], over the tree that they are the lowest nodes of; known to thread 0. Overwrites them.
__device__ inline float tree_sum(float* values, int count)
{
    for (; count > 1; count /= 4) {
        __syncthreads();
        float sum = threadIdx.x < count / 4 ? over_four(values + 4 * threadIdx.x) : 0.0f;
        __syncthreads();
        if (threadIdx.x < count / 4) values[threadIdx.x] = sum;
    }
    __syncthreads();
    return values[0];
}

// Behind `carry`, where there are levels above TOP_LEVEL: their weighted errors, summed over each block's cells.
extern "C" __global__ void __launch_bounds__(THREADS) carry_upper(const __grid_constant__ Carry p)
{
    __shared__ float products[THREADS];
    const Grid& grid = p.grid;
    int each = threads_of_unit(grid), units = THREADS / each;
    if (p.frame->unchanged) return;
    Cell cell = cell_of(p, blockIdx.x * THREADS + threadIdx.x);
    ErrorWeights weights = {};
    if (cell.exists) weights = error_weights_of(p, cell, weight_of(p, cell, p.scores[cell.index]));
    float residual = 0.0f;
    for (int level = 1; cell.exists && level <= TOP_LEVEL; level++) residual = residual_at(p, cell, level, residual);
    float painted = cell.exists ? p.errors[(TOP_LEVEL - 1) * cell.count + cell.index] : 0.0f;
    for (int level = TOP_LEVEL + 1; level <= grid.top; level++) {
        if (cell.exists) residual = residual_at(p, cell, level, residual);
        if (cell.exists) painted += further_error(p, cell, level);
        float error = cell.exists ? error_with_prior(p, painted, residual, level, weights) : 0.0f;
        float sum = over_unit(error * weights.weight, grid.merge);
        if (threadIdx.x % each == 0) products[threadIdx.x / each] = sum;
        float share = tree_sum(products, units);
        if (threadIdx.x == 0) p.shares[(level - TOP_LEVEL - 1) * gridDim.x + blockIdx.x] = share;
        __syncthreads();
    }
}

// The sum over the blocks of carry_upper that make a root: 1, 4 or 16, in the order of its nodes.
__device__ inline float over_root(const float* shares, int blocks)
{
    if (blocks == 1) return shares[0];
    if (blocks == 4) return over_four(shares);
    float quarters[4];
    for (int i = 0; i < 4; i++) quarters[i] = over_four(shares + 4 * i);
    return over_four(quarters);
}

// Behind `carry_upper`, by one block: the weighted errors of all nodes above TOP_LEVEL.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) sum_upper(const __grid_constant__ Carry p)
{
    const Grid& grid = p.grid;
    int each = threads_of_unit(grid), blocks = grid.roots * each;  // of carry_upper
    if (p.frame->unchanged) return;
    for (int level = TOP_LEVEL + 1; level <= grid.top; level++) {
        const float* shares = p.shares + (level - TOP_LEVEL - 1) * blocks;
        for (int i = threadIdx.x; i < grid.roots; i += blockDim.x) p.sums[i] = over_root(shares + each * i, each);
        const float* from = p.sums;
        float* to = p.sums + grid.roots;
        for (int above = TOP_LEVEL + 1; above <= level; above++) {
            __syncthreads();
            int rows = upper_length(grid.root_rows, above), columns = upper_length(grid.root_columns, above);
            int rows_below = upper_length(grid.root_rows, above - 1);
            int columns_below = upper_length(grid.root_columns, above - 1);
            for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
                float children[4];
                for (int k = 0; k < 4; k++) {
                    int row = 2 * (i / columns) + k / 2, column = 2 * (i % columns) + k % 2;
                    children[k] =
                        row < rows_below && column < columns_below ? from[row * columns_below + column] : 0.0f;
                }
                to[i] = over_four(children);
            }
            from = to;
            to += rows * columns;
        }
        __syncthreads();
        int start = upper_start(grid.root_rows, grid.root_columns, level);
        int nodes = upper_length(grid.root_rows, level) * upper_length(grid.root_columns, level);
        for (int i = threadIdx.x; i < nodes; i += blockDim.x) p.upper[start + i] = from[i];
        __syncthreads();
    }
}
