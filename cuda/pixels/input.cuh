// Reading the planes of a frame as it was decoded: any pitch, planar or interleaved chroma, 8 or 16 bits, or grey.
#pragma once
#include "state.cuh"

// One sample, rounded to 8 bits. Row and column lie inside the plane.
__device__ inline u32 sample(const FrameInput& in, int plane, int y, int x) {
    const u8* base = (const u8*)in.planes[plane];
    if (!base) return 128;  // grey has no colour
    const u8* at = base + (size_t)y * in.pitches[plane] + (size_t)x * in.steps[plane];
    if (!in.wide) return *at;
    return min(255u, (*(const u16*)at + 128u) >> 8);
}

// Four samples of a row from column x on, x a multiple of 4, the first in the lowest byte; beyond the plane its edge.
__device__ inline u32 four_samples(const FrameInput& in, int plane, int y, int x, int height, int width) {
    const u8* base = (const u8*)in.planes[plane];
    if (!base) return 0x80808080u;
    y = min(y, height - 1);
    if (!in.wide && x + 3 < width) {
        const int step = in.steps[plane];
        const u8* at = base + (size_t)y * in.pitches[plane] + x * step;
        if (step == 1 && !((u64)at & 3)) return *(const u32*)at;
        const u32 odd = (u64)at & 1;  // of an interleaved pair the second
        if (step == 2 && !((u64)(at - odd) & 3)) {
            const u32* pairs = (const u32*)(at - odd);
            return __byte_perm(pairs[0], pairs[1], odd ? 0x7531 : 0x6420);
        }
    }
    u32 packed = 0;
    for (int i = 0; i < 4; i++) packed |= sample(in, plane, y, min(x + i, width - 1)) << (8 * i);
    return packed;
}
