// Attributes of cells for queries in words: the share of each named colour, lightness, and text.
//
// `attributes`: a block of 64 threads per dirty tile, as pipeline/native/attributes.c to the last bit. `text`: a thread
// per cell, as text() of pipeline/cpu/attributes.py. Where nothing was written, nothing changes.
#include "spec/attributes.h"
#include "spec/geometry.h"
#include "state.cuh"

const int THREADS = 64;
const int TEXT_THREADS = 128;
const int SIDE = CELL >> COLOUR_LEVEL, SAMPLES = SIDE * SIDE;  // of a cell, at the level of the colours
const int STROKE_SIDE = CELL >> STROKE_LEVEL;                  // the same, at the level of the strokes

struct Attributes {
    const FrameState* frame;
    const int* dirty;
    const float* planes[3];  // luma, Cb, Cr of level 2, in 8-bit units
    const float* fine;       // luma of level 1
    const u8* name;          // [32][64][64]: by Y >> 3, Cb >> 2, Cr >> 2: which colour
    const u8* lightness;     // [32][64][64]: L* / 100, in 1/255
    float* shares;           // [COLOURS][grid]
    float* light;            // [grid]
    float* strokes;          // [grid]: that end in the cell
    float* text;             // [grid]
    int rows, columns;       // of the Grid
    float step;              // luma difference, in 8-bit units, that makes an edge of a stroke
    float most, rim;         // strokes at which a cell is wholly text; share of its text that a neighbour gets
};

__device__ inline int rounded(float value) { return min(max((int)(value + 0.5f), 0), 255); }

// A thread per sample; the sixteen of a cell are half a warp.
__device__ void name_colours(const Attributes& p, int tile_row, int tile_column)
{
    int cell = threadIdx.x / SAMPLES, sample = threadIdx.x % SAMPLES, upper = threadIdx.x & SAMPLES;
    int row = tile_row * 2 + cell / 2, column = tile_column * 2 + cell % 2;
    int at = (row * SIDE + sample / SIDE) * p.columns * SIDE + column * SIDE + sample % SIDE;
    int bin =
        (rounded(p.planes[0][at]) >> 3) << 12 | (rounded(p.planes[1][at]) >> 2) << 6 | rounded(p.planes[2][at]) >> 2;
    int name = p.name[bin], light = p.lightness[bin], count = 0;
    for (int k = 0; k < COLOURS; k++) {
        u32 same = __ballot_sync(~0u, name == k);
        if (sample == k) count = __popc(upper ? same >> SAMPLES : same & 0xffff);
    }
    for (int lanes = SAMPLES / 2; lanes; lanes /= 2) light += __shfl_xor_sync(~0u, light, lanes);
    int place = row * p.columns + column;
    if (sample < COLOURS) p.shares[sample * p.rows * p.columns + place] = (float)count / (float)SAMPLES;
    if (sample == COLOURS) p.light[place] = (float)light / (float)(255 * SAMPLES);
}

// Strokes that end in one row of a cell: an edge up and an edge down, or the other way round, at most WIDEST_STROKE
// apart.
__device__ int strokes_in(const float* luma, int left, int width, float step)
{
    int sign = 0, seen = left - 2 * WIDEST_STROKE, count = 0;
    for (int x = max(left - WIDEST_STROKE, 1); x < min(left + STROKE_SIDE, width - 1); x++) {
        float across = luma[x + 1] - luma[x - 1];
        int here = across > step ? 1 : across < -step ? -1 : 0;
        if (!here) continue;
        if (x >= left && here == -sign && x - seen <= WIDEST_STROKE) count++;
        sign = here;
        seen = x;
    }
    return count;
}

// The tile's cells and those beside them, two rows of four: a thread per row of samples. Neighbours write the same.
__device__ void count_strokes(const Attributes& p, int tile_row, int tile_column)
{
    int cell = threadIdx.x / STROKE_SIDE, y = threadIdx.x % STROKE_SIDE, width = p.columns * STROKE_SIDE;
    int row = tile_row * 2 + cell / 4, column = tile_column * 2 - 1 + cell % 4, count = 0;
    bool there = column >= 0 && column < p.columns;
    if (there) count = strokes_in(p.fine + (row * STROKE_SIDE + y) * width, column * STROKE_SIDE, width, p.step);
    for (int lanes = STROKE_SIDE / 2; lanes; lanes /= 2) count += __shfl_xor_sync(~0u, count, lanes);
    if (there && y == 0) p.strokes[row * p.columns + column] = (float)count;
}

extern "C" __global__ void __launch_bounds__(THREADS) attributes(const __grid_constant__ Attributes p)
{
    if (blockIdx.x >= p.frame->dirty_count) return;
    int tile = p.dirty[blockIdx.x], across = p.columns / 2;
    name_colours(p, tile / across, tile % across);
    count_strokes(p, tile / across, tile % across);
}

__device__ float density(const Attributes& p, int row, int column)
{
    if (column < 0 || column >= p.columns) return 0.0f;
    return fminf(p.strokes[row * p.columns + column] / p.most, 1.0f);
}

// A cell's strokes, as far as a cell beside it has as many.
__device__ float in_a_row(const Attributes& p, int row, int column)
{
    float beside = fmaxf(density(p, row, column - 1), density(p, row, column + 1));
    return fminf(density(p, row, column), 2.0f * beside);
}

extern "C" __global__ void __launch_bounds__(TEXT_THREADS) text(const __grid_constant__ Attributes p)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= p.rows * p.columns || !p.frame->dirty_count) return;
    int row = cell / p.columns, column = cell % p.columns;
    float around = 0.0f;
    for (int y = max(row - 1, 0); y <= min(row + 1, p.rows - 1); y++)
        for (int x = max(column - 1, 0); x <= min(column + 1, p.columns - 1); x++)
            around = fmaxf(around, in_a_row(p, y, x));
    p.text[cell] = fmaxf(in_a_row(p, row, column), p.rim * around);
}
