// What differs, cell by cell, from the picture before and from what rested there before anything came.
//
// `compare_rest`: a block of 64 threads per tile, as pipeline/native/rest.c. `forget_rest`: one block over the Grid, as
// RestStack.update of pipeline/cpu/rest.py goes on: a new scene, or a camera that moves, leaves nothing at rest. Equal to
// the last bit. Where nothing was written, all stays as it is.
#include "spec/attributes.h"
#include "spec/geometry.h"
#include "state.cuh"

const int THREADS = 64, FORGET_THREADS = 1024;
const int SIDE = CELL >> REST_LEVEL, SAMPLES = SIDE * SIDE;  // of a cell

struct Rest {
    const FrameState* frame;
    const u8* written;     // [tiles]
    const float* now[3];   // luma, Cb, Cr of level 2, in 8-bit units
    u8* last[3];           // the same as it was, rounded
    u8* rest[3];           // the same as it rested, where that is known
    u8* known;             // [grid]
    int* stirred;          // [grid]: the frame in which the cell last changed
    float* stirs;          // [grid]: share of the samples that differ from the picture before
    float* moved;          // [grid]: share that differs from what rested there; -1 where that is not known
    int rows, columns;     // of the Grid
    int index;             // of the frame
    int patience;          // frames without a change until a cell rests
    int step;              // difference in 8-bit units up to which samples are alike
    int pans;              // cells that stir where the camera itself moves, at least
};

__device__ inline int rounded(float value) { return min(max((int)(value + 0.5f), 0), 255); }

// A thread per sample; the sixteen of a cell are half a warp.
extern "C" __global__ void __launch_bounds__(THREADS) compare_rest(const __grid_constant__ Rest p)
{
    if (!p.frame->dirty_count) return;
    int sample = threadIdx.x % SAMPLES, upper = threadIdx.x & SAMPLES, across = p.columns / 2;
    int row = blockIdx.x / across * 2 + threadIdx.x / (2 * SAMPLES);
    int column = blockIdx.x % across * 2 + threadIdx.x / SAMPLES % 2, cell = row * p.columns + column;
    if (!p.written[blockIdx.x]) {
        if (sample == 0) p.stirs[cell] = 0.0f;
        return;
    }
    int at = (row * SIDE + sample / SIDE) * p.columns * SIDE + column * SIDE + sample % SIDE;
    bool settles = p.index - p.stirred[cell] > p.patience, other = false, away = false;
    for (int plane = 0; plane < 3; plane++) {
        int now = rounded(p.now[plane][at]), last = p.last[plane][at], rest = settles ? last : p.rest[plane][at];
        other |= abs(now - last) > p.step;
        away |= abs(now - rest) > p.step;
        p.rest[plane][at] = rest;
        p.last[plane][at] = now;
    }
    u32 stirs = __ballot_sync(~0u, other), moved = __ballot_sync(~0u, away);
    if (sample) return;
    int stirring = __popc(upper ? stirs >> SAMPLES : stirs & 0xffff), moving = __popc(upper ? moved >> SAMPLES : moved & 0xffff);
    bool known = settles || p.known[cell];
    p.known[cell] = known;
    if (stirring) p.stirred[cell] = p.index;
    p.stirs[cell] = (float)stirring / (float)SAMPLES;
    p.moved[cell] = known ? (float)moving / (float)SAMPLES : -1.0f;
}

extern "C" __global__ void __launch_bounds__(FORGET_THREADS) forget_rest(const __grid_constant__ Rest p)
{
    if (!p.frame->dirty_count) return;
    int cells = p.rows * p.columns, count = 0, forgets = p.frame->forgets;
    for (int first = 0; first < cells; first += FORGET_THREADS) {
        int cell = first + threadIdx.x;
        count += __syncthreads_count(cell < cells && p.stirs[cell] > 0.0f);
    }
    if (!forgets && count < p.pans) return;
    for (int cell = threadIdx.x; cell < cells; cell += FORGET_THREADS) {
        p.known[cell] = 0;
        p.moved[cell] = -1.0f;
        p.stirred[cell] = p.index;
        if (forgets) p.stirs[cell] = 0.0f;
    }
}
