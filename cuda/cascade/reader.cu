// Error of the reader's picture per cell, where it was painted or the texture was written since; and the residual error
// after tokens of each LOD.
//
// One block of 256 threads per tile, four samples per thread. Sums of squares are whole numbers, so the result equals
// pipeline/cpu/reader.py bit for bit. A frame that begins a new scene empties the reader's picture.
#include "cascade.cuh"
#include "spec/change.h"
#include "spec/errors.h"

const int THREADS = 256;

struct Compare {
    const FrameState* frame;
    const u8* written;    // [tiles]
    const u8* changed;    // [tiles]
    const int* age;       // [cells], as the frame before left it: 0 where that changed the cell
    u8* stale;            // [tiles]: painted since the last comparison
    u8* seen;             // [cells]: 1 + the LOD at which the reader saw the cell last, and PAINTED; 0: never
    float* error;         // [cells]: squared error, 8-bit units, summed over the cell's pixels
    float* residual;      // [levels][cells]: error after a token of LOD 1, 2 ... was shown; 0: unknown
    float* peak;          // [cells]: the greatest participation since the reader saw the cell last
    const u8* pixels[3];  // Y, Cb, Cr of the texture's base, whole tiles
    const u8* reader[3];  // the same of the reader's picture
    int base[3];          // level of each plane's base
    int tile_rows, tile_columns;
    int span_columns;  // cells along a row of the reader's picture
    int levels;
    double noise;  // of change.cu, as are those that follow
    double most;
    double per_square;  // squared error of a cell that noise of a mean absolute difference of 1 makes
};

__device__ inline int square_sum(uchar4 a, uchar4 b)
{
    int x = a.x - b.x, y = a.y - b.y, z = a.z - b.z, w = a.w - b.w;
    return x * x + y * y + z * z + w * w;
}

// Adds the squared differences of this thread's four samples to those of their cell.
__device__ inline void add_plane(const Compare& p, int index, int tile_row, int tile_column, int* sums)
{
    int side = TILE >> p.base[index], groups = side / 4, row = threadIdx.x / groups,
        column = 4 * (threadIdx.x % groups);
    if (row >= side) return;
    int y = tile_row * side + row, x = tile_column * side + column;
    const u8* ours = p.pixels[index] + y * (p.tile_columns * side) + x;
    const u8* theirs = p.reader[index] + y * (p.span_columns * CELL >> p.base[index]) + x;
    int sum = square_sum(*reinterpret_cast<const uchar4*>(ours), *reinterpret_cast<const uchar4*>(theirs));
    atomicAdd(sums + 2 * (row / (side / 2)) + column / (side / 2), sum);
}

// Whether a tile changed in the frame before, and not in this one.
__device__ inline int has_settled(const Compare& p, int row, int column)
{
    if (row < 0 || column < 0 || row >= p.tile_rows || column >= p.tile_columns) return 0;
    int changed = p.changed[row * p.tile_columns + column], age = p.age[2 * row * (2 * p.tile_columns) + 2 * column];
    return !changed & !age;
}

// A residual error holds until the cell changes, or until a change in one of the tiles that touch it ends, whose
// samples the enlarged token mixes in.
__device__ inline void update_residuals(const Compare& p, int row, int column, int part, int cell)
{
    int count = 4 * p.tile_rows * p.tile_columns, changed = p.changed[row * p.tile_columns + column];
    int down = part / 2 ? 1 : -1, across = part % 2 ? 1 : -1;
    int seen = p.seen[cell], settled = has_settled(p, row + down, column) | has_settled(p, row, column + across)
                                       | has_settled(p, row + down, column + across);  // all are fetched at once
    if (p.frame->new_scene || changed || settled)
        for (int level = 0; level < p.levels; level++) p.residual[level * count + cell] = 0.0f;
    if (!(seen & PAINTED)) return;
    int lod = (seen & ~PAINTED) - 1;
    p.seen[cell] = 1 + lod;
    if (lod && !changed) p.residual[(lod - 1) * count + cell] = p.error[cell];
}

// The squared error of a cell between two pictures of the same that differ by the frame's noise.
__device__ inline float noise_error(const Compare& p)
{
    double grey = fmin(p.noise * p.frame->noise / NOISE_PER_GREY, p.most);
    return (float)(p.per_square * grey * grey);
}

extern "C" __global__ void __launch_bounds__(THREADS) compare(const __grid_constant__ Compare p)
{
    __shared__ int sums[3][4];
    int tile = blockIdx.x, row = tile / p.tile_columns, column = tile % p.tile_columns;
    if (p.frame->unchanged) return;
    int cell = (2 * row + threadIdx.x / 2) * (2 * p.tile_columns) + 2 * column + threadIdx.x % 2;
    int painted = p.stale[tile];
    if (!(painted || p.written[tile])) {
        if (threadIdx.x < 4) update_residuals(p, row, column, threadIdx.x, cell);
        return;
    }
    if (threadIdx.x < 12) sums[threadIdx.x / 4][threadIdx.x % 4] = 0;
    __syncthreads();
    if (!p.frame->new_scene)
        for (int i = 0; i < 3; i++) add_plane(p, i, row, column, sums[i]);
    __syncthreads();
    if (threadIdx.x >= 4) return;
    if (p.frame->new_scene) {
        p.seen[cell] = 0;
        p.peak[cell] = 0.0f;
    }
    float total = 0.0f;
    for (int i = 0; i < 3; i++) {
        float mean = (float)sums[i][threadIdx.x] / (float)(CELL * CELL >> (2 * p.base[i]));
        total += i ? CHROMA_WEIGHT * mean : mean;
    }
    float error = p.seen[cell] ? total * (float)(CELL * CELL) : UNSEEN, before = p.error[cell];
    // A keyframe writes the noise of another frame. It is not worth a token: that only exchanges one noise for another.
    int same = !painted && !p.changed[tile] && fabsf(error - before) <= noise_error(p);
    p.error[cell] = same ? before : error;
    update_residuals(p, row, column, threadIdx.x, cell);
    if (threadIdx.x == 0) p.stale[tile] = 0;
}
