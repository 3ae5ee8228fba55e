// Gives every token its scores and age, paints it into the reader's picture, and samples its pixels.
//
// One block of 16 x 16 threads per token and slice of rows; slice 0 does all but the painting. Tokens of one frame do not
// overlap, so no two blocks write the same cell or pixel. Where the frame rests, the last frame's tokens grow older.
// Results equal pipeline/cascade/coverage.py, ledger.py, pipeline/cpu/reader.py and sampling.py.
#include "cascade.cuh"

const int SIDE = 16;           // samples along a token's patch, and most cells along a token
const float FIXATING = 1.0f - 0.9f;  // share of this frame in the fixation map
const int NEVER = 0x7fffffff;

struct Emit {
    const FrameState* frame;
    const Choice* choice;
    Header* header;
    Columns columns;
    const Token* tokens;
    const float* scores;       // [3][cells]
    const float* participation;  // [cells]; null: there is no query
    const int* age;            // [cells]
    u8* pending;               // [cells]
    float* fixation[2];        // [cells], by turn: already faded
    const u8* pixels[3];       // Y, Cb, Cr of the texture's base
    const float* levels[3][4]; // of levels 1..4; null where the base is coarser
    u8* reader[3];             // the reader's picture over the span; null: it keeps nothing
    u8* seen;                  // [cells]: 1 + the LOD of the token; 0: none was ever given there
    u8* stale;                 // [tiles]
    u8* patches;               // [tokens][16][16][3], RGB; null: not asked for
    Grid grid;
    int base[3];               // level of each plane's base
    int span_columns;          // cells along a row of the reader's picture
    float matrix[9], shift[3]; // R'G'B' = matrix * (Y, Cb, Cr) + shift, in 8-bit units
};

// Cells of [start, start + side) that hold any pixel.
__device__ inline int overlap(int start, int side, int inside)
{
    return min(max(inside - start, 0), side);
}

// Sum or least value over the block of 256 threads; known to thread 0.
__device__ inline float block_total(float value, float* partial)
{
    value = warp_sum(value);
    if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = value;
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < SIDE * SIDE / WARP; i++) total += partial[i];
    __syncthreads();
    return total;
}

__device__ inline int block_least(int value, int* partial)
{
    for (int lanes = WARP / 2; lanes; lanes /= 2) value = min(value, __shfl_xor_sync(EVERYONE, value, lanes));
    if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = value;
    __syncthreads();
    int least = NEVER;
    for (int i = 0; i < SIDE * SIDE / WARP; i++) least = min(least, partial[i]);
    __syncthreads();
    return least;
}

// What the host reads of token `index`: its place, and from the cells under it, which count as emitted from now on, its
// scores, age and freshness.
__device__ inline void describe(const Emit& p, const Token& token, int index)
{
    __shared__ float sums[SIDE * SIDE / WARP];
    __shared__ int least[SIDE * SIDE / WARP];
    const Grid& grid = p.grid;
    int side = 1 << token.lod, y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    int row = token.row * side + y, column = token.column * side + x;
    int cell = row * grid.columns + column, cells = grid.rows * grid.columns;
    int under = y < side && x < side && row < grid.rows && column < grid.columns;
    int inside = under && row < grid.inside_rows && column < grid.inside_columns;
    float mean[4] = {};
    for (int i = 0; i < 3; i++) mean[i] = block_total(inside ? p.scores[i * cells + cell] : 0.0f, sums);
    if (p.participation) mean[3] = block_total(inside ? p.participation[cell] : 0.0f, sums);
    int age = block_least(inside ? p.age[cell] : NEVER, least);
    int fresh = __syncthreads_or(inside && p.pending[cell]);
    if (under) {
        p.pending[cell] = 0;
        p.fixation[p.choice->turn][cell] += FIXATING * exp2f(-2.0f * (float)token.lod);
    }
    if (threadIdx.x) return;
    int count = overlap(token.row * side, side, grid.inside_rows) * overlap(token.column * side, side, grid.inside_columns);
    float weight = (float)max(count, 1);
    const Columns& columns = p.columns;
    columns.x[index] = (2 * token.column + 1) * side * CELL / 2;
    columns.y[index] = (2 * token.row + 1) * side * CELL / 2;
    columns.lod[index] = token.lod;
    columns.score[index] = mean[0] / weight;
    columns.information[index] = mean[1] / weight;
    columns.perspective[index] = mean[2] / weight;
    columns.participation[index] = mean[3] / weight;
    columns.age[index] = age == NEVER ? 0 : age;
    columns.fresh[index] = fresh != 0;
}

struct Plane {
    const u8* pixels;
    const float* const* levels;
    int base, rows, columns;  // of the base, in samples
};

__device__ inline Plane plane_of(const Emit& p, int index)
{
    int base = p.base[index];
    Plane plane = {p.pixels[index], p.levels[index], base, p.grid.rows * CELL >> base, p.grid.columns * CELL >> base};
    return plane;
}

// The sample of `level` (not below the base) at a place, which is kept inside.
__device__ inline float sample_of(const Plane& plane, int level, int row, int column)
{
    int shrink = level - plane.base, columns = plane.columns >> shrink;
    row = min(max(row, 0), (plane.rows >> shrink) - 1);
    column = min(max(column, 0), columns - 1);
    if (shrink <= 0) return (float)plane.pixels[row * columns + column];
    return plane.levels[level - 1][row * columns + column];
}

// Bilinear, sample centres aligned: `level` enlarged by `factor`, at (row, column) of the enlarged picture.
__device__ inline float enlarged(const Plane& plane, int level, int factor, int row, int column)
{
    float y = ((float)row + 0.5f) / (float)factor - 0.5f, x = ((float)column + 0.5f) / (float)factor - 0.5f;
    int top = (int)floorf(y), left = (int)floorf(x);
    float down = y - (float)top, across = x - (float)left;
    float upper = sample_of(plane, level, top, left) * (1.0f - across) + sample_of(plane, level, top, left + 1) * across;
    float lower =
        sample_of(plane, level, top + 1, left) * (1.0f - across) + sample_of(plane, level, top + 1, left + 1) * across;
    return upper * (1.0f - down) + lower * down;
}

// Shows the reader this block's slice of the token, in one plane.
__device__ inline void paint(const Emit& p, const Token& token, int index)
{
    Plane plane = plane_of(p, index);
    int side = SIDE << token.lod >> plane.base, factor = token.lod > plane.base ? 1 << (token.lod - plane.base) : 1;
    int top = token.row * side, left = token.column * side, across = p.span_columns * CELL >> plane.base;
    if (factor == 1 && (top >= plane.rows || left >= plane.columns)) return;  // a group may reach over the texture
    for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < side * side; i += gridDim.y * blockDim.x) {
        int row = top + i / side, column = left + i % side;
        float value = factor == 1 ? (float)plane.pixels[row * plane.columns + column]
                                  : enlarged(plane, token.lod, factor, row, column) + 0.5f;
        p.reader[index][row * across + column] = (u8)value;
    }
}

// The cells of which the reader now holds something, and the tiles whose error has to be found anew.
__device__ inline void mark(const Emit& p, const Token& token)
{
    const Grid& grid = p.grid;
    int side = 1 << token.lod, y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    int row = token.row * side + y, column = token.column * side + x;
    if (y >= side || x >= side || row >= grid.rows || column >= grid.columns) return;
    p.seen[row * grid.columns + column] = 1 + token.lod;
    p.stale[(row / 2) * (grid.columns / 2) + column / 2] = 1;
}

__device__ inline u8 to_byte(float value)
{
    return (u8)fminf(fmaxf(rintf(value), 0.0f), 255.0f);
}

// One pixel of the token's patch per thread.
__device__ inline void sample_patch(const Emit& p, const Token& token)
{
    int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    float value[3];
    for (int i = 0; i < 3; i++) {
        Plane plane = plane_of(p, i);
        int row = token.row * SIDE + y, column = token.column * SIDE + x;
        value[i] = token.lod >= plane.base ? sample_of(plane, token.lod, row, column) : enlarged(plane, plane.base, 2, row, column);
    }
    u8* out = p.patches + 3 * (blockIdx.x * SIDE * SIDE + threadIdx.x);
    for (int c = 0; c < 3; c++) {
        const float* weights = p.matrix + 3 * c;
        out[c] = to_byte(((weights[0] * value[0] + weights[1] * value[1]) + weights[2] * value[2]) + p.shift[c]);
    }
}

extern "C" __global__ void __launch_bounds__(SIDE* SIDE) emit(const __grid_constant__ Emit p)
{
    int count = p.header->count;
    int index = blockIdx.x;
    if (p.frame->rests) {
        if (threadIdx.x || blockIdx.y) return;
        if (index < count) {
            p.columns.age[index] += 1;
            p.columns.fresh[index] = 0;
        }
        if (index == 0) {
            p.header->changed = p.header->recomputed = 0;
            p.header->keyframe = NONE;
            p.header->rests = 1;
            p.header->number = p.frame->number;
        }
        return;
    }
    if (index >= count) return;
    Token token = p.tokens[index];
    if (p.reader[0])
        for (int i = 0; i < 3; i++) paint(p, token, i);
    if (blockIdx.y) return;
    if (p.reader[0]) mark(p, token);
    if (p.patches) sample_patch(p, token);
    describe(p, token, index);
}
