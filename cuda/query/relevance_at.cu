// Relevance at any points of the picture: the embedding channels are fetched from the channel stack, whose last level
// is the Grid, and the texture unit interpolates between its cells.
//
// One thread per point. Texels are half floats, and the unit's weights have 8 bits.
#include "relevance.cuh"

const int THREADS = 64;

struct RelevanceAt {
    Terms terms;
    u64 texture;          // of the stack, all levels
    const float* points;  // [count][2]: x and y in [0, 1] of the padded picture
    float* combined;      // [count]
    float* values;        // [count][queries]
    int count;
    int layer;           // the first of the embedding channels' layers
    float level;         // the stack's last
    float across, down;  // the padded picture's width and height / the picture's
};

extern "C" __global__ void __launch_bounds__(THREADS) relevance_at(const __grid_constant__ RelevanceAt p)
{
    int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= p.count) return;
    float x = p.points[2 * point], y = p.points[2 * point + 1], inputs[INPUTS];
#pragma unroll
    for (int i = 0; i < COEFFICIENTS / 4; i++) {
        float4 texel = tex2DLayeredLod<float4>(p.texture, x, y, p.layer + i, p.level);
        inputs[4 * i] = texel.x, inputs[4 * i + 1] = texel.y, inputs[4 * i + 2] = texel.z, inputs[4 * i + 3] = texel.w;
    }
    inputs[COEFFICIENTS] = fminf(x * p.across, 1.0f);
    inputs[COEFFICIENTS + 1] = fminf(y * p.down, 1.0f);
    float* values = p.values + point * p.terms.queries;
    p.combined[point] = combined_relevance(p.terms, inputs, [&](int query, float value) { values[query] = value; });
}
