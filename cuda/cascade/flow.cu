// Dense inverse search of the changed cells, one patch per cell, by one warp (after Kroeger et al., "Fast optical flow
// using dense inverse search", 2016, section 2.1): the gradient is taken once, in the new picture, and the patch is
// followed into the old one. First on level 4, where a patch spans 128 pixels, then on the flow level. See
// flow_reference.py.
//
// A block takes the four cells of a written tile; on keyframes nothing is searched.
#include "picture.cuh"
#include "spec/flow.h"

static_assert(PATCH * PATCH == 2 * WARP, "each lane has two samples of a patch");

const int THREADS = 128;
static_assert(THREADS == CELLS_PER_TILE * CELLS_PER_TILE * WARP, "a warp for each cell of a tile");

struct Flow {
    const FrameState* frame;
    const int* dirty;          // [frame.dirty_count]: tiles written
    const float* fine;         // luma of the flow level, now
    const float* coarse;       // luma of level 4, now
    const float* fine_before;  // the same of the frame before
    const float* coarse_before;
    float* flow;        // [3][cells]: dx, dy in cells, and confidence
    int rows, columns;  // cells
    int side;           // samples of the flow level along a cell
};

struct Motion {
    float dx, dy;
};

// Where lane `lane`'s sample `k` (0 or 1) of the patch with its first sample at (top, left) lies.
__device__ inline Place patch_place(int top, int left, int lane, int k)
{
    int index = lane + WARP * k;
    Place place = {top + index / PATCH, left + index % PATCH};
    return place;
}

// Follows the patch at (top, left) of `now` into `before`, from `start` on. A search that strays farther than the patch
// is wide is given up.
__device__ inline Motion descend(const Picture& now, const Picture& before, int top, int left, Motion start, int lane)
{
    float value[2], across[2], down[2];
    Place place[2];
    for (int k = 0; k < 2; k++) {
        place[k] = patch_place(top, left, lane, k);
        int row = place[k].row, column = place[k].column;
        value[k] = sample(now, row, column);
        across[k] = 0.5f * (sample(now, row, column + 1) - sample(now, row, column - 1));
        down[k] = 0.5f * (sample(now, row + 1, column) - sample(now, row - 1, column));
    }
    // Patches are compared less their means, so that a change of light is no motion.
    const float count = PATCH * PATCH;
    float mean_across = warp_sum(across[0] + across[1]) / count, mean_down = warp_sum(down[0] + down[1]) / count;
    for (int k = 0; k < 2; k++) {
        across[k] -= mean_across;
        down[k] -= mean_down;
    }
    float xx = warp_sum(across[0] * across[0] + across[1] * across[1]);
    float xy = warp_sum(across[0] * down[0] + across[1] * down[1]);
    float yy = warp_sum(down[0] * down[0] + down[1] * down[1]);
    float determinant = xx * yy - xy * xy;
    if (!(determinant > LEAST_DETAIL)) return start;
    Motion motion = start;
    for (int step = 0; step < STEPS; step++) {
        float x = 0.0f, y = 0.0f;
        for (int k = 0; k < 2; k++) {
            float there = between(before, (float)place[k].row + motion.dy, (float)place[k].column + motion.dx);
            x += across[k] * (there - value[k]);
            y += down[k] * (there - value[k]);
        }
        x = warp_sum(x);
        y = warp_sum(y);
        float dx = (yy * x - xy * y) / determinant, dy = (xx * y - xy * x) / determinant;
        motion.dx -= dx;
        motion.dy -= dy;
        float far = fmaxf(fabsf(motion.dx - start.dx), fabsf(motion.dy - start.dy));
        if (!(far <= (float)PATCH)) return start;
        if (fmaxf(fabsf(dx), fabsf(dy)) < LEAST_STEP) break;
    }
    return motion;
}

// Sum of squared differences of the patch, for `motion`.
__device__ inline float patch_error(const Picture& now, const Picture& before, int top, int left, Motion motion,
                                    int lane)
{
    float sum = 0.0f;
    for (int k = 0; k < 2; k++) {
        Place place = patch_place(top, left, lane, k);
        float there = between(before, (float)place.row + motion.dy, (float)place.column + motion.dx);
        float difference = there - sample(now, place.row, place.column);
        sum += difference * difference;
    }
    return warp_sum(sum);
}

// By one warp, for one cell.
__device__ inline void search(const Flow& p, int row, int column, int lane)
{
    Picture coarse_now = {p.coarse, p.rows, p.columns}, coarse_before = {p.coarse_before, p.rows, p.columns};
    Picture fine_now = {p.fine, p.rows * p.side, p.columns * p.side};
    Picture fine_before = {p.fine_before, p.rows * p.side, p.columns * p.side};
    float side = (float)p.side;
    Motion none = {0.0f, 0.0f};
    Motion motion = descend(coarse_now, coarse_before, row - PATCH / 2, column - PATCH / 2, none, lane);
    motion.dx *= side;
    motion.dy *= side;
    int top = row * p.side + p.side / 2 - PATCH / 2, left = column * p.side + p.side / 2 - PATCH / 2;
    motion = descend(fine_now, fine_before, top, left, motion, lane);
    float moved = patch_error(fine_now, fine_before, top, left, motion, lane);
    if (!(moved < patch_error(fine_now, fine_before, top, left, none, lane))) motion = none;
    float doubt = 0.0f;
    if (lane < p.side * p.side) {
        int y = row * p.side + lane / p.side, x = column * p.side + lane % p.side;
        doubt = fabsf(between(fine_before, (float)y + motion.dy, (float)x + motion.dx) - sample(fine_now, y, x));
    }
    doubt = warp_sum(doubt) / (side * side);
    if (lane) return;
    int cells = p.rows * p.columns, cell = row * p.columns + column;
    p.flow[cell] = motion.dx / side;
    p.flow[cells + cell] = motion.dy / side;
    p.flow[2 * cells + cell] = fmaxf(1.0f - doubt * DOUBT, 0.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS) flow(const __grid_constant__ Flow p)
{
    FrameState frame = *p.frame;
    if (frame.unchanged || frame.keyframe) return;
    int tile_columns = p.columns / 2, warp = threadIdx.x / WARP;
    for (int i = blockIdx.x; i < frame.dirty_count; i += gridDim.x) {
        int tile = p.dirty[i];
        int row = 2 * (tile / tile_columns) + warp / 2, column = 2 * (tile % tile_columns) + warp % 2;
        search(p, row, column, threadIdx.x % WARP);
    }
}
