// Scene cuts: whether the structure of a frame resembles that of the frame before. Equals pipeline/cpu/cuts.py.
//
// The structure is the Haar details of each 32x32 tile that lies wholly in the picture, from the sums over its 16x16
// cells. A cell's word holds the sum of the frame in its lower half, and that of what the texture holds in its upper.
// All sums are whole numbers, so their order does not matter.
#pragma once
#include "spec/cuts.h"
#include "spec/geometry.h"
#include "state.cuh"

// Carried from frame to frame; zero at first.
struct CutState {
    int unsteady;   // 1: the frame before did not resemble the one before it, as they were
    int has_shown;  // 1: `shown` is that of the last frame that shows anything, where the frame before shows nothing
};

struct Cuts {
    CutState* state;
    uint4* cells;         // [tiles]: words of a tile's cells, row by row; zero for tiles that the edge cuts
    uint4* shown;         // [tiles]: those of a frame after the last one that shows anything
    int* profiles;        // [2 (rows + columns)]: sums over the rows' cells of the frame, of what is held; the columns'
    double plain;         // energy of the details of 2x2 cells that show anything
    double least_energy;  // of a structure that shows anything
    double alike;         // least correlation of frames that show the same
    double displaced;     // the same where one of them is displaced
    int share;            // least number of changed tiles
    int stride;           // tiles in a row of `cells`
    int rows, columns;    // cells of the tiles that lie wholly in the picture
};

enum Product { NOW, HELD, NOW_HELD, PRODUCTS };

// Sum of four samples in each of a frame's word and of the texture's, as in a cell's word.
__device__ inline u32 sums_of(u32 now, u32 held) { return __vsadu4(now, 0) | __vsadu4(held, 0) << 16; }

// Adds up over the 16 lanes of a warp that share a cell, by the bits in which their numbers differ.
__device__ inline u32 over_cell(u32 sums)
{
    for (int bit = 1; bit < 32; bit *= 2)
        if (bit != 4) sums += __shfl_xor_sync(~0u, sums, bit);
    return sums;
}

struct Details {
    int left, upper, diagonal;
};

// Of the words' lower halves, or, shifted by 16, of their upper halves.
__device__ inline Details details_of(uint4 cells, int shift)
{
    const int a = cells.x >> shift & 0xffff, b = cells.y >> shift & 0xffff;
    const int c = cells.z >> shift & 0xffff, d = cells.w >> shift & 0xffff;
    return {a - b + c - d, a + b - c - d, a - b - c + d};
}

__device__ inline long long product(Details one, Details other)
{
    return (long long)one.left * other.left + (long long)one.upper * other.upper
           + (long long)one.diagonal * other.diagonal;
}

__device__ inline void add(long long own[PRODUCTS], Details now, Details held)
{
    own[NOW] += product(now, now);
    own[HELD] += product(held, held);
    own[NOW_HELD] += product(now, held);
}

// Each thread's own sums, summed over a whole block of at least PRODUCTS threads. `sums` is shared.
__device__ inline void sum_up(long long own[PRODUCTS], u64 sums[PRODUCTS])
{
    __syncthreads();  // earlier ones have been read
    if (threadIdx.x < PRODUCTS) sums[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < PRODUCTS; i++) {
        for (int by = 16; by; by /= 2) own[i] += __shfl_xor_sync(~0u, own[i], by);
        if (threadIdx.x % 32 == 0) atomicAdd(sums + i, (u64)own[i]);
    }
    __syncthreads();
}

// Sums over all tiles of the products of the frame's structure and that held, of the upper halves of `held`; by a whole
// block.
__device__ inline void add_products(const uint4* cells, const uint4* held, int tiles, u64 sums[PRODUCTS])
{
    long long own[PRODUCTS] = {0};
#pragma unroll 8  // so that loads are in flight together
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
        const uint4 words = __ldcg(cells + tile);
        add(own, details_of(words, 0), details_of(held == cells ? words : held[tile], 16));
    }
    sum_up(own, sums);
}

// Correlation of two structures, or of two profiles, by their products.
__device__ inline double likeness(long long both, long long one, long long other)
{
    const double energies = (double)one * (double)other;
    return energies > 0 ? (double)both / sqrt(energies) : 0;
}

__device__ inline double likeness(const u64 sums[PRODUCTS]) { return likeness(sums[NOW_HELD], sums[NOW], sums[HELD]); }

__device__ inline u32 word_at(const Cuts& p, const uint4* cells, int y, int x)
{
    return ((const u32*)(cells + (y >> 1) * p.stride + (x >> 1)))[(y & 1) * 2 + (x & 1)];
}

// Of the 2x2 cells from (y, x) on.
__device__ inline Details details_at(const Cuts& p, const uint4* cells, int y, int x, int shift)
{
    return details_of({word_at(p, cells, y, x), word_at(p, cells, y, x + 1), word_at(p, cells, y + 1, x),
                       word_at(p, cells, y + 1, x + 1)},
                      shift);
}

// Whether the frame resembles what is held where that lies so many cells elsewhere and both show something; by a whole
// block.
__device__ inline bool resembles_displaced(const Cuts& p, const uint4* held, int down, int right, u64 sums[PRODUCTS])
{
    long long own[PRODUCTS] = {0};
    const int bottom = p.rows - 1 + min(down, 0), end = p.columns - 1 + min(right, 0);
    for (int y = max(down, 0) + threadIdx.x / 32; y < bottom; y += blockDim.x / 32)
#pragma unroll 1
        for (int x = max(right, 0) + threadIdx.x % 32; x < end; x += 32)
            add(own, details_at(p, p.cells, y, x, 0), details_at(p, held, y - down, x - right, 16));
    sum_up(own, sums);
    const double plain = (double)((p.rows - 1 - abs(down)) * (p.columns - 1 - abs(right))) * p.plain;
    return (double)sums[NOW] >= plain && (double)sums[HELD] >= plain && likeness(sums) >= p.displaced;
}

// By a whole block.
__device__ inline void fill_profiles(const Cuts& p, const uint4* held)
{
    for (int i = threadIdx.x; i < p.rows + p.columns; i += blockDim.x) {
        const bool across = i < p.rows;
        const int place = across ? i : i - p.rows, length = across ? p.rows : p.columns;
        int now = 0, before = 0;
#pragma unroll 4
        for (int j = 0; j < (across ? p.columns : p.rows); j++) {
            const int y = across ? place : j, x = across ? j : place;
            now += word_at(p, p.cells, y, x) & 0xffff;
            before += word_at(p, held, y, x) >> 16;
        }
        int* profile = p.profiles + (across ? 0 : 2 * p.rows) + place;
        profile[0] = now;
        profile[length] = before;
    }
}

// Correlation of the steps of two profiles, where the frame's lies `by` cells behind what is held.
__device__ inline double likeness_of_steps(const int* now, const int* held, int length, int by)
{
    long long both = 0, one = 0, other = 0;
#pragma unroll 1
    for (int i = max(by, 0); i < length - 1 + min(by, 0); i++) {
        const long long a = now[i + 1] - now[i], b = held[i - by + 1] - held[i - by];
        both += a * b;
        one += a * a;
        other += b * b;
    }
    return likeness(both, one, other);
}

// Cells by which the frame is displaced along an axis: where the steps of its profile correlate best with those of what
// is held, the least of several; by a whole warp, all lanes of which learn it.
__device__ inline int displacement(const int* now, const int* held, int length)
{
    const int reach = length / CUT_REACH;
    double best = -2;  // less than any correlation
    int found = reach;
    for (int by = (int)(threadIdx.x % 32) - reach; by <= reach; by += 32) {
        const double here = likeness_of_steps(now, held, length, by);
        if (here <= best) continue;
        best = here;
        found = by;
    }
    for (int bit = 16; bit; bit /= 2) {
        const double there = __shfl_xor_sync(~0u, best, bit);
        const int by = __shfl_xor_sync(~0u, found, bit);
        if (there < best || (there == best && by >= found)) continue;
        best = there;
        found = by;
    }
    return found;
}

// Whether the frame shows the same as what is held, displaced down, across, or both; by a whole block of at least two
// warps, all threads of which learn it.
__device__ inline bool moved(const Cuts& p, const uint4* held, u64 sums[PRODUCTS])
{
    __shared__ int by[2];
    fill_profiles(p, held);
    __syncthreads();
    const int axis = threadIdx.x / 32;
    if (axis < 2) {
        const int length = axis ? p.columns : p.rows;
        const int* profile = p.profiles + axis * 2 * p.rows;
        const int found = displacement(profile, profile + length, length);
        if (threadIdx.x % 32 == 0) by[axis] = found;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 3; i++)
        if (resembles_displaced(p, held, i == 1 ? 0 : by[0], i == 2 ? 0 : by[1], sums)) return true;
    return false;
}

// Whether a frame in which most tiles changed begins a scene; by a whole block, all threads of which learn it.
__device__ inline bool begins_scene(const Cuts& p, int tiles)
{
    __shared__ u64 sums[PRODUCTS];
    const int unsteady = p.state->unsteady, has_shown = p.state->has_shown;
    add_products(p.cells, p.cells, tiles, sums);
    const bool shows = (double)sums[NOW] >= p.least_energy, before = (double)sums[HELD] >= p.least_energy;
    if (!shows) {
        if (!before) return false;
        for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) p.shown[tile] = __ldcg(p.cells + tile);
        if (threadIdx.x == 0) p.state->has_shown = 1;
        return false;
    }
    const uint4* held = before ? p.cells : p.shown;
    if (!before && has_shown) add_products(p.cells, held, tiles, sums);
    const bool alike = !(before || has_shown) || likeness(sums) >= p.alike;
    if (threadIdx.x == 0) p.state->unsteady = !alike;
    return !unsteady && !alike && !moved(p, held, sums);
}

// Whether the frame is a cut, of `changed` tiles; `known`: it is a keyframe anyway, before which nothing counts. By a
// whole block.
__device__ inline bool is_cut(const Cuts& p, int tiles, int changed, bool known)
{
    if (!known && changed >= p.share) return begins_scene(p, tiles);
    if (threadIdx.x == 0) {
        p.state->unsteady = 0;
        if (known) p.state->has_shown = 0;
    }
    return false;
}
