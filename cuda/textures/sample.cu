// All layers of a texture at given points, or square patches around them, by trilinear fetches.
#include "state.cuh"

const int THREADS = 128;
const float FARTHEST = 60.0f;  // level: beyond every texture, and 2 to its power is finite

struct Sample {
    u64 texture;          // all levels
    const float* points;  // [count, 3], a list for all layers or for each one: x and y in [0, 1], and the level
    float* values;        // [count, layers, side, side, components]
    int count, layers;
    int side;             // samples along a patch, 2^level texels of level 0 apart; 1: the points alone
    float rows, columns;  // of level 0
    int components;       // 1, 2 or 4
    int apart;            // points from one layer's list to the next; 0: all have the same
    int gridded;          // the first of the layers that hold something in the last level alone
    float last;           // that level
};

// One thread per sample of each point and layer.
extern "C" __global__ void __launch_bounds__(THREADS) sample_layers(Sample p)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x, each = p.side * p.side;
    if (index >= p.count * p.layers * each) return;
    const int sample = index % each, point = index / each / p.layers, layer = index / each % p.layers;
    const float* at = p.points + 3 * ((size_t)layer * p.apart + point);
    const float level = layer < p.gridded ? at[2] : p.last;
    const float step = exp2f(fminf(at[2], FARTHEST)), middle = 0.5f * (float)(p.side - 1);
    const float x = at[0] + ((float)(sample % p.side) - middle) * step / p.columns;
    const float y = at[1] + ((float)(sample / p.side) - middle) * step / p.rows;
    float* out = p.values + (size_t)index * p.components;
    if (p.components == 4) {
        const float4 texel = tex2DLayeredLod<float4>(p.texture, x, y, layer, level);
        out[0] = texel.x;
        out[1] = texel.y;
        out[2] = texel.z;
        out[3] = texel.w;
    } else if (p.components == 2) {
        const float2 texel = tex2DLayeredLod<float2>(p.texture, x, y, layer, level);
        out[0] = texel.x;
        out[1] = texel.y;
    } else {
        out[0] = tex2DLayeredLod<float>(p.texture, x, y, layer, level);
    }
}
