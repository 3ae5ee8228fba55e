// Gives every token its scores and age, paints it into the reader's picture, and samples its pixels.
//
// One block of 16 x 16 threads per token and slice of rows; slice 0 does all but the painting. Tokens of one frame do
// not overlap, so no two blocks write the same cell or pixel; where tokens of a group repeat each other, the first
// one's block does all of them. On unchanged frames, the last frame's tokens grow older. Results equal
// pipeline/cascade/coverage.py, token_age.py, pipeline/cpu/reader.py and sampling.py.
#include "cascade.cuh"
#include "spec/memory.h"
#include "spec/tokens.h"

const int SIDE = PATCH;  // samples along a token's patch
const int THREADS = 256;
static_assert(THREADS == SIDE * SIDE, "a thread for each sample of a patch");
const int ONCE = 1 << 30;                     // a step beyond everything: the loop is run once at most
const float FIXATING = 1.0f - FIXATION_KEEP;  // share of this frame in the fixation map
const int NEVER = 0x7fffffff;

struct Emit {
    const FrameState* frame;
    const CascadeState* cascade;
    Header* header;
    Columns columns;
    const Token* tokens;
    const float* scores;         // [3][cells]
    const float* participation;  // [cells]; null: there is no query
    const int* age;              // [cells]
    u8* pending;                 // [cells]
    float* fixation[2];          // [cells], by turn: already faded
    const u8* pixels[3];         // Y, Cb, Cr of the texture's base
    const float* levels[3][4];   // of levels 1..4; null where the base is coarser
    const float* upper[3];       // of the levels above TOP_LEVEL, see upper.cu
    u8* reader[3];               // the reader's picture over the span; null: it keeps nothing
    u8* seen;                    // [cells]: PAINTED, and 1 + the LOD of the token; 0: none was ever given there
    float* peak;                 // [cells]: the greatest participation since; this frame's is the first
    u8* stale;                   // [tiles]
    u8* patches;                 // [tokens][16][16][3], RGB; null: not asked for
    Grid grid;
    int base[3];                // level of each plane's base
    int span_columns;           // cells along a row of the reader's picture
    float matrix[9], shift[3];  // R'G'B' = matrix * (Y, Cb, Cr) + shift, in 8-bit units
};

// Cells of [start, start + side) that hold any pixel.
__device__ inline int overlap(int start, int side, int inside) { return min(max(inside - start, 0), side); }

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

// The tokens that equal token `index`, itself the first: bit i stands for token index + i. 0 if an earlier one of its
// group equals it.
__device__ inline int repeats_of(const Emit& p, const Token& token, int index)
{
    if (p.grid.merge == 1) return 1;
    int each = p.grid.merge * p.grid.merge, first = index - index % each, repeats = 0;
    for (int i = 0; i < each; i++) {
        const Token& other = p.tokens[first + i];
        if (other.row != token.row || other.column != token.column) continue;
        if (first + i < index) return 0;
        repeats |= 1 << (first + i - index);
    }
    return repeats;
}

// The cells under a token, by each thread every 16th of every 16th row. UPPER: there may be tokens above TOP_LEVEL;
// else each thread has one cell at most.
struct Under {
    int top, left, rows, columns;  // in cells; those off the grid are cut off
};

__device__ inline Under cells_under(const Grid& grid, const Token& token)
{
    int side = 1 << token.lod, top = token.row * side, left = token.column * side;
    Under under = {top, left, min(side, grid.rows - top), min(side, grid.columns - left)};
    return under;
}

// What the host reads of token `index` and of those that repeat it: its place, and from the cells under it, which count
// as emitted from now on, its scores, age and freshness.
template <int UPPER> __device__ inline void describe(const Emit& p, const Token& token, int index, int repeats)
{
    __shared__ float sums[SIDE * SIDE / WARP];
    __shared__ int least[SIDE * SIDE / WARP];
    const Grid& grid = p.grid;
    const Under under = cells_under(grid, token);
    int cells = grid.rows * grid.columns, age = NEVER, fresh = 0;
    float mean[4] = {};
    for (int y = threadIdx.x / SIDE; y < under.rows; y += UPPER ? SIDE : ONCE)
        for (int x = threadIdx.x % SIDE; x < under.columns; x += UPPER ? SIDE : ONCE) {
            int row = under.top + y, column = under.left + x, cell = row * grid.columns + column;
            if (row < grid.inside_rows && column < grid.inside_columns) {
                for (int i = 0; i < 3; i++) mean[i] += p.scores[i * cells + cell];
                if (p.participation) mean[3] += p.participation[cell];
                age = min(age, p.age[cell]);
                fresh |= p.pending[cell];
            }
            p.pending[cell] = 0;
            p.fixation[p.cascade->turn][cell] += FIXATING * exp2f(-2.0f * (float)token.lod);
        }
    for (int i = 0; i < 3; i++) mean[i] = block_total(mean[i], sums);
    if (p.participation) mean[3] = block_total(mean[3], sums);
    age = block_least(age, least);
    fresh = __syncthreads_or(fresh);
    if (threadIdx.x) return;
    int side = 1 << token.lod;
    int count =
        overlap(token.row * side, side, grid.inside_rows) * overlap(token.column * side, side, grid.inside_columns);
    float weight = (float)max(count, 1);
    const Columns& columns = p.columns;
    for (int left = repeats; left; left &= left - 1) {
        int at = index + __ffs(left) - 1;
        columns.x[at] = (2 * token.column + 1) * side * CELL / 2;
        columns.y[at] = (2 * token.row + 1) * side * CELL / 2;
        columns.lod[at] = token.lod;
        columns.score[at] = mean[0] / weight;
        columns.information[at] = mean[1] / weight;
        columns.perspective[at] = mean[2] / weight;
        columns.participation[at] = mean[3] / weight;
        columns.age[at] = age == NEVER ? 0 : age;
        columns.fresh[at] = fresh != 0;
    }
}

struct Plane {
    const u8* pixels;
    const float* const* levels;
    const float* upper;
    int base, rows, columns;  // of the base, in samples
};

__device__ inline Plane plane_of(const Emit& p, int index)
{
    int base = p.base[index];
    int rows = p.grid.rows * CELL >> base, columns = p.grid.columns * CELL >> base;
    Plane plane = {p.pixels[index], p.levels[index], p.upper[index], base, rows, columns};
    return plane;
}

// The same of a level above TOP_LEVEL.
__device__ inline float upper_sample(const Plane& plane, int level, int row, int column)
{
    int rows = plane.rows >> (TOP_LEVEL - plane.base), columns = plane.columns >> (TOP_LEVEL - plane.base);
    int across = upper_length(columns, level);
    row = min(max(row, 0), upper_length(rows, level) - 1);
    column = min(max(column, 0), across - 1);
    return plane.upper[upper_start(rows, columns, level) + row * across + column];
}

// The sample of `level` (not below the base) at a place, which is kept inside.
template <int UPPER> __device__ inline float sample_of(const Plane& plane, int level, int row, int column)
{
    if (UPPER && level > TOP_LEVEL) return upper_sample(plane, level, row, column);
    int shrink = level - plane.base, columns = plane.columns >> shrink;
    row = min(max(row, 0), (plane.rows >> shrink) - 1);
    column = min(max(column, 0), columns - 1);
    if (shrink <= 0) return (float)plane.pixels[row * columns + column];
    return plane.levels[level - 1][row * columns + column];
}

// Bilinear, sample centres aligned: `level` enlarged by `factor`, at (row, column) of the enlarged picture.
template <int UPPER>
__device__ inline float enlarged(const Plane& plane, int level, int factor, int row, int column)
{
    float y = ((float)row + 0.5f) / (float)factor - 0.5f, x = ((float)column + 0.5f) / (float)factor - 0.5f;
    int top = (int)floorf(y), left = (int)floorf(x);
    float down = y - (float)top, across = x - (float)left;
    float upper = sample_of<UPPER>(plane, level, top, left) * (1.0f - across)
                  + sample_of<UPPER>(plane, level, top, left + 1) * across;
    float lower = sample_of<UPPER>(plane, level, top + 1, left) * (1.0f - across)
                  + sample_of<UPPER>(plane, level, top + 1, left + 1) * across;
    return upper * (1.0f - down) + lower * down;
}

// The weights of the four samples around a place, `part` of the way from the second to the third: as paint.c has them.
__device__ inline void cubic_weights(float part, float* weights)
{
    const float a = CUBIC;
    float far = part + 1.0f, rest = 1.0f - part;
    weights[0] = ((a * far - 5.0f * a) * far + 8.0f * a) * far - 4.0f * a;
    weights[1] = ((a + 2.0f) * part - (a + 3.0f)) * part * part + 1.0f;
    weights[2] = ((a + 2.0f) * rest - (a + 3.0f)) * rest * rest + 1.0f;
    weights[3] = 1.0f - weights[0] - weights[1] - weights[2];
}

// The same as enlarged(), bicubically, kept within a byte's range.
template <int UPPER>
__device__ inline float enlarged_cubic(const Plane& plane, int level, int factor, int row, int column)
{
    float y = ((float)row + 0.5f) / (float)factor - 0.5f, x = ((float)column + 0.5f) / (float)factor - 0.5f;
    int top = (int)floorf(y), left = (int)floorf(x);
    float down[4], across[4], value = 0.0f;
    cubic_weights(y - (float)top, down);
    cubic_weights(x - (float)left, across);
    for (int i = 0; i < 4; i++) {
        float sum = 0.0f;
        for (int k = 0; k < 4; k++) sum += sample_of<UPPER>(plane, level, top + i - 1, left + k - 1) * across[k];
        value += sum * down[i];
    }
    return fmaxf(fminf(value, 255.0f), 0.0f);
}

// Shows the reader this block's slice of the token, in one plane.
template <int UPPER, int CUBIC> __device__ inline void paint(const Emit& p, const Token& token, int index)
{
    Plane plane = plane_of(p, index);
    int side = SIDE << token.lod >> plane.base, factor = token.lod > plane.base ? 1 << (token.lod - plane.base) : 1;
    int top = token.row * side, left = token.column * side, across = p.span_columns * CELL >> plane.base;
    int rows = min(side, plane.rows - top), columns = min(side, plane.columns - left);
    for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.y * blockDim.x) {
        int row = top + i / columns, column = left + i % columns;
        float value = factor == 1 ? (float)plane.pixels[row * plane.columns + column]
                      : CUBIC     ? enlarged_cubic<UPPER>(plane, token.lod, factor, row, column) + 0.5f
                                  : enlarged<UPPER>(plane, token.lod, factor, row, column) + 0.5f;
        p.reader[index][row * across + column] = (u8)value;
    }
}

// Marks the cells that the reader has seen now, and the tiles whose error has to be recomputed.
template <int UPPER> __device__ inline void mark(const Emit& p, const Token& token)
{
    const Grid& grid = p.grid;
    const Under under = cells_under(grid, token);
    for (int y = threadIdx.x / SIDE; y < under.rows; y += UPPER ? SIDE : ONCE)
        for (int x = threadIdx.x % SIDE; x < under.columns; x += UPPER ? SIDE : ONCE) {
            int row = under.top + y, column = under.left + x, cell = row * grid.columns + column;
            p.seen[cell] = PAINTED | (1 + token.lod);
            if (p.participation) p.peak[cell] = p.participation[cell];
            p.stale[(row / 2) * (grid.columns / 2) + column / 2] = 1;
        }
}

__device__ inline u8 to_byte(float value) { return (u8)fminf(fmaxf(rintf(value), 0.0f), 255.0f); }

// One pixel of the token's patch per thread, also for those that repeat the token.
template <int UPPER>
__device__ inline void sample_patch(const Emit& p, const Token& token, int index, int repeats)
{
    int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    float value[3];
    for (int i = 0; i < 3; i++) {
        Plane plane = plane_of(p, i);
        int row = token.row * SIDE + y, column = token.column * SIDE + x;
        value[i] = token.lod >= plane.base ? sample_of<UPPER>(plane, token.lod, row, column)
                                           : enlarged<UPPER>(plane, plane.base, 2, row, column);
    }
    for (int left = repeats; left; left &= left - 1) {
        u8* out = p.patches + 3 * ((index + __ffs(left) - 1) * SIDE * SIDE + threadIdx.x);
        for (int c = 0; c < 3; c++) {
            const float* weights = p.matrix + 3 * c;
            out[c] = to_byte(((weights[0] * value[0] + weights[1] * value[1]) + weights[2] * value[2]) + p.shift[c]);
        }
    }
}

template <int UPPER, int CUBIC> __device__ __forceinline__ void emit_token(const Emit& p)
{
    int count = p.header->count;
    int index = blockIdx.x;
    if (p.frame->unchanged) {
        if (threadIdx.x || blockIdx.y) return;
        if (index < count) {
            p.columns.age[index] += 1;
            p.columns.fresh[index] = 0;
        }
        if (index == 0) {
            p.header->changed = p.header->recomputed = 0;
            p.header->keyframe = NONE;
            p.header->unchanged = 1;
            p.header->number = p.frame->number;
        }
        return;
    }
    if (index >= count) return;
    Token token = p.tokens[index];
    int repeats = repeats_of(p, token, index);
    if (!repeats) return;
    if (p.reader[0])
        for (int i = 0; i < 3; i++) paint<UPPER, CUBIC>(p, token, i);
    if (blockIdx.y) return;
    if (p.reader[0]) mark<UPPER>(p, token);
    if (p.patches) sample_patch<UPPER>(p, token, index, repeats);
    describe<UPPER>(p, token, index, repeats);
}

extern "C" __global__ void __launch_bounds__(THREADS, 8) emit(const __grid_constant__ Emit p) { emit_token<0, 0>(p); }

// Where there may be tokens above TOP_LEVEL.
extern "C" __global__ void __launch_bounds__(THREADS, 8) emit_upper(const __grid_constant__ Emit p)
{
    emit_token<1, 0>(p);
}

// Where the reader enlarges tokens bicubically.
extern "C" __global__ void __launch_bounds__(THREADS) emit_cubic(const __grid_constant__ Emit p)
{
    emit_token<0, 1>(p);
}

extern "C" __global__ void __launch_bounds__(THREADS) emit_upper_cubic(const __grid_constant__ Emit p)
{
    emit_token<1, 1>(p);
}
