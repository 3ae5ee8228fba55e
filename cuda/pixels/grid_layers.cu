// Copies the channels that exist on the Grid alone into the last level of the channel stack: layers of their own, and
// `text`, which has its place among the channels of another layer.
#include "state.cuh"
#include "textures/texel.cuh"

const int THREADS = 256;

struct GridLayers {
    const FrameState* state;
    const float* channels[28];  // [grid] each, four per layer; null: zero
    u8 turns[28];               // 1: two maps one behind the other, of which the turn's is this frame's
    const int* turn;
    int boundary;       // which of the channels is made from cluster_id: 1 where a neighbour has another one
    u64 surface;        // of the stack's last level
    int first;          // the first of these layers
    const float* text;  // [grid]
    int text_layer;
    int rows, columns;
};

__device__ float boundary(const float* id, int cell, int rows, int columns)
{
    const int row = cell / columns, column = cell % columns;
    const float own = id[cell];
    return (row > 0 && id[cell - columns] != own) || (row + 1 < rows && id[cell + columns] != own)
                   || (column > 0 && id[cell - 1] != own) || (column + 1 < columns && id[cell + 1] != own)
               ? 1.0f
               : 0.0f;
}

// Component y of a texel, the others as they are.
__device__ void put_second(u64 surface, int layer, int y, int x, float value)
{
    const int at = x * (int)sizeof(ushort4);
    ushort4 bits = surf2DLayeredread<ushort4>(surface, at, y, layer, cudaBoundaryModeZero);
    bits.y = half_bits(value);
    surf2DLayeredwrite(bits, surface, at, y, layer, cudaBoundaryModeZero);
}

// One thread per cell; blockIdx.y is the layer, or behind the last one, where there is `text`, the layer of that.
extern "C" __global__ void __launch_bounds__(THREADS) grid_layers(GridLayers p)
{
    const int cell = blockIdx.x * blockDim.x + threadIdx.x, layer = blockIdx.y;
    if (p.state->unchanged || cell >= p.rows * p.columns) return;
    if (p.text && layer == gridDim.y - 1) {
        put_second(p.surface, p.text_layer, cell / p.columns, cell % p.columns, p.text[cell]);
        return;
    }
    float values[4];
    for (int i = 0; i < 4; i++) {
        const int at = layer * 4 + i;
        const float* channel = p.channels[at];
        if (channel && p.turns[at]) channel += (size_t)*p.turn * p.rows * p.columns;
        values[i] = !channel ? 0.0f : at == p.boundary ? boundary(channel, cell, p.rows, p.columns) : channel[cell];
    }
    const Texel texel = {values[0], values[1], values[2], values[3]};
    put(p.surface, p.first + layer, cell / p.columns, cell % p.columns, texel);
}
