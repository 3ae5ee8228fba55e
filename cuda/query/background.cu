// Background model: frame differences and a learned static background, per cell.
//
// `update_background`: one block of 64 threads per tile, as pipeline/native/background.c. `reset_background`: one block
// over the Grid, as the end of BackgroundModel.update in pipeline/cpu/background.py: a scene cut, or a camera that
// pans, resets the background. Results are equal bit for bit. A frame that writes nothing changes nothing.
#include "spec/attributes.h"
#include "spec/geometry.h"
#include "state.cuh"

const int THREADS = 64;
const int RESET_THREADS = 1024;
const int SIDE = CELL >> BACKGROUND_LEVEL, SAMPLES = SIDE * SIDE;  // of a cell

struct Background {
    const FrameState* frame;
    const u8* written;    // [tiles]
    const float* now[3];  // luma, Cb, Cr of level 2, in 8-bit units
    u8* last[3];          // the previous frame, rounded
    u8* background[3];    // valid where `known` is set
    u8* known;            // [grid]: the cell's background has been learned
    int* last_change;     // [grid]: the frame in which the cell last changed
    float* difference;    // [grid]: share of the samples that differ from the previous frame
    float* foreground;    // [grid]: share that differs from the background; -1 where that is unknown
    int rows, columns;    // of the Grid
    int index;            // of the frame
    int learning_frames;  // without a change, after which a cell becomes background
    int step;             // largest difference, in 8-bit units, that counts as no change
    int pans;             // changed cells from which on the camera is taken to move
};

__device__ inline int rounded(float value) { return min(max((int)(value + 0.5f), 0), 255); }

// A thread per sample; the sixteen of a cell are half a warp.
extern "C" __global__ void __launch_bounds__(THREADS) update_background(const __grid_constant__ Background p)
{
    if (!p.frame->dirty_count) return;
    int sample = threadIdx.x % SAMPLES, upper = threadIdx.x & SAMPLES, across = p.columns / 2;
    int row = blockIdx.x / across * 2 + threadIdx.x / (2 * SAMPLES);
    int column = blockIdx.x % across * 2 + threadIdx.x / SAMPLES % 2, cell = row * p.columns + column;
    if (!p.written[blockIdx.x]) {
        if (sample == 0) p.difference[cell] = 0.0f;
        return;
    }
    int at = (row * SIDE + sample / SIDE) * p.columns * SIDE + column * SIDE + sample % SIDE;
    bool learns = p.index - p.last_change[cell] > p.learning_frames, other = false, away = false;
    for (int plane = 0; plane < 3; plane++) {
        int now = rounded(p.now[plane][at]), last = p.last[plane][at],
            background = learns ? last : p.background[plane][at];
        other |= abs(now - last) > p.step;
        away |= abs(now - background) > p.step;
        p.background[plane][at] = background;
        p.last[plane][at] = now;
    }
    u32 difference = __ballot_sync(~0u, other), foreground = __ballot_sync(~0u, away);
    if (sample) return;
    int changed = __popc(upper ? difference >> SAMPLES : difference & 0xffff),
        differing = __popc(upper ? foreground >> SAMPLES : foreground & 0xffff);
    bool known = learns || p.known[cell];
    p.known[cell] = known;
    if (changed) p.last_change[cell] = p.index;
    p.difference[cell] = (float)changed / (float)SAMPLES;
    p.foreground[cell] = known ? (float)differing / (float)SAMPLES : -1.0f;
}

extern "C" __global__ void __launch_bounds__(RESET_THREADS) reset_background(const __grid_constant__ Background p)
{
    if (!p.frame->dirty_count) return;
    int cells = p.rows * p.columns, count = 0, new_scene = p.frame->new_scene;
    for (int first = 0; first < cells; first += RESET_THREADS) {
        int cell = first + threadIdx.x;
        count += __syncthreads_count(cell < cells && p.difference[cell] > 0.0f);
    }
    if (!new_scene && count < p.pans) return;
    for (int cell = threadIdx.x; cell < cells; cell += RESET_THREADS) {
        p.known[cell] = 0;
        p.foreground[cell] = -1.0f;
        p.last_change[cell] = p.index;
        if (new_scene) p.difference[cell] = 0.0f;
    }
}
