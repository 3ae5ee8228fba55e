// How wrong the reader's picture is, per cell, where it was painted or where the texture was written since.
//
// One block of 256 threads per tile, four samples per thread. Sums of squares are whole numbers, so the result equals
// pipeline/cpu/reader.py bit for bit. A frame that begins a new scene empties the reader's picture.
#include "cascade.cuh"

const int TILE = 32;           // level-0 pixels
const float UNSEEN = 64.0f * 64.0f * 256.0f;
const float CHROMA_WEIGHT = 0.25f;

struct Compare {
    const FrameState* frame;
    const u8* written;    // [tiles]
    u8* stale;            // [tiles]: painted since the last comparison
    u8* seen;             // [cells]: not 0 where the reader holds something
    float* error;         // [cells]: squared error, 8-bit units, summed over the cell's pixels
    const u8* pixels[3];  // Y, Cb, Cr of the texture's base, whole tiles
    const u8* reader[3];  // the same of the reader's picture
    int base[3];          // level of each plane's base
    int tile_columns;
    int span_columns;     // cells along a row of the reader's picture
};

__device__ inline int square_sum(uchar4 a, uchar4 b)
{
    int x = a.x - b.x, y = a.y - b.y, z = a.z - b.z, w = a.w - b.w;
    return x * x + y * y + z * z + w * w;
}

// Adds the squared differences of this thread's four samples to those of their cell.
__device__ inline void add_plane(const Compare& p, int index, int tile_row, int tile_column, int* sums)
{
    int side = TILE >> p.base[index], groups = side / 4, row = threadIdx.x / groups, column = 4 * (threadIdx.x % groups);
    if (row >= side) return;
    int y = tile_row * side + row, x = tile_column * side + column;
    const u8* ours = p.pixels[index] + y * (p.tile_columns * side) + x;
    const u8* theirs = p.reader[index] + y * (p.span_columns * CELL >> p.base[index]) + x;
    int sum = square_sum(*reinterpret_cast<const uchar4*>(ours), *reinterpret_cast<const uchar4*>(theirs));
    atomicAdd(sums + 2 * (row / (side / 2)) + column / (side / 2), sum);
}

extern "C" __global__ void __launch_bounds__(256) compare(const __grid_constant__ Compare p)
{
    __shared__ int sums[3][4];
    int tile = blockIdx.x, row = tile / p.tile_columns, column = tile % p.tile_columns;
    if (p.frame->rests || !(p.stale[tile] || p.written[tile])) return;
    if (threadIdx.x < 12) sums[threadIdx.x / 4][threadIdx.x % 4] = 0;
    __syncthreads();
    if (!p.frame->forgets)
        for (int i = 0; i < 3; i++) add_plane(p, i, row, column, sums[i]);
    __syncthreads();
    if (threadIdx.x >= 4) return;
    int cell = (2 * row + threadIdx.x / 2) * (2 * p.tile_columns) + 2 * column + threadIdx.x % 2;
    if (p.frame->forgets) p.seen[cell] = 0;
    float total = 0.0f;
    for (int i = 0; i < 3; i++) {
        float mean = (float)sums[i][threadIdx.x] / (float)(CELL * CELL >> (2 * p.base[i]));
        total += i ? CHROMA_WEIGHT * mean : mean;
    }
    p.error[cell] = p.seen[cell] ? total * (float)(CELL * CELL) : UNSEEN;
    if (threadIdx.x == 0) p.stale[tile] = 0;
}
