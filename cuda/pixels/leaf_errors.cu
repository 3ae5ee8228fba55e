// The squared error that a reader is left with in each cell shown as one token of a level, enlarged bilinearly.
//
// A block of 256 threads per tile, which works where the tile or one of its eight neighbours was written. Samples are
// in 64ths of a grey value and differences in 16ths, so that all sums are whole numbers and the result equals
// pipeline/native/leaf_errors.c bit for bit; the formula stands there.
#include "spec/errors.h"
#include "spec/geometry.h"
#include "state.cuh"

struct Levels {
    const u8* base;
    const float* levels[TOP_LEVEL];  // level 1 .. 4; null up to the plane's own base
};

struct LeafErrors {
    const u8* written;  // [tiles]
    Levels planes[3];   // Y, Cb, Cr
    float* errors;      // [4][grid]
    int halved;         // 1: chroma has half the luma's resolution
    int tile_rows, tile_columns;
};

const int THREADS = 256;
const int PLANES = 3, CHROMA_TILE = TILE / 2;

__host__ __device__ constexpr int rim_of(int level) { return (TILE >> level) + 2; }

__host__ __device__ constexpr int start_of(int level)
{
    return level == 1 ? 0 : start_of(level - 1) + rim_of(level - 1) * rim_of(level - 1);
}

struct Tile {
    u16 samples[PLANES][start_of(TOP_LEVEL + 1)];  // of levels 1 .. 4, each with a rim of one
    u32 sums[PLANES][TOP_LEVEL][4];                // of squared differences, by level and cell
};

__device__ int in_units(float mean) { return (int)(mean * (float)UNIT + 0.5f); }

// A quarter of `far` and three quarters of `near`, rounded.
__device__ int between(int near, int far) { return (3 * near + far + 2) >> 2; }

template <int LEVEL>
__device__ void load_level(const LeafErrors& p, Tile& tile, int plane, int row, int column)
{
    constexpr int side = TILE >> LEVEL, rim = rim_of(LEVEL);
    const float* samples = p.planes[plane].levels[LEVEL - 1];
    if (!samples) return;
    const int rows = p.tile_rows * side, columns = p.tile_columns * side;
    for (int i = threadIdx.x; i < rim * rim; i += THREADS) {
        const int y = min(max(row * side + i / rim - 1, 0), rows - 1);
        const int x = min(max(column * side + i % rim - 1, 0), columns - 1);
        tile.samples[plane][start_of(LEVEL) + i] = in_units(samples[(size_t)y * columns + x]);
    }
}

// Square of the difference, in 16ths, between a sample at (y, x) of the tile at LEVEL - 1 and LEVEL enlarged.
template <int LEVEL>
__device__ u32 squared(const Tile& tile, int plane, int y, int x, int fine)
{
    constexpr int rim = rim_of(LEVEL);
    const int down = y % 2 ? rim : -rim, across = x % 2 ? 1 : -1;
    const u16* at = tile.samples[plane] + start_of(LEVEL) + (y / 2 + 1) * rim + x / 2 + 1;
    const int near = between(at[0], at[down]), far = between(at[across], at[across + down]);
    const int apart = (fine - between(near, far) + 2) >> 2;
    return (u32)(apart * apart);
}

// Adds a warp's values to the sums of the two cells side by side that its lanes belong to.
__device__ void add_to(u32* sums, bool right, u32 left_lanes, u32 value)
{
    const u32 lanes = right ? ~left_lanes : left_lanes, sum = __reduce_add_sync(lanes, value);
    if ((threadIdx.x & 31) == __ffs(lanes) - 1) atomicAdd(sums + right, sum);
}

// Level 1 of a plane with the luma's resolution: four pixels a thread.
__device__ void compare_pixels(const LeafErrors& p, Tile& tile, int plane, int row, int column)
{
    const int y = threadIdx.x / 8, x = threadIdx.x % 8 * 4;
    const size_t at = (size_t)(row * TILE + y) * p.tile_columns * TILE + column * TILE + x;
    const u32 four = *(const u32*)(p.planes[plane].base + at);
    u32 sum = 0;
    for (int i = 0; i < 4; i++) sum += squared<1>(tile, plane, y, x + i, (four >> (8 * i) & 255) * UNIT);
    add_to(tile.sums[plane][0] + y / CELL * 2, x >= CELL, 0x0f0f0f0f, sum);
}

// Level 2 of a plane: one sample of level 1 a thread.
__device__ void compare_halves(const LeafErrors& p, Tile& tile, int plane, int row, int column)
{
    const int y = threadIdx.x / 16, x = threadIdx.x % 16;
    const bool base = plane && p.halved;
    const size_t at = (size_t)(row * CHROMA_TILE + y) * p.tile_columns * CHROMA_TILE + column * CHROMA_TILE + x;
    const int fine =
        base ? p.planes[plane].base[at] * UNIT : tile.samples[plane][start_of(1) + (y + 1) * rim_of(1) + x + 1];
    add_to(tile.sums[plane][1] + y / 8 * 2, x >= 8, 0x00ff00ff, squared<2>(tile, plane, y, x, fine));
}

// Levels 3 and 4 of all planes, from samples that are there: 64 threads a plane, then 16.
__device__ void compare_coarse(Tile& tile)
{
    if (threadIdx.x < PLANES * 64) {
        const int plane = threadIdx.x / 64, y = threadIdx.x % 64 / 8, x = threadIdx.x % 8;
        const int fine = tile.samples[plane][start_of(2) + (y + 1) * rim_of(2) + x + 1];
        add_to(tile.sums[plane][2] + y / 4 * 2, x >= 4, 0x0f0f0f0f, squared<3>(tile, plane, y, x, fine));
    } else if (threadIdx.x < PLANES * 80) {
        const int plane = (threadIdx.x - PLANES * 64) / 16, y = threadIdx.x % 16 / 4, x = threadIdx.x % 4;
        const int fine = tile.samples[plane][start_of(3) + (y + 1) * rim_of(3) + x + 1];
        atomicAdd(&tile.sums[plane][3][y / 2 * 2 + x / 2], squared<4>(tile, plane, y, x, fine));
    }
}

// The errors of one cell at all levels. Luma counts four times as much as chroma; samples of level k stand for 4^k
// pixels.
__device__ void store(const LeafErrors& p, const Tile& tile, int cell, int row, int column)
{
    const int columns = p.tile_columns * 2, at = (row * 2 + cell / 2) * columns + column * 2 + cell % 2;
    const size_t cells = (size_t)p.tile_rows * 2 * columns;
    u64 total = 0;
    for (int level = 0; level < TOP_LEVEL; level++) {
        const u64 luma = tile.sums[0][level][cell];
        total += (4 * luma + tile.sums[1][level][cell] + tile.sums[2][level][cell]) << (2 * level);
        p.errors[level * cells + at] = __ull2float_rn(total) * (4.0f / (UNIT * UNIT));  // of quarters of squared 16ths
    }
}

__device__ bool touched(const LeafErrors& p, int row, int column)
{
    const int y = row + (int)threadIdx.x / 3 - 1, x = column + (int)threadIdx.x % 3 - 1;
    const bool exists = threadIdx.x < 9 && y >= 0 && x >= 0 && y < p.tile_rows && x < p.tile_columns;
    return __syncthreads_or(exists && p.written[y * p.tile_columns + x]);
}

extern "C" __global__ void __launch_bounds__(THREADS) leaf_errors(LeafErrors p)
{
    __shared__ Tile tile;
    const int row = blockIdx.x / p.tile_columns, column = blockIdx.x % p.tile_columns;
    if (!touched(p, row, column)) return;
    if (threadIdx.x < PLANES * TOP_LEVEL * 4) (&tile.sums[0][0][0])[threadIdx.x] = 0;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++) {
        load_level<1>(p, tile, plane, row, column);
        load_level<2>(p, tile, plane, row, column);
        load_level<3>(p, tile, plane, row, column);
        load_level<4>(p, tile, plane, row, column);
    }
    __syncthreads();
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++) {
        if (!plane || !p.halved) compare_pixels(p, tile, plane, row, column);
        compare_halves(p, tile, plane, row, column);
    }
    compare_coarse(tile);
    __syncthreads();
    if (threadIdx.x < 4) store(p, tile, threadIdx.x, row, column);
}
