// Distance of each cell to the nearest edge cell, / EDGE_REACH cells, clipped to 1.
//
// One launch instead of the passes of jump flooding, since only eight cells count: a block of 16x16 cells reads the
// 32x32 around and inside it as one bit each, and every cell looks for the nearest set bit of 17 rows.
#include "spec/local_channels.h"
#include "state.cuh"

struct EdgeDistance {
    const FrameState* state;
    const float* edges;           // [grid]
    const float* edges_inverted;  // [grid]
    float* distance;              // [grid]
    float edge;                   // a cell is an edge cell where either exceeds this
    int rows, columns;
};

const int SIDE = 16;
const int REACH = EDGE_REACH;
const int THREADS = 256;
static_assert(SIDE * SIDE == THREADS && 2 * REACH == SIDE, "a block reads as many cells around it as it has");

extern "C" __global__ void __launch_bounds__(THREADS) edge_distance(EdgeDistance p)
{
    __shared__ u32 edge_rows[2 * SIDE];
    if (p.state->dirty_count == 0) return;
    const int top = blockIdx.y * SIDE - REACH, left = blockIdx.x * SIDE - REACH;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int y = warp; y < 2 * SIDE; y += THREADS / 32) {
        const int row = top + y, column = left + lane;
        bool edge = row >= 0 && column >= 0 && row < p.rows && column < p.columns;
        if (edge) edge = fmaxf(p.edges[row * p.columns + column], p.edges_inverted[row * p.columns + column]) > p.edge;
        const u32 bits = __ballot_sync(~0u, edge);
        if (lane == 0) edge_rows[y] = bits;
    }
    __syncthreads();
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    const int row = blockIdx.y * SIDE + y, column = blockIdx.x * SIDE + x;
    if (row >= p.rows || column >= p.columns) return;
    int nearest = REACH * REACH;  // squared
    for (int down = -REACH; down <= REACH; down++) {
        const u32 window = edge_rows[y + REACH + down] >> x & 0x1ffff;  // this cell is bit 8 of 17
        if (!window) continue;
        const u32 right = window >> REACH, left_side = window << (31 - REACH);
        const int across = min(right ? __ffs(right) - 1 : REACH, left_side ? __clz(left_side) : REACH);
        nearest = min(nearest, across * across + down * down);
    }
    p.distance[row * p.columns + column] = fminf(sqrtf((float)nearest) / (float)REACH, 1.0f);
}
