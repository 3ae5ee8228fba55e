// Which tiles differ from what the texture holds, and whether the frame is a keyframe.
//
// One block of 128 threads per tile. A tile is changed where the mean absolute difference over any 8x8 pixels of any
// plane exceeds the threshold (integer sums, so exact); a block of the picture that its edge cuts counts with the edge
// repeated. The block that finishes last decides what kind of frame this is. Order of `dirty` is arbitrary.
#include "pixels/input.cuh"

struct Change {
    const FrameInput* input;
    FrameState* state;
    const u8* held[3];   // base level of each plane, padded to tiles
    u8* changed;         // [tiles]
    u8* written;         // [tiles]
    int* dirty;          // [tiles]
    float* motion;       // [grid]: cleared; the write kernel fills in the changed tiles
    int* scratch;        // [34]: tickets, changed tiles, histogram of luma less that of the held luma; zero between frames
    double cut_distance; // least distance of histograms for a scene cut
    int cut_tiles;       // least number of changed tiles for a scene cut
    int interval;        // frames between periodic keyframes
    int limits[3];       // the sum of a block's differences must be greater
    int width, height;
    int tile_rows, tile_columns;
    int halved;          // 1: chroma has half the luma's resolution
    int step;            // the histograms take every step-th pixel of every step-th row
};

enum { THREADS = 128, BINS = 32, TICKETS = 0, CHANGED = 1, HISTOGRAM = 2 };

// True where a block of 8x8 samples in the tile's plane differs too much. Warp w looks at rows 8w .. 8w + 7.
__device__ bool whole_blocks_differ(const Change& p, const FrameInput& in, int plane, int row, int column) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int x = column * 32 + (lane & 7) * 4, top = row * 32 + warp * 8;
    const bool there = top < p.height && (x & ~7) < p.width;
    int sum = 0;
    for (int half = 0; half < 2 && there; half++) {
        const int y = top + half * 4 + (lane >> 3);
        const u32 now = four_samples(in, plane, y, x, p.height, p.width);
        sum += __vsadu4(now, *(const u32*)(p.held[plane] + (size_t)y * p.tile_columns * 32 + x));
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 8);
    sum += __shfl_xor_sync(~0u, sum, 16);
    return sum > p.limits[plane];
}

// The same for both planes of halved chroma, in blocks of 4x4 samples. Threads 0-63 look at Cb, the others at Cr.
__device__ bool halved_blocks_differ(const Change& p, const FrameInput& in, int row, int column) {
    const int plane = 1 + (threadIdx.x >> 6), index = threadIdx.x & 63;
    const int y = row * 16 + (index >> 2), x = column * 16 + (index & 3) * 4;
    const int height = (p.height + 1) / 2, width = (p.width + 1) / 2;
    int sum = 0;
    if ((y & ~3) < height && x < width) {
        const u32 now = four_samples(in, plane, y, x, height, width);
        sum = __vsadu4(now, *(const u32*)(p.held[plane] + (size_t)y * p.tile_columns * 16 + x));
    }
    sum += __shfl_xor_sync(~0u, sum, 4);
    sum += __shfl_xor_sync(~0u, sum, 8);
    return sum > p.limits[plane];
}

__device__ void count_histogram(const Change& p, const FrameInput& in, int row, int column, int* bins) {
    const int first_y = (row * 32 + p.step - 1) / p.step, first_x = (column * 32 + p.step - 1) / p.step;
    const int rows = (min(row * 32 + 32, p.height) + p.step - 1) / p.step - first_y;
    const int columns = (min(column * 32 + 32, p.width) + p.step - 1) / p.step - first_x;
    for (int i = threadIdx.x; i < rows * columns; i += THREADS) {
        const int y = (first_y + i / columns) * p.step, x = (first_x + i % columns) * p.step;
        const int now = sample(in, 0, y, x) >> 3, before = p.held[0][(size_t)y * p.tile_columns * 32 + x] >> 3;
        if (now != before) {
            atomicAdd(&bins[now], 1);
            atomicAdd(&bins[before], -1);
        }
    }
}

// Half the L1 distance of the histograms, each smoothed by one bin each way, in [0, 1].
__device__ double histogram_distance(const Change& p) {
    const int samples = ((p.height + p.step - 1) / p.step) * ((p.width + p.step - 1) / p.step);
    long long total = 0;
    for (int bin = -1; bin <= BINS; bin++) {
        long long smooth = 0;
        for (int offset = -1; offset <= 1; offset++) {
            const int at = bin + offset;
            if (at >= 0 && at < BINS) smooth += (offset ? 1 : 2) * (long long)__ldcg(p.scratch + HISTOGRAM + at);
        }
        total += smooth < 0 ? -smooth : smooth;
    }
    return (double)total / (8.0 * samples);
}

__device__ int kind_of_frame(const Change& p, const FrameInput& in, int changed) {
    if (in.anew) return in.anew;
    if (in.discontinuity) return DISCONTINUITY;
    if (changed >= p.cut_tiles && histogram_distance(p) >= p.cut_distance) return CUT;
    return p.state->since_keyframe + 1 >= p.interval ? PERIODIC : NONE;
}

__device__ void decide(const Change& p, const FrameInput& in, int tiles) {
    __shared__ int keyframe;
    if (threadIdx.x == 0) {
        FrameState& state = *p.state;
        const int changed = __ldcg(p.scratch + CHANGED);
        keyframe = kind_of_frame(p, in, changed);
        state.number = in.number;
        state.changed_count = changed;
        state.dirty_count = keyframe ? tiles : changed;
        state.keyframe = keyframe;
        state.forgets = keyframe != NONE && keyframe != PERIODIC;
        state.since_keyframe = keyframe ? 0 : state.since_keyframe + 1;
        state.moving = !state.forgets && changed > 0;
        state.rests = !state.dirty_count && !in.fed && state.settled;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HISTOGRAM + BINS; i += THREADS) p.scratch[i] = 0;
    if (keyframe == NONE) return;
    for (int i = threadIdx.x; i < tiles; i += THREADS) {
        p.dirty[i] = i;
        p.written[i] = 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) change(Change p) {
    __shared__ int bins[BINS];
    __shared__ bool last;
    const FrameInput& in = *p.input;
    const int tile = blockIdx.x, row = tile / p.tile_columns, column = tile % p.tile_columns;
    if (threadIdx.x < BINS) bins[threadIdx.x] = 0;
    if (threadIdx.x < 4) p.motion[(row * 2 + threadIdx.x / 2) * p.tile_columns * 2 + column * 2 + threadIdx.x % 2] = 0;
    bool differs = in.anew != NONE;
    if (!differs) {  // the same for all threads
        differs = whole_blocks_differ(p, in, 0, row, column);
        if (p.halved) differs |= halved_blocks_differ(p, in, row, column);
        else differs |= whole_blocks_differ(p, in, 1, row, column) | whole_blocks_differ(p, in, 2, row, column);
    }
    differs = __syncthreads_or(differs);
    if (!in.anew) count_histogram(p, in, row, column, bins);
    __syncthreads();
    if (threadIdx.x < BINS && bins[threadIdx.x]) atomicAdd(p.scratch + HISTOGRAM + threadIdx.x, bins[threadIdx.x]);
    if (threadIdx.x == 0) {
        p.changed[tile] = p.written[tile] = differs;
        if (differs) p.dirty[atomicAdd(p.scratch + CHANGED, 1)] = tile;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(p.scratch + TICKETS, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        __threadfence();
        decide(p, in, gridDim.x);
    }
}
