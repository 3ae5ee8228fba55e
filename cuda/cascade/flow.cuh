// Dense inverse search, one patch per cell, by one warp (after Kroeger et al., "Fast optical flow using dense inverse
// search", 2016, section 2.1): the gradient is taken once, in the new picture, and the patch is followed into the old one.
// First on level 4, where a patch spans 128 pixels, then on the flow level.
#pragma once

#include "cascade.cuh"

const int PATCH = 8;              // samples along a patch; each lane has two of them
const int STEPS = 10;             // at most, per level
const float LEAST_STEP = 0.02f;   // samples; a smaller one ends the search
const float LEAST_DETAIL = 16.0f; // determinant of the gradients' sums below which nothing can be followed
const float DOUBT = 0.125f;       // confidence lost per grey value of difference

struct Picture {
    const float* samples;
    int rows, columns;
};

struct Motion {
    float dx, dy;
};

__device__ inline float sample(const Picture& picture, int row, int column)
{
    row = min(max(row, 0), picture.rows - 1);
    column = min(max(column, 0), picture.columns - 1);
    return picture.samples[row * picture.columns + column];
}

__device__ inline float between(const Picture& picture, float row, float column)
{
    row = fminf(fmaxf(row, 0.0f), (float)(picture.rows - 1));
    column = fminf(fmaxf(column, 0.0f), (float)(picture.columns - 1));
    int top = (int)row, left = (int)column;
    float down = row - (float)top, across = column - (float)left;
    float upper = sample(picture, top, left), lower = sample(picture, top + 1, left);
    upper += across * (sample(picture, top, left + 1) - upper);
    lower += across * (sample(picture, top + 1, left + 1) - lower);
    return upper + down * (lower - upper);
}

// Where lane `lane`'s sample `k` (0 or 1) of the patch with its first sample at (top, left) lies.
__device__ inline Place patch_place(int top, int left, int lane, int k)
{
    int index = lane + WARP * k;
    Place place = {top + index / PATCH, left + index % PATCH};
    return place;
}

// Follows the patch at (top, left) of `now` into `before`, from `start` on. A search that strays farther than the patch is
// wide is given up.
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
__device__ inline float patch_error(const Picture& now, const Picture& before, int top, int left, Motion motion, int lane)
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

struct CellFlow {
    float dx, dy;      // cells: the content was at (column + dx, row + dy)
    float confidence;  // in [0, 1]
};

// The flow of one cell. `coarse` pictures are level 4, `fine` ones have `side` samples along a cell.
__device__ inline CellFlow search(const Picture& coarse_now, const Picture& coarse_before, const Picture& fine_now,
                                  const Picture& fine_before, int side, int row, int column, int lane)
{
    Motion none = {0.0f, 0.0f};
    Motion motion = descend(coarse_now, coarse_before, row - PATCH / 2, column - PATCH / 2, none, lane);
    motion.dx *= (float)side;
    motion.dy *= (float)side;
    int top = row * side + side / 2 - PATCH / 2, left = column * side + side / 2 - PATCH / 2;
    motion = descend(fine_now, fine_before, top, left, motion, lane);
    float moved = patch_error(fine_now, fine_before, top, left, motion, lane);
    if (!(moved < patch_error(fine_now, fine_before, top, left, none, lane))) motion = none;
    float doubt = 0.0f;
    if (lane < side * side) {
        int y = row * side + lane / side, x = column * side + lane % side;
        doubt = fabsf(between(fine_before, (float)y + motion.dy, (float)x + motion.dx) - sample(fine_now, y, x));
    }
    doubt = warp_sum(doubt) / (float)(side * side);
    CellFlow flow = {motion.dx / (float)side, motion.dy / (float)side, fmaxf(1.0f - doubt * DOUBT, 0.0f)};
    return flow;
}
