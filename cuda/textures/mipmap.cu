// Boxes of one mipmap level from the level below it, which has twice as many rows and columns, or one more.
//
// A texel is the mean of the area below it. For an odd number of rows or columns that area is a little more than two
// texels wide and the outer ones of three count in part (Guthe & Heckbert 2005, Non-power-of-two mipmapping).
#include "textures/box.cuh"
#include "textures/texel.cuh"

const int THREADS = 128;
const int TAPS = 3;

struct Reduce {
    u64 fine, coarse;  // surfaces of both levels
    Box boxes[MOST_BOXES];
    int fine_rows, fine_columns;
    int coarse_rows, coarse_columns;
    int components;
    int first_layer, layers;
};

struct Weights {
    float of[TAPS];  // of texels 2i, 2i + 1 and 2i + 2; 0: not there
};

__device__ Weights weights(int i, int fine, int coarse)
{
    const float whole = (float)fine;
    if (fine == 1) return {{1.0f, 0.0f, 0.0f}};
    if (fine % 2 == 0) return {{0.5f, 0.5f, 0.0f}};
    return {{(float)(coarse - i) / whole, (float)coarse / whole, (float)(i + 1) / whole}};
}

__device__ Texel mean_below(const Reduce& p, int layer, int y, int x)
{
    const Weights down = weights(y, p.fine_rows, p.coarse_rows), across = weights(x, p.fine_columns, p.coarse_columns);
    Texel sum = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        if (down.of[i] == 0.0f) continue;
#pragma unroll
        for (int j = 0; j < TAPS; j++) {
            if (across.of[j] == 0.0f) continue;
            const float weight = down.of[i] * across.of[j];
            const Texel texel = get(p.fine, p.components, layer, 2 * y + i, 2 * x + j);
            sum.r += weight * texel.r, sum.g += weight * texel.g;
            sum.b += weight * texel.b, sum.a += weight * texel.a;
        }
    }
    return sum;
}

// One thread per texel of a row, one row of blocks per row of a box; blockIdx.z: box and layer.
extern "C" __global__ void __launch_bounds__(THREADS) reduce_boxes(const __grid_constant__ Reduce p)
{
    const Box& box = p.boxes[blockIdx.z / p.layers];
    const int layer = p.first_layer + blockIdx.z % p.layers, x = blockIdx.x * THREADS + threadIdx.x;
    if (x >= box.columns) return;
    for (int y = blockIdx.y; y < box.rows; y += gridDim.y)
        put(p.coarse, p.components, layer, box.top + y, box.left + x, mean_below(p, layer, box.top + y, box.left + x));
}
