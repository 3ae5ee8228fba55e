// Reads channels at points of a picture, from layouts that differ in nothing else; see fetches.py.
#include "state.cuh"

const int THREADS = 128;

struct Fetch {
    u64 source;           // a texture object, or in linear memory half floats
    const float* points;  // [count, 2]: x and y in [0, 1], at centres of pixels
    float* sums;          // [count]: of the channels that are read
    int count;
    int fetches;        // of a point: layers of a texture, channels in linear memory
    int channels;       // in linear memory
    int rows, columns;  // of the picture
};

struct Fill {
    u64 target;  // a surface object, or half floats
    int layers;  // or channels in linear memory
    int rows, columns;
};

__device__ inline float value_of(int channel, int y, int x)
{
    return ((channel * 37 + y * 11 + x * 5) & 63) * (1.0f / 64);
}

__device__ inline u16 to_half(float value)
{
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ inline float from_half(u16 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// The four pixels around a point, and how much the second ones count.
struct Around {
    int left, right, top, bottom;
    float across, down;
};

__device__ inline Around around(const Fetch& p, int index)
{
    const float x = fmaxf(p.points[2 * index] * p.columns - 0.5f, 0),
                y = fmaxf(p.points[2 * index + 1] * p.rows - 0.5f, 0);
    Around at;
    at.left = min((int)x, p.columns - 1), at.right = min(at.left + 1, p.columns - 1);
    at.top = min((int)y, p.rows - 1), at.bottom = min(at.top + 1, p.rows - 1);
    at.across = x - at.left, at.down = y - at.top;
    return at;
}

__device__ inline float blend(const Around& at, u16 a, u16 b, u16 c, u16 d)
{
    const float top = from_half(a) + at.across * (from_half(b) - from_half(a));
    const float bottom = from_half(c) + at.across * (from_half(d) - from_half(c));
    return top + at.down * (bottom - top);
}

// Four channels to a texel, each layer four more.
extern "C" __global__ void fetch_packed(Fetch p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= p.count) return;
    const float x = p.points[2 * index], y = p.points[2 * index + 1];
    float sum = 0;
    for (int layer = 0; layer < p.fetches; layer++) {
        const float4 texel = tex2DLayeredLod<float4>(p.source, x, y, layer, 0.0f);
        sum += texel.x + texel.y + texel.z + texel.w;
    }
    p.sums[index] = sum;
}

// One channel to a texel and a layer.
extern "C" __global__ void fetch_single(Fetch p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= p.count) return;
    const float x = p.points[2 * index], y = p.points[2 * index + 1];
    float sum = 0;
    for (int layer = 0; layer < p.fetches; layer++) sum += tex2DLayeredLod<float>(p.source, x, y, layer, 0.0f);
    p.sums[index] = sum;
}

// Linear memory, one channel's picture behind the other.
extern "C" __global__ void fetch_planar(Fetch p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= p.count) return;
    const Around at = around(p, index);
    float sum = 0;
    for (int channel = 0; channel < p.fetches; channel++) {
        const u16* picture = (const u16*)p.source + (size_t)channel * p.rows * p.columns;
        const u16 *above = picture + (size_t)at.top * p.columns, *below = picture + (size_t)at.bottom * p.columns;
        sum += blend(at, above[at.left], above[at.right], below[at.left], below[at.right]);
    }
    p.sums[index] = sum;
}

// Linear memory, all channels of a pixel side by side.
extern "C" __global__ void fetch_interleaved(Fetch p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= p.count) return;
    const Around at = around(p, index);
    const u16* source = (const u16*)p.source;
    const size_t above = (size_t)at.top * p.columns, below = (size_t)at.bottom * p.columns;
    const u16 *a = source + (above + at.left) * p.channels, *b = source + (above + at.right) * p.channels;
    const u16 *c = source + (below + at.left) * p.channels, *d = source + (below + at.right) * p.channels;
    float sum = 0;
    for (int channel = 0; channel < p.fetches; channel++)
        sum += blend(at, a[channel], b[channel], c[channel], d[channel]);
    p.sums[index] = sum;
}

// One thread per pixel and layer.
extern "C" __global__ void fill_packed(Fill p)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, layer = blockIdx.z;
    if (x >= p.columns) return;
    const ushort4 texel = {to_half(value_of(4 * layer, y, x)), to_half(value_of(4 * layer + 1, y, x)),
                           to_half(value_of(4 * layer + 2, y, x)), to_half(value_of(4 * layer + 3, y, x))};
    surf2DLayeredwrite(texel, p.target, x * (int)sizeof(ushort4), y, layer, cudaBoundaryModeZero);
}

extern "C" __global__ void fill_single(Fill p)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, layer = blockIdx.z;
    if (x >= p.columns) return;
    surf2DLayeredwrite(to_half(value_of(layer, y, x)), p.target, x * (int)sizeof(u16), y, layer, cudaBoundaryModeZero);
}

extern "C" __global__ void fill_planar(Fill p)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, channel = blockIdx.z;
    if (x >= p.columns) return;
    ((u16*)p.target)[((size_t)channel * p.rows + y) * p.columns + x] = to_half(value_of(channel, y, x));
}

extern "C" __global__ void fill_interleaved(Fill p)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, channel = blockIdx.z;
    if (x >= p.columns) return;
    ((u16*)p.target)[((size_t)y * p.columns + x) * p.layers + channel] = to_half(value_of(channel, y, x));
}
