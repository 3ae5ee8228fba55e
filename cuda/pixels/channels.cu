// The channels with local reach, from the levels, on the Grid in float32: edges, detail, lowpass and saliency.
//
// A block of 256 threads per tile, which works where the tile or one of its eight neighbours was written: a change
// reaches one cell. Maxima are taken per cell before roots and scales, as on the CPU.
#include "state.cuh"

struct Levels {
    const u8* base;         // luma only: level 0
    const float* levels[4]; // level 1 .. 4; null up to the plane's own base
};

struct Channels {
    const FrameState* state;
    const u8* written;   // [tiles]
    Levels planes[3];
    float* edges;        // [grid] each
    float* edges_inverted;
    float* highpass;
    float* lowpass;
    float* saliency;
    float black, span;   // of luma, in 8-bit units
    float luma_gain;     // what |centre - surround| of luma, and of the opponent colours, counts in saliency
    float chroma_gain;
    int tile_rows, tile_columns;
    int level;           // analysis level, 0..2
};

enum { THREADS = 256, RIM = 34 };

struct Tile {
    float light[RIM * RIM];    // luma above black, in 8-bit units, with one sample around the tile
    float bright[RIM * RIM];   // its root
    float dark[RIM * RIM];     // root of white less luma
    float low[6 * 6];          // luma above black at level 3, with a rim
    float surround[3][4 * 4];  // luma and opponent colours at level 4, with a rim
    float lows[32 * 32];       // lowpass at the analysis level
    float contrast[8 * 8];     // saliency at level 2
    float low_rows[4][16];     // per cell: sums of the rows of lowpass
    u32 greatest[3][4];        // per cell: squared gradients of both roots, and detail; bits, not negative
};

__device__ float luma_at(const Channels& p, int level, int y, int x) {
    const int height = p.tile_rows * 32 >> level, width = p.tile_columns * 32 >> level;
    const size_t at = (size_t)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1);
    return level ? p.planes[0].levels[level - 1][at] : (float)p.planes[0].base[at];
}

__device__ float above_black(const Channels& p, float luma) {
    return fminf(fmaxf(luma - p.black, 0.0f), p.span);
}

// Luma, red-green and blue-yellow of a sample of level 2 .. 4, the latter two up to a constant (BT.601's matrix).
__device__ void opponents(const Channels& p, int level, int y, int x, float out[3]) {
    const int height = p.tile_rows * 32 >> level, width = p.tile_columns * 32 >> level;
    const size_t at = (size_t)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1);
    const float cb = p.planes[1].levels[level - 1][at], cr = p.planes[2].levels[level - 1][at];
    out[0] = p.planes[0].levels[level - 1][at];
    out[1] = cr * 1.058f + cb * 0.172f;
    out[2] = cb * 0.972f + cr * -0.172f;
}

// Bilinear between the samples of a rimmed array of `stride` columns: sample i of a tile that is `factor` times finer.
__device__ float enlarged(const float* rimmed, int stride, int factor, int y, int x) {
    const float from_y = ((float)y + 0.5f) / factor - 0.5f, from_x = ((float)x + 0.5f) / factor - 0.5f;
    const float top = floorf(from_y), left = floorf(from_x), down = from_y - top, right = from_x - left;
    const float* at = rimmed + ((int)top + 1) * stride + (int)left + 1;
    const float upper = at[0] * (1.0f - right) + at[1] * right;
    const float lower = at[stride] * (1.0f - right) + at[stride + 1] * right;
    return upper * (1.0f - down) + lower * down;
}

__device__ float squared_gradient(const float* at, int stride) {
    const float above = at[-stride] * 0.5f + (at[-stride - 1] + at[-stride + 1]) * 0.25f;
    const float below = at[stride] * 0.5f + (at[stride - 1] + at[stride + 1]) * 0.25f;
    const float across = (at[1] - at[-1]) * 0.5f
        + ((at[1 - stride] - at[-1 - stride]) + (at[1 + stride] - at[-1 + stride])) * 0.25f;
    const float down = below - above;
    return across * across + down * down;
}

__device__ void load(const Channels& p, Tile& tile, int row, int column) {
    const int side = 32 >> p.level, rim = side + 2;
    for (int i = threadIdx.x; i < rim * rim; i += THREADS) {
        const int y = row * side + i / rim - 1, x = column * side + i % rim - 1;
        const float light = above_black(p, luma_at(p, p.level, y, x));
        tile.light[i] = light;
        tile.bright[i] = sqrtf(light);
        tile.dark[i] = sqrtf(p.span - light);
    }
    if (threadIdx.x < 36) {
        const int y = row * 4 + threadIdx.x / 6 - 1, x = column * 4 + threadIdx.x % 6 - 1;
        tile.low[threadIdx.x] = above_black(p, luma_at(p, 3, y, x));
    }
    if (threadIdx.x >= 64 && threadIdx.x < 80) {
        const int i = threadIdx.x - 64;
        float values[3];
        opponents(p, 4, row * 2 + i / 4 - 1, column * 2 + i % 4 - 1, values);
        for (int k = 0; k < 3; k++) tile.surround[k][i] = values[k];
    }
    if (threadIdx.x < 12) tile.greatest[threadIdx.x / 4][threadIdx.x % 4] = 0;
}

// Lanes of a warp that work on the left one of two cells side by side, by analysis level.
__device__ const u32 LEFT_LANES[3] = {0x0000ffff, 0x00ff00ff, 0x0f0f0f0f};

// The greatest value of each cell; `value` is not negative. Every warp that comes here is complete.
__device__ void keep_greatest(const Channels& p, u32* greatest, int down, bool right, float value) {
    const u32 lanes = right ? ~LEFT_LANES[p.level] : LEFT_LANES[p.level];
    const u32 most = __reduce_max_sync(lanes, __float_as_uint(value));
    if ((threadIdx.x & 31) == __ffs(lanes) - 1) atomicMax(&greatest[down * 2 + right], most);
}

__device__ void find_detail(const Channels& p, Tile& tile) {
    const int side = 32 >> p.level, rim = side + 2;
    for (int i = threadIdx.x; i < side * side; i += THREADS) {
        const int y = i / side, x = i % side, at = (y + 1) * rim + x + 1, down = y * 2 / side;
        const bool right = x * 2 >= side;
        const float low = enlarged(tile.low, 6, 8 >> p.level, y, x);
        tile.lows[i] = low;
        keep_greatest(p, tile.greatest[0], down, right, squared_gradient(tile.bright + at, rim));
        keep_greatest(p, tile.greatest[1], down, right, squared_gradient(tile.dark + at, rim));
        keep_greatest(p, tile.greatest[2], down, right, fabsf(tile.light[at] - low));
    }
}

// Centre-surround contrast at level 2, clipped to 1.
__device__ void find_contrast(const Channels& p, Tile& tile, int row, int column) {
    if (threadIdx.x >= 64) return;
    const int y = threadIdx.x / 8, x = threadIdx.x % 8;
    float centre[3], difference[3];
    opponents(p, 2, row * 8 + y, column * 8 + x, centre);
    for (int k = 0; k < 3; k++) difference[k] = fabsf(centre[k] - enlarged(tile.surround[k], 4, 4, y, x));
    const float colour = difference[1] + difference[2];
    tile.contrast[threadIdx.x] = fminf(difference[0] * p.luma_gain + colour * p.chroma_gain, 1.0f);
}

__device__ void sum_rows(const Channels& p, Tile& tile) {
    const int side = 16 >> p.level, cell = threadIdx.x / side, y = threadIdx.x % side;
    if (cell >= 4) return;
    const float* at = tile.lows + ((cell / 2 * side + y) * 2 + cell % 2) * side;
    float sum = 0.0f;
    for (int x = 0; x < side; x++) sum += at[x];
    tile.low_rows[cell][y] = sum;
}

__device__ void store(const Channels& p, Tile& tile, int row, int column) {
    if (threadIdx.x >= 4) return;
    const int down = threadIdx.x / 2, across = threadIdx.x % 2, side = 16 >> p.level, cell = threadIdx.x;
    const int at = (row * 2 + down) * p.tile_columns * 2 + column * 2 + across;
    p.edges[at] = fminf(sqrtf(__uint_as_float(tile.greatest[0][cell]) / p.span), 1.0f);
    p.edges_inverted[at] = fminf(sqrtf(__uint_as_float(tile.greatest[1][cell]) / p.span), 1.0f);
    p.highpass[at] = __uint_as_float(tile.greatest[2][cell]) / p.span;
    float low = 0.0f, contrast = 0.0f;
    for (int y = 0; y < side; y++) low += tile.low_rows[cell][y];
    for (int y = 0; y < 4; y++) {
        const float* row_of = tile.contrast + (down * 4 + y) * 8 + across * 4;
        contrast += row_of[0] + row_of[1] + row_of[2] + row_of[3];
    }
    p.lowpass[at] = low / (float)(side * side) / p.span;
    p.saliency[at] = contrast / 16.0f;
}

__device__ bool touched(const Channels& p, int row, int column) {
    bool near = false;
    if (threadIdx.x < 9) {
        const int y = row + (int)threadIdx.x / 3 - 1, x = column + (int)threadIdx.x % 3 - 1;
        near = y >= 0 && x >= 0 && y < p.tile_rows && x < p.tile_columns && p.written[y * p.tile_columns + x];
    }
    return __syncthreads_or(near);
}

extern "C" __global__ void __launch_bounds__(THREADS) local_channels(Channels p) {
    __shared__ Tile tile;
    if (p.state->dirty_count == 0) return;
    const int row = blockIdx.x / p.tile_columns, column = blockIdx.x % p.tile_columns;
    if (!touched(p, row, column)) return;
    load(p, tile, row, column);
    __syncthreads();
    find_detail(p, tile);
    find_contrast(p, tile, row, column);
    __syncthreads();
    sum_rows(p, tile);
    __syncthreads();
    store(p, tile, row, column);
}
