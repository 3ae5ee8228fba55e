// Writes the dirty tiles: the planes that the texture holds, their levels, and motion.
//
// A block of 256 threads per tile, in turns. Sums of samples are whole numbers, so means are exact.
#include "pixels/input.cuh"
#include "spec/geometry.h"

struct PlaneOut {
    u8* base;                  // padded to tiles
    float* levels[TOP_LEVEL];  // level 1 .. 4; those up to the plane's own base are null
};

struct Write {
    const FrameInput* input;
    const FrameState* state;
    const int* dirty;
    const u8* changed;  // [tiles]
    PlaneOut planes[3];
    float* motion;       // [grid], zero where nothing moved
    float* moved;        // at the analysis level: |luma - luma before|
    float inverse_span;  // 1 / (white - black)
    int width, height;
    int tile_rows, tile_columns;
    int halved;          // 1: chroma has half the luma's resolution
    int analysis_level;  // 0..2: where motion is measured
};

const int THREADS = 256;
const int WARPS = THREADS / 32;

// Of what lies under one sample of a level, for each plane.
struct Sums {
    int sum[3];
};

struct Tile {
    u8 pixels[3][TILE * TILE];
    Sums halves[WARPS];  // of the cells, each of which two warps share
    u32 moved[4];        // per cell: bits of the greatest difference, which is not negative
};

// Threads are numbered so that 2x2 neighbours differ in two bits: every other bit is the column, the others the row.
__device__ int even_bits(int number)
{
    return (number & 1) | (number >> 1 & 2) | (number >> 2 & 4) | (number >> 3 & 8);
}

// Copies one plane of the tile into shared memory and into what the texture holds.
template <int PLANE>
__device__ void take_over(const Write& p, const FrameInput& in, Tile& tile, int row, int column)
{
    const int shift = PLANE && p.halved, side = TILE >> shift, words = side / 4;
    const int height = shift ? (p.height + 1) / 2 : p.height, width = shift ? (p.width + 1) / 2 : p.width;
    const int y = threadIdx.x / words, x = threadIdx.x % words * 4;
    if (y >= side) return;  // whole warps
    const u32 now = four_samples<PLANE>(in, row * side + y, column * side + x, height, width);
    const size_t at = (size_t)(row * side + y) * p.tile_columns * side + column * side + x;
    u32* held = (u32*)(p.planes[PLANE].base + at);
    if (PLANE == 0 && p.analysis_level == 0) {
        const u32 difference = __vabsdiffu4(*held, now);
        u32 most = 0;
        for (int i = 0; i < 4; i++) {
            const u32 one = difference >> (8 * i) & 255;
            most = max(most, one);
            p.moved[at + i] = (float)one;
        }
        const u32 lanes = x < CELL ? 0x0f0f0f0f : 0xf0f0f0f0;  // of a warp's, those with the same cell
        most = __reduce_max_sync(lanes, most);
        if ((threadIdx.x & 31) == __ffs(lanes) - 1)
            atomicMax(&tile.moved[y / CELL * 2 + x / CELL], __float_as_uint((float)most));
    }
    *held = now;
    *(u32*)(tile.pixels[PLANE] + y * side + x) = now;
}

// What lies under the level-1 sample (y, x) of the tile; of halved chroma that is one of the base's.
__device__ Sums under_sample(const Tile& tile, int halved, int y, int x)
{
    Sums under;
#pragma unroll
    for (int plane = 0; plane < 3; plane++) {
        const bool whole = !plane || !halved;
        under.sum[plane] = 0;
        for (int i = 0; i < (whole ? 4 : 1); i++)
            under.sum[plane] += tile.pixels[plane][whole ? (2 * y + i / 2) * TILE + 2 * x + i % 2 : y * (TILE / 2) + x];
    }
    return under;
}

__device__ void add_lanes(Sums& under, int lanes)
{
#pragma unroll
    for (int plane = 0; plane < 3; plane++) under.sum[plane] += __shfl_xor_sync(~0u, under.sum[plane], lanes);
}

// A plane's sample of `level`; below the plane's own resolution there is none.
__device__ float mean_of(const Sums& under, int plane, int base, int level)
{
    return (float)under.sum[plane] * (1.0f / (float)(1 << (2 * (level - base))));
}

// Writes sample (y, x) of the tile at `level`, and notes how far luma moved where that is asked for.
__device__ void store_level(const Write& p, Tile& tile, int level, int row, int column, int y, int x, const Sums& under)
{
    const int side = TILE >> level;
    const size_t at = (size_t)(row * side + y) * p.tile_columns * side + column * side + x;
    if (level == p.analysis_level) {
        const float moved = fabsf(mean_of(under, 0, 0, level) - p.planes[0].levels[level - 1][at]);
        p.moved[at] = moved;
        atomicMax(&tile.moved[threadIdx.x / 64], __float_as_uint(moved));
    }
#pragma unroll
    for (int plane = 0; plane < 3; plane++) {
        const int base = plane ? p.halved : 0;
        if (level > base) p.planes[plane].levels[level - 1][at] = mean_of(under, plane, base, level);
    }
}

// Levels 1 .. 3 of the tile, and half of what the cells need.
__device__ void build_levels(const Write& p, Tile& tile, int row, int column)
{
    const int index = threadIdx.x, y = even_bits(index >> 1), x = even_bits(index);
    Sums under = under_sample(tile, p.halved, y, x);
    store_level(p, tile, 1, row, column, y, x, under);
    add_lanes(under, 1);
    add_lanes(under, 2);
    if (!(index & 3)) store_level(p, tile, 2, row, column, y / 2, x / 2, under);
    add_lanes(under, 4);
    add_lanes(under, 8);
    if (!(index & 15)) store_level(p, tile, 3, row, column, y / 4, x / 4, under);
    add_lanes(under, 16);
    if (!(index & 31)) tile.halves[index / 32] = under;
}

// Level 4 and all that is kept per cell; threads 0 .. 3 come here.
__device__ void finish_cell(const Write& p, Tile& tile, int row, int column)
{
    const int cell = threadIdx.x, one = 2 * cell, other = one + 1, columns = p.tile_columns * 2;
    const int at = (row * 2 + cell / 2) * columns + column * 2 + cell % 2;
    for (int plane = 0; plane < 3; plane++) {
        const int sum = tile.halves[one].sum[plane] + tile.halves[other].sum[plane];
        p.planes[plane].levels[3][at] = (float)sum * (1.0f / (float)(1 << (2 * (4 - (plane ? p.halved : 0)))));
    }
    if (p.state->moving && p.changed[row * p.tile_columns + column])
        p.motion[at] = fminf(__uint_as_float(tile.moved[cell]) * p.inverse_span, 1.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_tiles(Write p)
{
    __shared__ Tile tile;
    const FrameInput in = *p.input;
    const int count = p.state->dirty_count;
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const int index = p.dirty[i], row = index / p.tile_columns, column = index % p.tile_columns;
        if (threadIdx.x < 4) tile.moved[threadIdx.x] = 0;
        __syncthreads();
        take_over<0>(p, in, tile, row, column);
        take_over<1>(p, in, tile, row, column);
        take_over<2>(p, in, tile, row, column);
        __syncthreads();
        build_levels(p, tile, row, column);
        __syncthreads();
        if (threadIdx.x < 4) finish_cell(p, tile, row, column);
        __syncthreads();
    }
}
