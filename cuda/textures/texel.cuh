// Reading and writing texels of layered half-float arrays through their surfaces.
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

__device__ inline float float_of_half(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// Four components.
__device__ inline void put(unsigned long long surface, int layer, int y, int x, const Texel& texel)
{
    const ushort4 bits = {half_bits(texel.r), half_bits(texel.g), half_bits(texel.b), half_bits(texel.a)};
    surf2DLayeredwrite(bits, surface, x * (int)sizeof(ushort4), y, layer, cudaBoundaryModeZero);
}

// One, two or four components: the first ones of the texel.
__device__ inline void put(unsigned long long surface, int components, int layer, int y, int x, const Texel& texel)
{
    if (components == 4) {
        put(surface, layer, y, x, texel);
    } else if (components == 2) {
        const ushort2 bits = {half_bits(texel.r), half_bits(texel.g)};
        surf2DLayeredwrite(bits, surface, x * (int)sizeof(ushort2), y, layer, cudaBoundaryModeZero);
    } else {
        const ushort1 bits = {half_bits(texel.r)};
        surf2DLayeredwrite(bits, surface, x * (int)sizeof(ushort1), y, layer, cudaBoundaryModeZero);
    }
}

// The same, read; components that are not there are 0. Not of what the same launch has written.
__device__ inline Texel get(unsigned long long surface, int components, int layer, int y, int x)
{
    Texel texel = {0, 0, 0, 0};
    if (components == 4) {
        const ushort4 bits =
            surf2DLayeredread<ushort4>(surface, x * (int)sizeof(ushort4), y, layer, cudaBoundaryModeZero);
        texel = {float_of_half(bits.x), float_of_half(bits.y), float_of_half(bits.z), float_of_half(bits.w)};
    } else if (components == 2) {
        const ushort2 bits =
            surf2DLayeredread<ushort2>(surface, x * (int)sizeof(ushort2), y, layer, cudaBoundaryModeZero);
        texel.r = float_of_half(bits.x), texel.g = float_of_half(bits.y);
    } else {
        const ushort1 bits =
            surf2DLayeredread<ushort1>(surface, x * (int)sizeof(ushort1), y, layer, cudaBoundaryModeZero);
        texel.r = float_of_half(bits.x);
    }
    return texel;
}
