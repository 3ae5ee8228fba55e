// Scene cuts: whether the structure of a frame resembles that of the frame before. Equals pipeline/cpu/cuts.py.
//
// The structure are the Haar details of each 32x32 tile that lies wholly in the picture, from the sums over its 16x16
// cells. A cell's word holds the sum of the frame in its lower half, and that of what the texture holds in its upper.
// All sums are whole numbers, so their order does not matter.
#pragma once
#include "spec/geometry.h"
#include "state.cuh"

// Carried from frame to frame; zero at first.
struct CutState {
    int unsteady;   // 1: the frame before did not resemble the one before it
    int has_shown;  // 1: `shown` is that of the last frame that shows anything, where the frame before shows nothing
};

struct Cuts {
    CutState* state;
    uint4* cells;         // [tiles]: words of a tile's cells, row by row; zero for tiles that the edge cuts
    uint4* shown;         // [tiles]: those of a frame after the last one that shows anything
    double least_energy;  // of a structure that shows anything
    double alike;         // least correlation of frames that show the same
    int share;            // least number of changed tiles
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

// Sums over all tiles of the products of the frame's structure and that held, of the upper halves of `held`; by a whole
// block of at least PRODUCTS threads. `sums` is shared.
__device__ inline void add_products(const uint4* cells, const uint4* held, int tiles, u64 sums[PRODUCTS])
{
    if (threadIdx.x < PRODUCTS) sums[threadIdx.x] = 0;
    __syncthreads();
    long long own[PRODUCTS] = {0};
#pragma unroll 8  // so that loads are in flight together
    for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
        const uint4 words = __ldcg(cells + tile);
        const Details now = details_of(words, 0), before = details_of(held == cells ? words : held[tile], 16);
        own[NOW] += product(now, now);
        own[HELD] += product(before, before);
        own[NOW_HELD] += product(now, before);
    }
    for (int i = 0; i < PRODUCTS; i++) {
        for (int by = 16; by; by /= 2) own[i] += __shfl_xor_sync(~0u, own[i], by);
        if (threadIdx.x % 32 == 0) atomicAdd(sums + i, (u64)own[i]);
    }
    __syncthreads();
}

// Whether the sums are those of two structures that resemble each other.
__device__ inline bool resemble(const Cuts& p, const u64 sums[PRODUCTS])
{
    return (double)(long long)sums[NOW_HELD] / sqrt((double)sums[NOW] * (double)sums[HELD]) >= p.alike;
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
    if (!before && has_shown) {
        __syncthreads();  // the sums have been read
        add_products(p.cells, p.shown, tiles, sums);
    }
    const bool alike = !(before || has_shown) || resemble(p, sums);
    if (threadIdx.x == 0) p.state->unsteady = !alike;
    return !unsteady && !alike;
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
