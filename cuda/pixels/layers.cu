// The textures: the RGB pyramid, and layers 0..2 of the channel stack.
//
// A block of 256 threads per tile of those that local_channels listed, in turns. In the stack every channel has its own
// reduction from level to level: a thread makes 2x2 samples and their reduction, and threads are numbered so that the
// further ones lie in one warp.
#include "pixels/local.cuh"
#include "textures/texel.cuh"

const int LAYERS = 3, WARPS = THREADS / 32;
const int CHROMA_TILE = TILE / 2, CHROMA_RIM = CHROMA_TILE + 2;

struct Shared {
    Tile tile;
    float chroma[2][CHROMA_RIM * CHROMA_RIM];  // halved chroma with a rim
    Texel halves[WARPS][LAYERS];               // of the Grid's texels, where two warps share one
};

__device__ void load_chroma(const Channels& p, Shared& shared, int row, int column)
{
    const int rows = p.tile_rows * CHROMA_TILE, columns = p.tile_columns * CHROMA_TILE, rim = CHROMA_RIM * CHROMA_RIM;
    for (int i = threadIdx.x; i < 2 * rim; i += THREADS) {
        const int plane = i / rim, y = row * CHROMA_TILE + i % rim / CHROMA_RIM - 1;
        const int x = column * CHROMA_TILE + i % CHROMA_RIM - 1;
        const size_t at = (size_t)min(max(y, 0), rows - 1) * columns + min(max(x, 0), columns - 1);
        shared.chroma[plane][i % rim] = (float)p.planes[1 + plane].base[at];
    }
}

// Chroma of sample (y, x) of the tile at a level; finer than the plane's own, bilinear.
__device__ float chroma_at(const Channels& p, const Shared& shared, int plane, int level, int row, int column, int y,
                           int x)
{
    if (level < p.halved) return enlarged(shared.chroma[plane], CHROMA_RIM, 2, y, x);
    const int side = TILE >> level;
    const size_t at = (size_t)(row * side + y) * p.tile_columns * side + column * side + x;
    return level == p.halved ? (float)p.planes[1 + plane].base[at] : p.planes[1 + plane].levels[level - 1][at];
}

__device__ Texel colour_at(const Channels& p, const Shared& shared, int level, int row, int column, int y, int x)
{
    const int side = TILE >> level;
    const float luma = luma_at(p, level, row * side + y, column * side + x) - p.offsets[0];
    const float cb = chroma_at(p, shared, 0, level, row, column, y, x) - p.offsets[1];
    const float cr = chroma_at(p, shared, 1, level, row, column, y, x) - p.offsets[2];
    Texel rgb;
    rgb.r = __saturatef(p.matrix[0] * luma + p.matrix[1] * cb + p.matrix[2] * cr);
    rgb.g = __saturatef(p.matrix[3] * luma + p.matrix[4] * cb + p.matrix[5] * cr);
    rgb.b = __saturatef(p.matrix[6] * luma + p.matrix[7] * cb + p.matrix[8] * cr);
    rgb.a = 1.0f;
    return rgb;
}

// Conversion is linear but for the clipping, so every level comes from the planes' own.
__device__ void write_rgb(const Channels& p, const Shared& shared, int row, int column)
{
#pragma unroll 1
    for (int level = 0; level <= TOP_LEVEL; level++) {
        const int side = TILE >> level;
        for (int i = threadIdx.x; i < side * side; i += THREADS) {
            const int y = i / side, x = i % side;
            put(p.rgb[level], 0, row * side + y, column * side + x, colour_at(p, shared, level, row, column, y, x));
        }
    }
}

// Sample (y, x) of the tile in one layer of the stack, at the analysis level.
__device__ Texel sampled(const Channels& p, const Shared& shared, int layer, int row, int column, int y, int x,
                         bool moving)
{
    const Tile& tile = shared.tile;
    const int side = TILE >> p.level, at = (y + 1) * (side + 2) + x + 1;
    const int picture_y = row * side + y, picture_x = column * side + x;
    Texel out;
    if (layer == 0) {
        out = colour_at(p, shared, p.level, row, column, y, x);
        out.a = fminf(sqrtf(squared_gradient(tile.bright + at, side + 2) / p.span), 1.0f);
    } else if (layer == 1) {
        const float low = enlarged(tile.low, LOW_RIM, (TILE / LOW_SIDE) >> p.level, y, x);
        const size_t here = (size_t)picture_y * p.tile_columns * side + picture_x;
        out.r = fminf(sqrtf(squared_gradient(tile.dark + at, side + 2) / p.span), 1.0f);
        out.g = fabsf(tile.light[at] - low) / p.span;
        out.b = low / p.span;
        out.a = moving ? fminf(p.moved[here] / p.span, 1.0f) : 0.0f;
    } else {
        const float scale = (float)(1 << p.level);
        out.r = tile.contrast[(y >> (SALIENCY_LEVEL - p.level)) * CENTRE_SIDE + (x >> (SALIENCY_LEVEL - p.level))];
        out.g = 0.0f;
        out.b = fminf(((float)picture_x + 0.5f) * scale / (float)p.width, 1.0f);
        out.a = fminf(((float)picture_y + 0.5f) * scale / (float)p.height, 1.0f);
    }
    return out;
}

// Half of a reduction: sums where the channel's own reduction is the mean, else the greater value.
__device__ Texel merged(const Texel& a, const Texel& b, int layer)
{
    Texel out;
    out.r = layer == 1 ? fmaxf(a.r, b.r) : a.r + b.r;
    out.g = layer == 0 ? a.g + b.g : fmaxf(a.g, b.g);
    out.b = a.b + b.b;
    out.a = layer == 2 ? a.a + b.a : fmaxf(a.a, b.a);
    return out;
}

// The other half: four merged values become one.
__device__ Texel reduced(const Texel& four, int layer)
{
    Texel out;
    out.r = layer == 1 ? four.r : four.r * 0.25f;
    out.g = layer == 0 ? four.g * 0.25f : four.g;
    out.b = four.b * 0.25f;
    out.a = layer == 2 ? four.a * 0.25f : four.a;
    return out;
}

__device__ Texel merged_across(const Texel& own, int lanes, int layer)
{
    Texel other;
    other.r = __shfl_xor_sync(~0u, own.r, lanes);
    other.g = __shfl_xor_sync(~0u, own.g, lanes);
    other.b = __shfl_xor_sync(~0u, own.b, lanes);
    other.a = __shfl_xor_sync(~0u, own.a, lanes);
    return merged(own, other, layer);
}

// Every other bit of a number, from the lowest on.
__device__ int even_bits(int number)
{
    return (number & 1) | (number >> 1 & 2) | (number >> 2 & 4) | (number >> 3 & 8);
}

// One layer of the stack. Whole warps come here; `quads` is how many 2x2 samples the tile has.
__device__ void write_layer(const Channels& p, Shared& shared, int layer, int quads, int row, int column, bool moving)
{
    const int index = threadIdx.x % quads, y = even_bits(index >> 1), x = even_bits(index);
    const bool mine = threadIdx.x < quads;
    int side = TILE >> p.level;
    Texel quad[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        quad[i] = sampled(p, shared, layer, row, column, 2 * y + i / 2, 2 * x + i % 2, moving);
        if (mine) put(p.stack[0], layer, row * side + 2 * y + i / 2, column * side + 2 * x + i % 2, quad[i]);
    }
    Texel texel = reduced(merged(merged(quad[0], quad[1], layer), merged(quad[2], quad[3], layer), layer), layer);
    int level = 1, lanes = 1;
    for (side /= 2; side > 2; side /= 2) {
        if (mine && !(index & (lanes * lanes - 1)))
            put(p.stack[level], layer, row * side + y / lanes, column * side + x / lanes, texel);
        texel = merged_across(texel, lanes * lanes, layer);
        if (lanes * lanes == 16) {  // the other half of a cell lies in the next warp
            if (!(threadIdx.x & 31)) shared.halves[threadIdx.x / 32][layer] = texel;
            return;
        }
        texel = reduced(merged_across(texel, 2 * lanes * lanes, layer), layer);
        level++;
        lanes *= 2;
    }
    if (mine && !(index & (lanes * lanes - 1)))
        put(p.stack[level], layer, row * side + y / lanes, column * side + x / lanes, texel);
}

// The Grid's texels of the full-resolution stack: four cells of two warps each.
__device__ void join_halves(const Channels& p, const Shared& shared, int row, int column)
{
    if (threadIdx.x >= 4 * LAYERS) return;
    const int layer = threadIdx.x / 4, cell = threadIdx.x % 4;
    const Texel four = merged(shared.halves[2 * cell][layer], shared.halves[2 * cell + 1][layer], layer);
    put(p.stack[TOP_LEVEL], layer, row * 2 + cell / 2, column * 2 + cell % 2, reduced(four, layer));
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) write_layers(Channels p)
{
    __shared__ Shared shared;
    const int count = *p.touched_count, quads = THREADS >> (2 * p.level);
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const int index = p.touched[i], row = index / p.tile_columns, column = index % p.tile_columns;
        const bool moving = p.state->moving && p.changed[index];
        if (threadIdx.x == 0) p.shown[index] = moving;
        load(p, shared.tile, row, column);
        if (p.halved) load_chroma(p, shared, row, column);
        __syncthreads();
        find_contrast(p, shared.tile, row, column);
        __syncthreads();
        write_rgb(p, shared, row, column);
        if (threadIdx.x < max(quads, 32))
#pragma unroll 1
            for (int layer = 0; layer < LAYERS; layer++) write_layer(p, shared, layer, quads, row, column, moving);
        __syncthreads();
        if (p.level == 0) join_halves(p, shared, row, column);
        __syncthreads();
    }
}
