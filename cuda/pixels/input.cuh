// Reading the planes of a frame as it was decoded: any pitch, planar or interleaved chroma, 8 or 16 bits, or grey.
//
// The plane is a template parameter, so that a FrameInput held by value stays in registers.
#pragma once
#include "spec/change.h"
#include "state.cuh"

// One sample, rounded to 8 bits. Row and column lie inside the plane.
template <int PLANE>
__device__ inline u32 sample(const FrameInput& in, int y, int x)
{
    const u8* at = (const u8*)in.planes[PLANE] + (size_t)y * in.pitches[PLANE] + (size_t)x * in.steps[PLANE];
    if (!in.wide) return *at;
    return min(255u, (*(const u16*)at + 128u) >> 8);
}

// Four samples of a row from column x on, x a multiple of 4, the first in the lowest byte; beyond the plane its edge.
template <int PLANE>
__device__ inline u32 four_samples(const FrameInput& in, int y, int x, int height, int width)
{
    const u8* base = (const u8*)in.planes[PLANE];
    if (PLANE && !base) return NO_COLOUR * 0x01010101u;  // in each byte
    y = min(y, height - 1);
    if (!in.wide && x + 3 < width) {
        const int step = in.steps[PLANE];
        const u8* at = base + (size_t)y * in.pitches[PLANE] + x * step;
        if (step == 1 && !((u64)at & 3)) return *(const u32*)at;
        const u32 odd = (u64)at & 1;  // of an interleaved pair the second
        if (step == 2 && !((u64)(at - odd) & 7)) {
            const uint2 pairs = *(const uint2*)(at - odd);
            return __byte_perm(pairs.x, pairs.y, odd ? 0x7531 : 0x6420);
        }
    }
    u32 packed = 0;
    for (int i = 0; i < 4; i++) packed |= sample<PLANE>(in, y, min(x + i, width - 1)) << (8 * i);
    return packed;
}

// The same for rows y and y + 4, with both loads in flight at once.
template <int PLANE>
__device__ inline void four_samples_twice(const FrameInput& in, int y, int x, int height, int width, u32 out[2])
{
    const u8* at = (const u8*)in.planes[PLANE] + (size_t)y * in.pitches[PLANE] + x;
    if (in.planes[PLANE] && !in.wide && in.steps[PLANE] == 1 && y + 4 < height && x + 3 < width
        && !(((u64)at | in.pitches[PLANE]) & 3)) {
        out[0] = *(const u32*)at;
        out[1] = *(const u32*)(at + 4 * (size_t)in.pitches[PLANE]);
        return;
    }
    out[0] = four_samples<PLANE>(in, y, x, height, width);
    out[1] = four_samples<PLANE>(in, y + 4, x, height, width);
}
