// Which tiles differ from what the texture holds, and whether the frame is a keyframe.
//
// One block of 128 threads per tile. A tile is changed where the mean absolute difference over any 8x8 pixels of any
// plane exceeds the threshold (integer sums, so exact); a block of the picture that its edge cuts counts with the edge
// repeated. The block that finishes last decides what kind of frame this is. Order of `dirty` is arbitrary.
//
// The threshold is at least a multiple of the noise: the lower quartile, over the top left 8x8 pixels of each tile, of
// what they differ by from the frame before. It applies from the next frame on. Equals pipeline/cpu/noise.py.
#include "pixels/cuts.cuh"
#include "pixels/input.cuh"
#include "spec/change.h"
#include "spec/geometry.h"

struct Change {
    const FrameInput* input;
    FrameState* state;
    const u8* held[3];   // base level of each plane, padded to tiles
    u8* changed;         // [tiles]
    u8* written;         // [tiles]
    int* dirty;          // [tiles]
    float* motion;       // [grid]: cleared; the write kernel fills in the changed tiles
    u32* before;         // [tiles][16]: luma of the tile's top left 8x8 pixels in the frame before
    int* scratch;        // [SCRATCH], zero between frames: tickets, changed tiles, histogram of noise
    int* touched_count;  // of local.cuh: set to zero
    Cuts cuts;
    int interval;      // frames between periodic keyframes
    int offset;        // frames by which the first one comes earlier, modulo the interval
    double threshold;  // mean difference of a block, in grey values, that must be exceeded
    double noise;      // the same, times what the noise is
    double most;       // greatest threshold that follows from noise
    int samples;       // of a block of chroma
    int width, height;
    int tile_rows, tile_columns;
    int halved;  // 1: chroma has half the luma's resolution
};

const int THREADS = 128;
// Blocks on a multiprocessor: the rare search in cuts.cuh must not take the registers that they need.
const int RESIDENT = 16;
const int LEVELS = NOISE_LEVELS;
const int BLOCK_PIXELS = BLOCK * BLOCK, BLOCK_WORDS = BLOCK_PIXELS / 4;

enum Scratch { TICKETS = 0, CHANGED = 1, NOISE = 2, SCRATCH = NOISE + LEVELS };

// A block's sum of differences must be greater; of luma, then of chroma.
struct Limits {
    int luma, chroma;
};

__device__ Limits limits_of(const Change& p)
{
    const double threshold = fmax(p.threshold, fmin(p.noise * p.state->noise / NOISE_PER_GREY, p.most));
    return {(int)floor(threshold * BLOCK_PIXELS), (int)floor(threshold * p.samples)};
}

// Counts the noise of the tile's top left 8x8 pixels. Where most differences have one sign, the picture changed: that
// is no noise. Lanes 0 .. 15 of the first warp come here.
__device__ void note_noise(const Change& p, const FrameInput& in, int tile, int row, int column)
{
    const int y = row * TILE + threadIdx.x / 2, x = column * TILE + threadIdx.x % 2 * 4;
    if (row * TILE + BLOCK > p.height || column * TILE + BLOCK > p.width) return;
    u32* before = p.before + tile * BLOCK_WORDS + threadIdx.x;
    const u32 now = four_samples<0>(in, y, x, p.height, p.width), then = *before;
    *before = now;
    const int sum = __reduce_add_sync(0xffffu, (int)__vsadu4(now, 0) - (int)__vsadu4(then, 0));
    const int apart = __reduce_add_sync(0xffffu, (int)__vsadu4(now, then));
    if (threadIdx.x || in.keyframe) return;
    atomicAdd(p.scratch + NOISE + min((2 * abs(sum) > apart ? 0 : apart) / (BLOCK_PIXELS / NOISE_PER_GREY), LEVELS - 1),
              1);
}

// Adds up differences over the lanes that share a block, by the bits in which their numbers differ.
__device__ int over_lanes(int sum, int first, int second, int third)
{
    sum += __shfl_xor_sync(~0u, sum, first);
    sum += __shfl_xor_sync(~0u, sum, second);
    return third ? sum + __shfl_xor_sync(~0u, sum, third) : sum;
}

__device__ u32 held_word(const Change& p, int plane, int stride, int y, int x)
{
    return *(const u32*)(p.held[plane] + (size_t)y * stride + x);
}

// Sum of differences over 8x8 samples of a plane with the luma's resolution. Warp w looks at rows 8w .. 8w + 7. Of
// luma, `halves` gets the sums over the warp's halves of the tile's cells.
template <int PLANE>
__device__ bool whole_blocks_differ(const Change& p, const FrameInput& in, int row, int column, int limit,
                                    u32 (*halves)[2])
{
    const int lane = threadIdx.x & 31, stride = p.tile_columns * TILE;
    const int x = column * TILE + (lane & 7) * 4, top = row * TILE + (threadIdx.x >> 5) * 8, y = top + (lane >> 3);
    int sum = 0;
    u32 sums = 0;
    if (top < p.height && (x & ~7) < p.width) {
        const u32 before[2] = {held_word(p, PLANE, stride, y, x), held_word(p, PLANE, stride, y + 4, x)};
        u32 now[2];
        four_samples_twice<PLANE>(in, y, x, p.height, p.width, now);
        sum = __vsadu4(now[0], before[0]) + __vsadu4(now[1], before[1]);
        if (PLANE == 0) sums = sums_of(now[0], before[0]) + sums_of(now[1], before[1]);
    }
    if (PLANE == 0) {
        sums = over_cell(sums);
        if ((lane & ~4) == 0) halves[threadIdx.x >> 5][lane >> 2] = sums;
    }
    return over_lanes(sum, 1, 8, 16) > limit;
}

// The same for halved chroma, in blocks of 4x4 samples. Threads 0-63 look at Cb, the others at Cr.
template <int PLANE>
__device__ int halved_difference(const Change& p, const FrameInput& in, int row, int column)
{
    const int index = threadIdx.x & 63, y = row * (TILE / 2) + (index >> 2), x = column * (TILE / 2) + (index & 3) * 4;
    const int height = (p.height + 1) / 2, width = (p.width + 1) / 2;
    if ((y & ~3) >= height || x >= width) return 0;
    const u32 before = held_word(p, PLANE, p.tile_columns * (TILE / 2), y, x);
    return __vsadu4(four_samples<PLANE>(in, y, x, height, width), before);
}

__device__ uint4 cells_of(const u32 (*halves)[2])
{
    return {halves[0][0] + halves[1][0], halves[0][1] + halves[1][1], halves[2][0] + halves[3][0],
            halves[2][1] + halves[3][1]};
}

__device__ bool tile_differs(const Change& p, const FrameInput& in, int row, int column, u32 (*halves)[2])
{
    const Limits limits = limits_of(p);
    const bool luma = whole_blocks_differ<0>(p, in, row, column, limits.luma, halves);
    if (!p.halved)
        return luma | whole_blocks_differ<1>(p, in, row, column, limits.chroma, halves)
               | whole_blocks_differ<2>(p, in, row, column, limits.chroma, halves);
    const bool first = threadIdx.x < 64;  // whole warps
    const int chroma = first ? halved_difference<1>(p, in, row, column) : halved_difference<2>(p, in, row, column);
    return luma | (over_lanes(chroma, 4, 8, 0) > limits.chroma);
}

__device__ int interval_of(const Change& p, const FrameInput& in) { return in.interval ? in.interval : p.interval; }

__device__ int kind_of_frame(const Change& p, const FrameInput& in, bool cut)
{
    if (in.keyframe) return in.keyframe;
    if (in.discontinuity) return DISCONTINUITY;
    if (cut) return CUT;
    return p.state->since_keyframe + 1 >= interval_of(p, in) ? PERIODIC : NONE;
}

// The lower quartile of the noise that was counted; by the whole block.
__device__ int quartile(const Change& p)
{
    __shared__ int warps[THREADS / 32], least;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, level = 2 * threadIdx.x;
    const int one = __ldcg(p.scratch + NOISE + level), other = __ldcg(p.scratch + NOISE + level + 1);
    int found = one + other, count = 0;  // up to this thread's levels
    for (int by = 1; by < 32; by *= 2) {
        const int before = __shfl_up_sync(~0u, found, by);
        if (lane >= by) found += before;
    }
    if (lane == 31) warps[warp] = found;
    if (threadIdx.x == 0) least = LEVELS;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++) {
        count += warps[i];
        if (i < warp) found += warps[i];
    }
    if (4 * found >= count) atomicMin(&least, 4 * (found - other) >= count ? level : level + 1);
    __syncthreads();
    return least;
}

__device__ void decide(const Change& p, const FrameInput& in, int tiles)
{
    __shared__ int keyframe;
    const int noise = quartile(p), changed = __ldcg(p.scratch + CHANGED);
    const bool cut = is_cut(p.cuts, tiles, changed, in.keyframe || in.discontinuity);
    if (threadIdx.x == 0) {
        FrameState& state = *p.state;
        *p.touched_count = 0;
        keyframe = kind_of_frame(p, in, cut);
        state.number = in.number;
        state.changed_count = changed;
        state.dirty_count = keyframe ? tiles : changed;
        state.keyframe = keyframe;
        state.new_scene = keyframe != NONE && keyframe != PERIODIC;
        state.noise = state.new_scene ? 0 : noise;
        const int interval = interval_of(p, in), following = state.since_keyframe + 1;
        state.since_keyframe = in.keyframe ? p.offset % interval : following >= interval ? 0 : following;
        state.budget = in.budget;
        state.moving = !state.new_scene && changed > 0;
        state.unchanged = !state.dirty_count && !in.feedback && state.settled;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SCRATCH; i += THREADS) p.scratch[i] = 0;
    if (keyframe == NONE) return;
    for (int i = threadIdx.x; i < tiles; i += THREADS) {
        p.dirty[i] = i;
        p.written[i] = 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) change(Change p)
{
    __shared__ u32 halves[THREADS / 32][2];  // sums over the upper or lower halves of the tile's cells
    __shared__ bool last;
    const FrameInput in = *p.input;
    const int tile = blockIdx.x, row = tile / p.tile_columns, column = tile % p.tile_columns;
    if (threadIdx.x < 4) p.motion[(row * 2 + threadIdx.x / 2) * p.tile_columns * 2 + column * 2 + threadIdx.x % 2] = 0;
    if (threadIdx.x < BLOCK_WORDS) note_noise(p, in, tile, row, column);
    const bool differs = __syncthreads_or(in.keyframe || tile_differs(p, in, row, column, halves));
    if (threadIdx.x == 0) {
        const bool whole = (row + 1) * TILE <= p.height && (column + 1) * TILE <= p.width;
        if (whole && !in.keyframe) p.cuts.cells[tile] = cells_of(halves);
        p.changed[tile] = p.written[tile] = differs;
        if (differs) p.dirty[atomicAdd(p.scratch + CHANGED, 1)] = tile;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(p.scratch + TICKETS, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        decide(p, in, gridDim.x);
    }
}
