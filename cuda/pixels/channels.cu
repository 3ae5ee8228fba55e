// The channels with local reach, from the levels, on the Grid in float32: edges, detail, lowpass and saliency.
//
// A block of 256 threads per tile, which works where the tile or one of its eight neighbours was written: a change
// reaches one cell. It also lists the tiles for write_layers. Maxima are taken per cell before roots and scales, as on
// the CPU.
#include "pixels/local.cuh"

struct Cells {
    float low_rows[4][CELL];  // sums of the rows of lowpass
    u32 greatest[3][4];       // squared gradients of both roots, and detail; bits, not negative
};

// Lanes of a warp that work on the left one of two cells side by side, by analysis level.
__device__ const u32 LEFT_LANES[3] = {0x0000ffff, 0x00ff00ff, 0x0f0f0f0f};

// The greatest value of each cell; `value` is not negative. Every warp that comes here is complete.
__device__ void keep_greatest(const Channels& p, u32* greatest, int down, bool right, float value)
{
    const u32 lanes = right ? ~LEFT_LANES[p.level] : LEFT_LANES[p.level];
    const u32 most = __reduce_max_sync(lanes, __float_as_uint(value));
    if ((threadIdx.x & 31) == __ffs(lanes) - 1) atomicMax(&greatest[down * 2 + right], most);
}

__device__ void find_detail(const Channels& p, Tile& tile, Cells& cells)
{
    const int side = TILE >> p.level, rim = side + 2;
    for (int i = threadIdx.x; i < side * side; i += THREADS) {
        const int y = i / side, x = i % side, at = (y + 1) * rim + x + 1, down = y * 2 / side;
        const bool right = x * 2 >= side;
        const float low = enlarged(tile.low, LOW_RIM, (TILE / LOW_SIDE) >> p.level, y, x);
        tile.lows[i] = low;
        keep_greatest(p, cells.greatest[0], down, right, squared_gradient(tile.bright + at, rim));
        keep_greatest(p, cells.greatest[1], down, right, squared_gradient(tile.dark + at, rim));
        keep_greatest(p, cells.greatest[2], down, right, fabsf(tile.light[at] - low));
    }
}

__device__ void sum_rows(const Channels& p, const Tile& tile, Cells& cells)
{
    const int side = CELL >> p.level, cell = threadIdx.x / side, y = threadIdx.x % side;
    if (cell >= 4) return;
    const float* at = tile.lows + ((cell / 2 * side + y) * 2 + cell % 2) * side;
    float sum = 0.0f;
    for (int x = 0; x < side; x++) sum += at[x];
    cells.low_rows[cell][y] = sum;
}

__device__ void store(const Channels& p, const Tile& tile, const Cells& cells, int row, int column)
{
    if (threadIdx.x >= 4) return;
    const int down = threadIdx.x / 2, across = threadIdx.x % 2, side = CELL >> p.level, cell = threadIdx.x;
    const int at = (row * 2 + down) * p.tile_columns * 2 + column * 2 + across;
    p.edges[at] = fminf(sqrtf(__uint_as_float(cells.greatest[0][cell]) / p.span), 1.0f);
    p.edges_inverted[at] = fminf(sqrtf(__uint_as_float(cells.greatest[1][cell]) / p.span), 1.0f);
    p.highpass[at] = __uint_as_float(cells.greatest[2][cell]) / p.span;
    float low = 0.0f, contrast = 0.0f;
    for (int y = 0; y < side; y++) low += cells.low_rows[cell][y];
    for (int y = 0; y < CENTRE_SIDE / 2; y++) {
        const float* row_of = tile.contrast + (down * (CENTRE_SIDE / 2) + y) * CENTRE_SIDE + across * (CENTRE_SIDE / 2);
        contrast += row_of[0] + row_of[1] + row_of[2] + row_of[3];
    }
    p.lowpass[at] = low / (float)(side * side) / p.span;
    p.saliency[at] = contrast / (CENTRES / 4);
}

// Whether there is anything to do: the tile or a neighbour was written, or the stack still shows motion of the last
// frame.
__device__ bool touched(const Channels& p, int row, int column)
{
    bool near = false;
    if (threadIdx.x < 9) {
        const int y = row + (int)threadIdx.x / 3 - 1, x = column + (int)threadIdx.x % 3 - 1;
        near = y >= 0 && x >= 0 && y < p.tile_rows && x < p.tile_columns && p.written[y * p.tile_columns + x];
    }
    if (threadIdx.x == 9) near = p.shown[row * p.tile_columns + column];
    return __syncthreads_or(near);
}

extern "C" __global__ void __launch_bounds__(THREADS) local_channels(Channels p)
{
    __shared__ Tile tile;
    __shared__ Cells cells;
    const int row = blockIdx.x / p.tile_columns, column = blockIdx.x % p.tile_columns;
    if (!touched(p, row, column)) return;
    if (threadIdx.x == 0) p.touched[atomicAdd(p.touched_count, 1)] = blockIdx.x;
    if (threadIdx.x < 12) cells.greatest[threadIdx.x / 4][threadIdx.x % 4] = 0;
    load(p, tile, row, column);
    __syncthreads();
    find_detail(p, tile, cells);
    find_contrast(p, tile, row, column);
    __syncthreads();
    sum_rows(p, tile, cells);
    __syncthreads();
    store(p, tile, cells, row, column);
}
