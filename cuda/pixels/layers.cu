// The textures: the RGB pyramid, and layers 0..2 of the channel stack.
//
// A block of 256 threads per tile, which works where the tile or one of its eight neighbours was written, or where the
// stack still shows motion of the frame before. In the stack every channel has its own reduction from level to level.
#include "pixels/local.cuh"
#include "pixels/texture.cuh"

// A chroma sample at a level; finer than the plane's own, bilinear.
__device__ float chroma_at(const Channels& p, int plane, int level, int y, int x) {
    const int columns = p.tile_columns * 32 >> (level < p.halved ? p.halved : level);
    if (level > p.halved) return p.planes[plane].levels[level - 1][(size_t)y * columns + x];
    const u8* base = p.planes[plane].base;
    if (level == p.halved) return (float)base[(size_t)y * columns + x];
    const int rows = p.tile_rows * 16, top = (y - 1) >> 1, left = (x - 1) >> 1;
    const float down = y & 1 ? 0.25f : 0.75f, right = x & 1 ? 0.25f : 0.75f;
    const u8* upper = base + (size_t)max(top, 0) * columns;
    const u8* lower = base + (size_t)min(top + 1, rows - 1) * columns;
    const int near = max(left, 0), far = min(left + 1, columns - 1);
    const float above = (float)upper[near] * (1.0f - right) + (float)upper[far] * right;
    const float below = (float)lower[near] * (1.0f - right) + (float)lower[far] * right;
    return above * (1.0f - down) + below * down;
}

__device__ Texel colour_at(const Channels& p, int level, int y, int x) {
    const float luma = luma_at(p, level, y, x) - p.offsets[0];
    const float cb = chroma_at(p, 1, level, y, x) - p.offsets[1], cr = chroma_at(p, 2, level, y, x) - p.offsets[2];
    Texel rgb;
    rgb.r = __saturatef(p.matrix[0] * luma + p.matrix[1] * cb + p.matrix[2] * cr);
    rgb.g = __saturatef(p.matrix[3] * luma + p.matrix[4] * cb + p.matrix[5] * cr);
    rgb.b = __saturatef(p.matrix[6] * luma + p.matrix[7] * cb + p.matrix[8] * cr);
    rgb.a = 1.0f;
    return rgb;
}

// Conversion is linear but for the clipping, so every level comes from the planes' own.
__device__ void write_rgb(const Channels& p, int row, int column) {
    for (int level = 0; level < 5; level++) {
        const int side = 32 >> level;
        for (int i = threadIdx.x; i < side * side; i += THREADS) {
            const int y = row * side + i / side, x = column * side + i % side;
            put(p.rgb[level], 0, y, x, colour_at(p, level, y, x));
        }
    }
}

// Sample (y, x) of the tile in one layer of the stack, at the analysis level.
__device__ Texel sampled(const Channels& p, const Tile& tile, int layer, int row, int column, int y, int x, bool moving) {
    const int side = 32 >> p.level, at = (y + 1) * (side + 2) + x + 1;
    const int picture_y = row * side + y, picture_x = column * side + x;
    Texel out;
    if (layer == 0) {
        out = colour_at(p, p.level, picture_y, picture_x);
        out.a = fminf(sqrtf(squared_gradient(tile.bright + at, side + 2) / p.span), 1.0f);
    } else if (layer == 1) {
        const float low = tile.lows[y * side + x];
        const size_t here = (size_t)picture_y * p.tile_columns * side + picture_x;
        out.r = fminf(sqrtf(squared_gradient(tile.dark + at, side + 2) / p.span), 1.0f);
        out.g = fabsf(tile.light[at] - low) / p.span;
        out.b = low / p.span;
        out.a = moving ? fminf(p.moved[here] / p.span, 1.0f) : 0.0f;
    } else {
        const float scale = (float)(1 << p.level);
        out.r = tile.contrast[(y >> (2 - p.level)) * 8 + (x >> (2 - p.level))];
        out.g = 0.0f;
        out.b = fminf(((float)picture_x + 0.5f) * scale / (float)p.width, 1.0f);
        out.a = fminf(((float)picture_y + 0.5f) * scale / (float)p.height, 1.0f);
    }
    return out;
}

__device__ float mean_of(float a, float b, float c, float d) { return ((a + b) + (c + d)) * 0.25f; }
__device__ float greatest_of(float a, float b, float c, float d) { return fmaxf(fmaxf(a, b), fmaxf(c, d)); }

// One texel of the next level: in each layer every component by its channel's own reduction.
__device__ Texel reduced(const Texel* at, int stride, int layer) {
    const Texel a = at[0], b = at[1], c = at[stride], d = at[stride + 1];
    Texel out;
    out.r = layer == 1 ? greatest_of(a.r, b.r, c.r, d.r) : mean_of(a.r, b.r, c.r, d.r);
    out.g = layer == 0 ? mean_of(a.g, b.g, c.g, d.g) : greatest_of(a.g, b.g, c.g, d.g);
    out.b = mean_of(a.b, b.b, c.b, d.b);
    out.a = layer == 2 ? mean_of(a.a, b.a, c.a, d.a) : greatest_of(a.a, b.a, c.a, d.a);
    return out;
}

__device__ void write_layer(const Channels& p, const Tile& tile, Texel* texels, int layer, int row, int column, bool moving) {
    int side = 32 >> p.level;
    for (int i = threadIdx.x; i < side * side; i += THREADS) {
        const int y = i / side, x = i % side;
        texels[i] = sampled(p, tile, layer, row, column, y, x, moving);
        put(p.stack[0], layer, row * side + y, column * side + x, texels[i]);
    }
    __syncthreads();
    for (int level = 1; side > 2; level++) {
        const int half = side / 2, y = threadIdx.x / half, x = threadIdx.x % half;
        const bool mine = threadIdx.x < half * half;
        Texel texel;
        if (mine) texel = reduced(texels + 2 * y * side + 2 * x, side, layer);
        __syncthreads();
        if (mine) {
            texels[threadIdx.x] = texel;
            put(p.stack[level], layer, row * half + y, column * half + x, texel);
        }
        __syncthreads();
        side = half;
    }
}

__device__ bool touched(const Channels& p, int row, int column) {
    bool near = false;
    if (threadIdx.x < 9) {
        const int y = row + (int)threadIdx.x / 3 - 1, x = column + (int)threadIdx.x % 3 - 1;
        near = y >= 0 && x >= 0 && y < p.tile_rows && x < p.tile_columns && p.written[y * p.tile_columns + x];
    }
    if (threadIdx.x == 9) near = p.shown[row * p.tile_columns + column];
    return __syncthreads_or(near);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_layers(Channels p) {
    __shared__ Tile tile;
    __shared__ Texel texels[32 * 32];  // of the layer and level at hand
    const int row = blockIdx.x / p.tile_columns, column = blockIdx.x % p.tile_columns;
    if (!touched(p, row, column)) return;
    const bool moving = p.state->moving && p.changed[blockIdx.x];
    if (threadIdx.x == 0) p.shown[blockIdx.x] = moving;
    load(p, tile, row, column);
    __syncthreads();
    find_contrast(p, tile, row, column);
    const int side = 32 >> p.level;
    for (int i = threadIdx.x; i < side * side; i += THREADS)
        tile.lows[i] = enlarged(tile.low, 6, 8 >> p.level, i / side, i % side);
    __syncthreads();
    write_rgb(p, row, column);
    for (int layer = 0; layer < 3; layer++) write_layer(p, tile, texels, layer, row, column, moving);
}
