// All layers of a texture at given points, by trilinear fetches.
#include "state.cuh"

const int THREADS = 128;

struct Sample {
    u64 texture;          // all levels
    const float* points;  // [count, 3], a list for all layers or for each one: x and y in [0, 1], and the level
    float* values;        // [count, layers, components]
    int count, layers;
    int components;  // 1, 2 or 4
    int apart;       // points from one layer's list to the next; 0: all have the same
    int gridded;     // the first of the layers that hold something in the last level alone
    float last;      // that level
};

// One thread per point and layer.
extern "C" __global__ void __launch_bounds__(THREADS) sample_layers(Sample p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= p.count * p.layers) return;
    const int point = index / p.layers, layer = index % p.layers;
    const float* at = p.points + 3 * ((size_t)layer * p.apart + point);
    const float level = layer < p.gridded ? at[2] : p.last;
    float* out = p.values + (size_t)index * p.components;
    if (p.components == 4) {
        const float4 texel = tex2DLayeredLod<float4>(p.texture, at[0], at[1], layer, level);
        out[0] = texel.x;
        out[1] = texel.y;
        out[2] = texel.z;
        out[3] = texel.w;
    } else if (p.components == 2) {
        const float2 texel = tex2DLayeredLod<float2>(p.texture, at[0], at[1], layer, level);
        out[0] = texel.x;
        out[1] = texel.y;
    } else {
        out[0] = tex2DLayeredLod<float>(p.texture, at[0], at[1], layer, level);
    }
}
