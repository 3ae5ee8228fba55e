// Writes the dirty tiles: the planes that the texture holds, their levels, the error of each level, and motion.
//
// A block of 256 threads per tile, in turns. Sums of samples and of their squares are whole numbers, so means are exact
// and errors equal the CPU's: per sample of level k, the mean square of the base less the square of its mean (Haar,
// Parseval), chroma by a quarter, averaged over the cell and scaled to a sum over its 256 pixels.
#include "pixels/input.cuh"

struct PlaneOut {
    u8* base;         // padded to tiles
    float* levels[4]; // level 1 .. 4; those up to the plane's own base are null
};

struct Write {
    const FrameInput* input;
    const FrameState* state;
    const int* dirty;
    const u8* changed;   // [tiles]
    PlaneOut planes[3];
    float* errors;       // [4, grid]
    float* motion;       // [grid], zero where nothing moved
    float* moved;        // at the analysis level: |luma - luma before|
    float inverse_span;  // 1 / (white - black)
    int width, height;
    int tile_rows, tile_columns;
    int halved;          // 1: chroma has half the luma's resolution
    int analysis_level;  // 0..2: where motion is measured
};

enum { THREADS = 256 };
#define CHROMA_WEIGHT 0.25f

struct Tile {
    u8 pixels[3][32 * 32];
    int sums[3][256];      // of the level at hand
    int squares[3][256];
    float totals[256];     // of the level at hand: the weighted error per sample
    u32 moved[4];          // per cell: bits of the greatest difference, which is not negative
};

__device__ void note_motion(Tile& tile, int cell, float before, float now) {
    atomicMax(&tile.moved[cell], __float_as_uint(fabsf(now - before)));
}

// Copies one plane of the tile into shared memory and into what the texture holds.
__device__ void take_over(const Write& p, const FrameInput& in, Tile& tile, int plane, int row, int column) {
    const int shift = plane && p.halved, side = 32 >> shift, words = side / 4;
    const int height = shift ? (p.height + 1) / 2 : p.height, width = shift ? (p.width + 1) / 2 : p.width;
    for (int i = threadIdx.x; i < side * words; i += THREADS) {
        const int y = i / words, x = i % words * 4;
        const u32 now = four_samples(in, plane, row * side + y, column * side + x, height, width);
        u32* held = (u32*)(p.planes[plane].base + (size_t)(row * side + y) * p.tile_columns * side + column * side + x);
        if (plane == 0 && p.analysis_level == 0) {
            const u32 difference = __vabsdiffu4(*held, now);
            u32 most = 0;
            float* moved = p.moved + (size_t)(row * side + y) * p.tile_columns * side + column * side + x;
            for (int k = 0; k < 4; k++) {
                const u32 one = difference >> (8 * k) & 255;
                most = max(most, one);
                moved[k] = (float)one;
            }
            note_motion(tile, y / 16 * 2 + x / 16, 0.0f, (float)most);
        }
        *held = now;
        *(u32*)(tile.pixels[plane] + y * side + x) = now;
    }
}

// One sample of level k from the 2x2 finer ones; the finest are the plane's pixels.
__device__ void add_up(Tile& tile, int plane, bool from_pixels, int side, int y, int x, int& sum, int& squares) {
    sum = squares = 0;
    for (int i = 0; i < 4; i++) {
        const int at = (2 * y + i / 2) * side * 2 + 2 * x + i % 2;
        const int value = from_pixels ? tile.pixels[plane][at] : tile.sums[plane][at];
        sum += value;
        squares += from_pixels ? value * value : tile.squares[plane][at];
    }
}

// Level k of all planes, and its weighted error per sample, in tile.totals.
__device__ void build_level(const Write& p, Tile& tile, int level, int row, int column) {
    const int side = 32 >> level, y = threadIdx.x / side, x = threadIdx.x % side;
    const bool mine = threadIdx.x < side * side;
    int sums[3], squares[3];
    float total = 0.0f;
#pragma unroll
    for (int plane = 0; plane < 3; plane++) {
        const int base = plane && p.halved;
        if (!mine || level <= base) continue;
        add_up(tile, plane, level == base + 1, side, y, x, sums[plane], squares[plane]);
        const float scale = 1.0f / (float)(1 << (2 * (level - base)));
        const float mean = (float)sums[plane] * scale;
        const float error = (float)squares[plane] * scale - mean * mean;
        total += plane ? error * CHROMA_WEIGHT : error;
        float* out = p.planes[plane].levels[level - 1];
        const size_t at = (size_t)(row * side + y) * p.tile_columns * side + column * side + x;
        if (plane == 0 && level == p.analysis_level) {
            note_motion(tile, y * 2 / side * 2 + x * 2 / side, out[at], mean);
            p.moved[at] = fabsf(mean - out[at]);
        }
        out[at] = mean;
    }
    __syncthreads();
#pragma unroll
    for (int plane = 0; plane < 3; plane++) {
        if (!mine || level <= (plane && p.halved)) continue;
        tile.sums[plane][threadIdx.x] = sums[plane];
        tile.squares[plane][threadIdx.x] = squares[plane];
    }
    if (mine) tile.totals[threadIdx.x] = total;
    __syncthreads();
}

// Means of tile.totals over each of the four cells, halving by halving, into the error map of `level`.
__device__ void store_error(const Write& p, Tile& tile, int level, int row, int column) {
    for (int side = 32 >> level; side > 2; side /= 2) {
        const int half = side / 2, y = threadIdx.x / half, x = threadIdx.x % half;
        float mean = 0.0f;
        if (threadIdx.x < half * half) {
            const float* at = tile.totals + 2 * y * side + 2 * x;
            mean = ((at[0] + at[1]) + (at[side] + at[side + 1])) * 0.25f;
        }
        __syncthreads();
        if (threadIdx.x < half * half) tile.totals[threadIdx.x] = mean;
        __syncthreads();
    }
    if (threadIdx.x < 4) {
        const int columns = p.tile_columns * 2, cell = (row * 2 + threadIdx.x / 2) * columns + column * 2 + threadIdx.x % 2;
        p.errors[(size_t)(level - 1) * p.tile_rows * 2 * columns + cell] = fmaxf(tile.totals[threadIdx.x] * 256.0f, 0.0f);
    }
    __syncthreads();
}

__device__ void store_motion(const Write& p, Tile& tile, int row, int column) {
    const int index = row * p.tile_columns + column;
    if (threadIdx.x >= 4 || !p.state->moving || !p.changed[index]) return;
    const int cell = (row * 2 + threadIdx.x / 2) * p.tile_columns * 2 + column * 2 + threadIdx.x % 2;
    p.motion[cell] = fminf(__uint_as_float(tile.moved[threadIdx.x]) * p.inverse_span, 1.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_tiles(Write p) {
    __shared__ Tile tile;
    const FrameInput& in = *p.input;
    const int count = p.state->dirty_count;
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const int index = p.dirty[i], row = index / p.tile_columns, column = index % p.tile_columns;
        if (threadIdx.x < 4) tile.moved[threadIdx.x] = 0;
        __syncthreads();
#pragma unroll
        for (int plane = 0; plane < 3; plane++) take_over(p, in, tile, plane, row, column);
        __syncthreads();
        for (int level = 1; level <= 4; level++) {
            build_level(p, tile, level, row, column);
            store_error(p, tile, level, row, column);
        }
        store_motion(p, tile, row, column);
        __syncthreads();
    }
}
