// All channels at given points of the picture, by trilinear fetches from the channel stack.
#include "state.cuh"

const int THREADS = 128;

struct Sample {
    u64 texture;          // of the stack, all levels
    const float* points;  // [count, 3]: x and y in [0, 1] of the padded picture, and the level of the stack
    float* values;        // [count, layers * 4]
    int count, layers;
    int gridded;  // the first of the layers that hold something in the last level alone
    float last;   // that level
};

// One thread per point and layer.
extern "C" __global__ void __launch_bounds__(THREADS) sample_stack(Sample p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= p.count * p.layers) return;
    const int point = index / p.layers, layer = index % p.layers;
    const float* at = p.points + 3 * point;
    const float level = layer < p.gridded ? at[2] : p.last;
    const float4 texel = tex2DLayeredLod<float4>(p.texture, at[0], at[1], layer, level);
    float* out = p.values + (size_t)index * 4;
    out[0] = texel.x;
    out[1] = texel.y;
    out[2] = texel.z;
    out[3] = texel.w;
}
