// Background model: frame differences and a learned static background, per cell. What a change of the light explains is
// no difference; see pipeline/native/light.h.
//
// `update_background`: one block of 64 threads per tile. `without_light`: a thread per cell, once all cells are
// compared. Both together are pipeline/native/background.c. `reset_background`: one block over the Grid, as the end of
// BackgroundModel.update in pipeline/cpu/background.py: a scene cut, or a camera that pans, resets the background.
// Results are equal bit for bit. A frame that writes nothing changes nothing.
#include "light.cuh"
#include "spec/attributes.h"
#include "spec/change.h"
#include "spec/geometry.h"
#include "state.cuh"

const int THREADS = 64;
const int LIGHT_THREADS = 128;
const int RESET_THREADS = 1024;
const int SIDE = CELL >> BACKGROUND_LEVEL, SAMPLES = SIDE * SIDE;  // of a cell
// Bits of `coloured`: the chroma of a cell differs from the previous frame, from the background.
const int FROM_LAST = 1, FROM_LEARNED = 2;

struct Background {
    const FrameState* frame;
    const u8* written;    // [tiles]
    const float* now[3];  // luma, Cb, Cr of level 2, in 8-bit units
    u8* last[3];          // the previous frame, rounded
    u8* background[3];    // the previous frame where `known` is not set
    u8* known;            // [grid]: the cell's background has been learned
    u8* coloured;         // [grid]
    int* last_change;     // [grid]: the frame in which the cell last changed
    int* moments;         // [MOMENTS][grid]
    float* difference;    // [grid]: share of the samples that differ from the previous frame
    float* foreground;    // [grid]: share that differs from the background; -1 where that is unknown
    int rows, columns;    // of the Grid
    int index;            // of the frame
    int learning_frames;  // without a change, after which a cell becomes background
    int step;             // largest difference, in 8-bit units, that counts as no change
    int noise_step;       // the same for each grey value of noise, where that is more
    int pans;             // changed cells from which on the camera is taken to move
};

__device__ inline int rounded(float value) { return min(max((int)(value + 0.5f), 0), 255); }

// The sum over the sixteen threads of a cell, in all of them.
__device__ inline int cell_sum(int value)
{
    for (int reach = SAMPLES / 2; reach; reach /= 2) value += __shfl_xor_sync(~0u, value, reach);
    return value;
}

// The number of threads of a cell for which `holds`.
__device__ inline int cell_count(bool holds, bool upper)
{
    u32 votes = __ballot_sync(~0u, holds);
    return __popc(upper ? votes >> SAMPLES : votes & 0xffff);
}

// The moments of a cell that stays as it is: the previous frame is this one.
__device__ inline void keep(const Background& p, int cell)
{
    int all = p.rows * p.columns, *moments = p.moments + cell;
    int now = moments[NOW * all], squares = moments[NOW_SQUARES * all];
    moments[LAST * all] = now;
    moments[LAST_SQUARES * all] = moments[NOW_LAST * all] = squares;
    if (p.known[cell]) return;
    moments[LEARNED * all] = now;
    moments[LEARNED_SQUARES * all] = moments[NOW_LEARNED * all] = squares;
}

// A thread per sample; the sixteen of a cell are half a warp.
extern "C" __global__ void __launch_bounds__(THREADS) update_background(const __grid_constant__ Background p)
{
    if (!p.frame->dirty_count) return;
    int sample = threadIdx.x % SAMPLES, across = p.columns / 2;
    int row = blockIdx.x / across * 2 + threadIdx.x / (2 * SAMPLES);
    int column = blockIdx.x % across * 2 + threadIdx.x / SAMPLES % 2, cell = row * p.columns + column;
    if (!p.written[blockIdx.x]) {
        if (sample) return;
        p.difference[cell] = 0.0f;
        keep(p, cell);
        return;
    }
    int at = (row * SIDE + sample / SIDE) * p.columns * SIDE + column * SIDE + sample % SIDE;
    bool rests = p.index - p.last_change[cell] > p.learning_frames, known = p.known[cell], learns = rests || !known;
    bool other = false, away = false, recoloured = false, tinted = false;
    int now, last, learned, step = max(p.step, p.noise_step * p.frame->noise / NOISE_PER_GREY);
    for (int plane = 2; plane >= 0; plane--) {
        recoloured = other;  // before luma: by either plane of chroma
        tinted = away;
        now = rounded(p.now[plane][at]);
        last = p.last[plane][at];
        learned = learns ? last : p.background[plane][at];
        other |= abs(now - last) > step;
        away |= abs(now - learned) > step;
        p.background[plane][at] = learned;
        p.last[plane][at] = now;
    }
    bool upper = threadIdx.x & SAMPLES;
    int changed = cell_count(other, upper), differing = cell_count(away, upper);
    int coloured = (cell_count(recoloured, upper) ? FROM_LAST : 0) | (cell_count(tinted, upper) ? FROM_LEARNED : 0);
    int moments[MOMENTS];
    moments[NOW] = cell_sum(now);
    moments[NOW_SQUARES] = cell_sum(now * now);
    moments[LAST] = cell_sum(last);
    moments[LAST_SQUARES] = cell_sum(last * last);
    moments[LEARNED] = cell_sum(learned);
    moments[LEARNED_SQUARES] = cell_sum(learned * learned);
    moments[NOW_LAST] = cell_sum(now * last);
    moments[NOW_LEARNED] = cell_sum(now * learned);
    if (sample) return;
    for (int moment = 0; moment < MOMENTS; moment++) p.moments[moment * p.rows * p.columns + cell] = moments[moment];
    known |= rests;
    p.known[cell] = known;
    p.coloured[cell] = coloured;
    p.difference[cell] = (float)changed / (float)SAMPLES;
    p.foreground[cell] = known ? (float)differing / (float)SAMPLES : -1.0f;
}

// Whether light explains the change of a window from the previous frame, and from the background: bits of `coloured`.
// The window: cells of these rows and columns, as far as they are inside the picture; `plain`, as in is_light.
__device__ inline int explained(const Background& p, int top, int left, int side, bool plain)
{
    int bottom = min(top + side, p.rows), right = min(left + side, p.columns), m[MOMENTS] = {0};
    top = max(top, 0);
    left = max(left, 0);
    for (int moment = 0; moment < MOMENTS; moment++) {
        const int* moments = p.moments + moment * p.rows * p.columns;
        for (int y = top; y < bottom; y++)
            for (int x = left; x < right; x++) m[moment] += moments[y * p.columns + x];
    }
    int count = SAMPLES * (bottom - top) * (right - left), now = m[NOW], squares = m[NOW_SQUARES];
    bool last = is_light(count, now, squares, m[LAST], m[LAST_SQUARES], m[NOW_LAST], plain);
    bool learned = is_light(count, now, squares, m[LEARNED], m[LEARNED_SQUARES], m[NOW_LEARNED], plain);
    return (last ? FROM_LAST : 0) | (learned ? FROM_LEARNED : 0);
}

// Take the changes that light explains out, and note which cells changed.
extern "C" __global__ void __launch_bounds__(LIGHT_THREADS) without_light(const __grid_constant__ Background p)
{
    int cell = blockIdx.x * LIGHT_THREADS + threadIdx.x;
    if (!p.frame->dirty_count || cell >= p.rows * p.columns) return;
    int row = cell / p.columns, column = cell % p.columns;
    if (!p.written[row / CELLS_PER_TILE * (p.columns / CELLS_PER_TILE) + column / CELLS_PER_TILE]) return;
    float difference = p.difference[cell], foreground = p.foreground[cell];
    if (!(difference > 0.0f || foreground > 0.0f)) return;
    int lit = explained(p, row - WINDOW_REACH, column - WINDOW_REACH, 2 * WINDOW_REACH + 1, true);
    for (int y = row - 1; y <= row; y++)
        for (int x = column - 1; x <= column; x++) lit |= explained(p, y, x, 2, false);
    lit &= ~p.coloured[cell];
    if (lit & FROM_LAST) p.difference[cell] = difference = 0.0f;
    if (lit & FROM_LEARNED && foreground > 0.0f) p.foreground[cell] = 0.0f;
    if (difference > 0.0f) p.last_change[cell] = p.index;
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
