// Writing texels of layered RGBA half-float arrays through their surfaces.
#pragma once

struct Texel {
    float r, g, b, a;
};

__device__ inline unsigned short half_bits(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ inline void put(unsigned long long surface, int layer, int y, int x, const Texel& texel)
{
    const ushort4 bits = {half_bits(texel.r), half_bits(texel.g), half_bits(texel.b), half_bits(texel.a)};
    surf2DLayeredwrite(bits, surface, x * (int)sizeof(ushort4), y, layer, cudaBoundaryModeZero);
}
