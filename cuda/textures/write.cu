// Writes boxes of a texture's level 0 from values in linear memory, converted to half floats.
#include "textures/box.cuh"
#include "textures/texel.cuh"

const int THREADS = 128;
const int UINT8 = 0;
const int FLOAT16 = 1;
const int FLOAT32 = 2;

struct Piece {
    Box box;
    long long first;  // the place of its top left value in the source, in values
    long long row;    // from one of its rows to the next
};

struct Write {
    u64 surface;
    const void* source;
    Piece pieces[MOST_BOXES];
    long long layer, column, component;  // steps of the source, in values
    int kind;                            // of the source: one of the constants above; uint8 becomes 0 .. 1
    int given;                           // components of the source; where the texture has one more, that is 1
    int components;                      // of the texture: 1, 2 or 4
    int first_layer, layers;
};

__device__ float value_at(const Write& p, long long at)
{
    if (p.kind == UINT8) return (float)((const u8*)p.source)[at] / 255.0f;
    if (p.kind == FLOAT16) return float_of_half(((const u16*)p.source)[at]);
    return ((const float*)p.source)[at];
}

// One thread per texel of a row, one row of blocks per row of a box; blockIdx.z: box and layer.
extern "C" __global__ void __launch_bounds__(THREADS) write_boxes(const __grid_constant__ Write p)
{
    const Piece& piece = p.pieces[blockIdx.z / p.layers];
    const int layer = blockIdx.z % p.layers, x = blockIdx.x * THREADS + threadIdx.x;
    if (x >= piece.box.columns) return;
    for (int y = blockIdx.y; y < piece.box.rows; y += gridDim.y) {
        const long long at = piece.first + layer * p.layer + y * piece.row + x * p.column;
        Texel texel;
        texel.r = value_at(p, at);
        texel.g = p.given > 1 ? value_at(p, at + p.component) : 0.0f;
        texel.b = p.given > 2 ? value_at(p, at + 2 * p.component) : 0.0f;
        texel.a = p.given > 3 ? value_at(p, at + 3 * p.component) : 1.0f;
        put(p.surface, p.components, p.first_layer + layer, piece.box.top + y, piece.box.left + x, texel);
    }
}
