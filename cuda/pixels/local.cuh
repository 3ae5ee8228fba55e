// The parts of the local channels that their two kernels share: the parameters, and a tile's samples.
#pragma once
#include "spec/geometry.h"
#include "spec/local_channels.h"
#include "state.cuh"

struct Levels {
    const u8* base;                  // luma only: level 0
    const float* levels[TOP_LEVEL];  // level 1 .. 4; null up to the plane's own base
};

struct Channels {
    u64 rgb[5];    // surfaces of the RGB pyramid, level 0 .. 4
    u64 stack[5];  // surfaces of the channel stack, from the analysis level on
    const FrameState* state;
    const u8* written;   // [tiles]
    const u8* changed;   // [tiles]
    u8* shown;           // [tiles]: 1 where the stack shows motion
    int* touched;        // [tiles]: those to work on, in any order; local_channels lists them, write_layers reads them
    int* touched_count;  // zero when local_channels starts
    const float* moved;  // at the analysis level: |luma - luma before|, right in changed tiles only
    Levels planes[3];
    float* edges;  // [grid] each
    float* edges_inverted;
    float* highpass;
    float* lowpass;
    float* saliency;
    float black, span;  // of luma, in 8-bit units
    float luma_gain;    // what |centre - surround| of luma, and of the opponent colours, counts in saliency
    float chroma_gain;
    float matrix[9];  // (R, G, B) = matrix ((Y, Cb, Cr) - offsets), R'G'B' in [0, 1]
    float offsets[3];
    int width, height;  // of the picture
    int halved;         // 1: chroma has half the luma's resolution
    int tile_rows, tile_columns;
    int level;  // analysis level, 0..2
};

const int THREADS = 256;
const int RIM = TILE + 2;
const int LOW_SIDE = TILE >> LOWPASS_LEVEL, LOW_RIM = LOW_SIDE + 2;             // samples along a tile
const int SURROUND_SIDE = TILE >> TOP_LEVEL, SURROUND_RIM = SURROUND_SIDE + 2;  // of saliency
const int CENTRE_SIDE = TILE >> SALIENCY_LEVEL, CENTRES = CENTRE_SIDE * CENTRE_SIDE;

// One tile's samples in shared memory.
struct Tile {
    float light[RIM * RIM];        // luma above black, in 8-bit units, with one sample around the tile
    float bright[RIM * RIM];       // its root
    float dark[RIM * RIM];         // root of white less luma
    float low[LOW_RIM * LOW_RIM];  // luma above black at LOWPASS_LEVEL, with a rim
    float surround[3][SURROUND_RIM * SURROUND_RIM];  // luma and opponent colours at TOP_LEVEL, with a rim
    float lows[TILE * TILE];                         // lowpass at the analysis level
    float contrast[CENTRES];                         // saliency at SALIENCY_LEVEL
};

__device__ float luma_at(const Channels& p, int level, int y, int x)
{
    const int height = p.tile_rows * TILE >> level, width = p.tile_columns * TILE >> level;
    const size_t at = (size_t)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1);
    return level ? p.planes[0].levels[level - 1][at] : (float)p.planes[0].base[at];
}

__device__ float above_black(const Channels& p, float luma) { return fminf(fmaxf(luma - p.black, 0.0f), p.span); }

// Luma, red-green and blue-yellow of a sample of level 2 .. 4, the latter two up to a constant (BT.601's matrix).
__device__ void opponents(const Channels& p, int level, int y, int x, float out[3])
{
    const int height = p.tile_rows * TILE >> level, width = p.tile_columns * TILE >> level;
    const size_t at = (size_t)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1);
    const float cb = p.planes[1].levels[level - 1][at], cr = p.planes[2].levels[level - 1][at];
    out[0] = p.planes[0].levels[level - 1][at];
    out[1] = cr * RED_GREEN_CR + cb * RED_GREEN_CB;
    out[2] = cb * BLUE_YELLOW_CB + cr * BLUE_YELLOW_CR;
}

// Bilinear between the samples of a rimmed array of `stride` columns: sample i of a tile that is `factor` times finer.
__device__ float enlarged(const float* rimmed, int stride, int factor, int y, int x)
{
    const float from_y = ((float)y + 0.5f) / factor - 0.5f, from_x = ((float)x + 0.5f) / factor - 0.5f;
    const float top = floorf(from_y), left = floorf(from_x), down = from_y - top, right = from_x - left;
    const float* at = rimmed + ((int)top + 1) * stride + (int)left + 1;
    const float upper = at[0] * (1.0f - right) + at[1] * right;
    const float lower = at[stride] * (1.0f - right) + at[stride + 1] * right;
    return upper * (1.0f - down) + lower * down;
}

__device__ float squared_gradient(const float* at, int stride)
{
    const float above = at[-stride] * 0.5f + (at[-stride - 1] + at[-stride + 1]) * 0.25f;
    const float below = at[stride] * 0.5f + (at[stride - 1] + at[stride + 1]) * 0.25f;
    const float across =
        (at[1] - at[-1]) * 0.5f + ((at[1 - stride] - at[-1 - stride]) + (at[1 + stride] - at[-1 + stride])) * 0.25f;
    const float down = below - above;
    return across * across + down * down;
}

__device__ void load(const Channels& p, Tile& tile, int row, int column)
{
    const int side = TILE >> p.level, rim = side + 2;
    for (int i = threadIdx.x; i < rim * rim; i += THREADS) {
        const int y = row * side + i / rim - 1, x = column * side + i % rim - 1;
        const float light = above_black(p, luma_at(p, p.level, y, x));
        tile.light[i] = light;
        tile.bright[i] = sqrtf(light);
        tile.dark[i] = sqrtf(p.span - light);
    }
    if (threadIdx.x < LOW_RIM * LOW_RIM) {
        const int y = row * LOW_SIDE + threadIdx.x / LOW_RIM - 1, x = column * LOW_SIDE + threadIdx.x % LOW_RIM - 1;
        tile.low[threadIdx.x] = above_black(p, luma_at(p, LOWPASS_LEVEL, y, x));
    }
    if (threadIdx.x >= 64 && threadIdx.x < 64 + SURROUND_RIM * SURROUND_RIM) {  // others than those above
        const int i = threadIdx.x - 64;
        const int y = row * SURROUND_SIDE + i / SURROUND_RIM - 1, x = column * SURROUND_SIDE + i % SURROUND_RIM - 1;
        float values[3];
        opponents(p, TOP_LEVEL, y, x, values);
        for (int k = 0; k < 3; k++) tile.surround[k][i] = values[k];
    }
}

// Centre-surround contrast at SALIENCY_LEVEL, clipped to 1.
__device__ void find_contrast(const Channels& p, Tile& tile, int row, int column)
{
    if (threadIdx.x >= CENTRES) return;
    const int y = threadIdx.x / CENTRE_SIDE, x = threadIdx.x % CENTRE_SIDE, factor = CENTRE_SIDE / SURROUND_SIDE;
    float centre[3], difference[3];
    opponents(p, SALIENCY_LEVEL, row * CENTRE_SIDE + y, column * CENTRE_SIDE + x, centre);
    for (int k = 0; k < 3; k++)
        difference[k] = fabsf(centre[k] - enlarged(tile.surround[k], SURROUND_RIM, factor, y, x));
    const float colour = difference[1] + difference[2];
    tile.contrast[threadIdx.x] = fminf(difference[0] * p.luma_gain + colour * p.chroma_gain, 1.0f);
}
