// Coarse-to-fine culling: the cells with the highest values by a quick look, fewer by a closer one, the budget by the
// final score; with a reader that holds earlier tokens, those of which it lacks most. Equals
// pipeline/cascade/top_k.py.
//
// One block. The highest values are found by their bits, eight at a time; of equal values those first in reading order.
#include "block.cuh"
#include "spec/local_channels.h"

const int CULLED = 2;  // stages before the one that keeps the budget
const int STAGES = CULLED + 1;
const int BINS = 256;

struct ThreeStage {
    Conclusion conclusion;
    Token* tokens;
    const float* channels;  // [7][cells]
    const float* scores;    // [3][cells]; the first is the final score
    const float* errors;    // [4][cells]; the first is that of level 1
    const float* kept;      // [units], in the order of cascade.cuh: weighted error of what the reader holds
    u32* keys;              // [units]: values as numbers in the same order
    u8* alive;              // [units]: still among the chosen
    Grid grid;
    int keep[CULLED];   // units, at least the budget
    int budget;         // units, unless the frame has its own
    int stream_memory;  // 1: the reader holds earlier tokens
    float enough;       // of `kept`, up to which nothing is lacking
};

// What stage `stage` knows of a cell.
__device__ inline float cell_value(const ThreeStage& p, int stage, int cell)
{
    int cells = p.grid.rows * p.grid.columns;
    if (stage == 0) return p.channels[SALIENCY * cells + cell] + p.channels[MOTION * cells + cell];
    if (stage == 1) return p.scores[cell];
    float detail = sqrtf(fmaxf(p.errors[cell], 0.0f) / 256.0f) / 4.0f;
    return p.scores[cell] * (0.5f + 0.5f * fminf(detail, 1.0f));
}

// The mean over the unit's cells, each column's sum first; what lies beyond the grid is as the nearest cell of it.
__device__ inline float unit_value(const ThreeStage& p, int stage, int row, int column)
{
    const Grid& grid = p.grid;
    if (grid.merge == 1) return cell_value(p, stage, row * grid.columns + column);
    float sum = 0.0f;
    for (int x = 0; x < grid.merge; x++) {
        float down = 0.0f;
        for (int y = 0; y < grid.merge; y++) {
            int at = min(row * grid.merge + y, grid.rows - 1), across = min(column * grid.merge + x, grid.columns - 1);
            down += cell_value(p, stage, at * grid.columns + across);
        }
        sum += down;
    }
    return sum / (float)(grid.merge * grid.merge);
}

// Units along a row of the grid.
__device__ inline int units_across(const Grid& grid) { return (grid.columns + grid.merge - 1) / grid.merge; }

// A number that is greater where the float is greater.
__device__ inline u32 key_of(float value)
{
    u32 bits = __float_as_uint(value + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The greatest `keep` of the living units stay alive. Every thread looks after its own stretch of units.
__device__ inline void cull(const ThreeStage& p, int first, int end, int keep, int* partial)
{
    __shared__ int histogram[BINS];
    __shared__ u32 prefix;
    __shared__ int needed;
    int living = 0;
    for (int i = first; i < end; i++) living += p.alive[i];
    if (block_sum(living, partial) <= keep) return;
    if (threadIdx.x == 0) {
        prefix = 0;
        needed = keep;
    }
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < BINS; i += blockDim.x) histogram[i] = 0;
        __syncthreads();
        u32 known = prefix, mask = shift == 24 ? 0 : 0xffffffffu << (shift + 8);
        for (int i = first; i < end; i++)
            if (p.alive[i] && (p.keys[i] & mask) == known) atomicAdd(&histogram[(p.keys[i] >> shift) & (BINS - 1)], 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            int bin = BINS - 1;
            while (histogram[bin] < needed) needed -= histogram[bin--];
            prefix = known | (u32)bin << shift;
        }
        __syncthreads();
    }
    int equal = 0;
    for (int i = first; i < end; i++) equal += p.alive[i] && p.keys[i] == prefix;
    int rank = sum_before(equal, partial);
    for (int i = first; i < end; i++) {
        if (!p.alive[i]) continue;
        if (p.keys[i] < prefix) p.alive[i] = 0;
        if (p.keys[i] == prefix && rank++ >= needed) p.alive[i] = 0;
    }
    __syncthreads();
}

// Coarse to fine: what each stage finds highest.
__device__ inline void cull_by_score(const ThreeStage& p, int first, int end, int budget, int* partial)
{
    int columns = units_across(p.grid);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = first; i < end; i++) p.keys[i] = key_of(unit_value(p, stage, i / columns, i % columns));
        cull(p, first, end, stage < CULLED ? max(p.keep[stage], budget) : budget, partial);
    }
}

// The units of which the reader lacks most.
__device__ inline void cull_by_error(const ThreeStage& p, int first, int end, int budget, int* partial)
{
    int columns = units_across(p.grid);
    for (int i = first; i < end; i++) {
        float lost = p.kept[node_at(0, i / columns, i % columns, p.grid.root_columns)];
        p.keys[i] = key_of(lost);
        if (!(lost > p.enough)) p.alive[i] = 0;
    }
    cull(p, first, end, budget, partial);
}

// The tokens of the chosen units, in reading order. Returns their number.
__device__ inline int write_tokens(const ThreeStage& p, int first, int end, int* partial)
{
    const Grid& grid = p.grid;
    int columns = units_across(grid), found = 0;
    for (int i = first; i < end; i++) found += p.alive[i];
    int at = sum_before(found, partial);
    for (int i = first; i < end; i++)
        if (p.alive[i]) write_unit(grid, p.tokens, at++, 0, i / columns, i % columns);
    return block_sum(found, partial) * grid.merge * grid.merge;
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) three_stage(const __grid_constant__ ThreeStage p)
{
    __shared__ int partial[WARP];
    const Grid& grid = p.grid;
    if (p.conclusion.frame->unchanged) return;
    int columns = units_across(grid), units = (grid.rows + grid.merge - 1) / grid.merge * columns;
    int stretch = (units + blockDim.x - 1) / blockDim.x, first = threadIdx.x * stretch,
        end = min(first + stretch, units);
    int asked = p.conclusion.frame->budget, budget = asked ? asked / (grid.merge * grid.merge) : p.budget;
    for (int i = first; i < end; i++) p.alive[i] = i / columns < grid.unit_rows && i % columns < grid.unit_columns;
    if (p.stream_memory && !p.conclusion.frame->new_scene) cull_by_error(p, first, end, budget, partial);
    else cull_by_score(p, first, end, budget, partial);
    int count = write_tokens(p, first, end, partial);
    if (threadIdx.x == 0) conclude(p.conclusion, count, 0, 0, 0);
}
