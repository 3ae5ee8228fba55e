// Coarse-to-fine culling: each stage keeps the units with the highest values, the last one as many as the budget; with
// a reader that holds earlier tokens, one stage keeps those of which it lacks most. Equals pipeline/cascade/top_k.py.
//
// One block. The highest values are found by their bits, eight at a time; of equal values those first in reading order.
// The fewest that hold a share of all are found bit by bit: a sum for each bit, always added in the same order.
#include "select.cuh"
#include "spec/local_channels.h"
#include "spec/top_k.h"

const int MOST_STAGES = 5;

struct Stage {
    int value;  // enum CellValue
    int keep;   // units that pass, at least the budget; 0, in the last stage: the budget
};

struct TopK {
    Conclusion conclusion;
    Token* tokens;
    const float* channels;  // [7][cells]
    const float* scores;    // [3][cells]; the first is the final score
    const float* errors;    // [4][cells]; the first is that of level 1
    const float* kept;      // [units], in the order of cascade.cuh: weighted error of what the reader holds
    u32* keys;              // [units]: values as numbers in the same order
    u8* alive;              // [units]: still among the chosen
    Grid grid;
    Stage stages[MOST_STAGES];
    int count;          // of stages
    int budget;         // units, unless the frame has its own
    int stream_memory;  // 1: the reader holds earlier tokens
    float enough;       // of `kept`, up to which nothing is lacking
    double share;       // of the total value, which the fewest units are to hold; 0: as many as pass a stage
    double nearly;      // from this part of the share on it counts as held
};

// Detail that a level below TOP_LEVEL adds to the next coarser one, up to 1.
__device__ inline float detail_of(const TopK& p, int level, int cell)
{
    int cells = p.grid.rows * p.grid.columns;
    float error = p.errors[level * cells + cell];
    if (level) error -= p.errors[(level - 1) * cells + cell];
    return fminf(sqrtf(fmaxf(error, 0.0f) / 256.0f) / 4.0f, 1.0f);
}

__device__ inline float detailed(const TopK& p, int level, int cell)
{
    return p.scores[cell] * (0.5f + 0.5f * detail_of(p, level, cell));
}

// What a stage knows of a cell.
__device__ inline float cell_value(const TopK& p, int value, int cell)
{
    int cells = p.grid.rows * p.grid.columns;
    if (value == SCORE) return p.scores[cell];
    if (value == SCORE_DETAIL_1) return detailed(p, 1, cell);
    if (value == SCORE_DETAIL_0) return detailed(p, 0, cell);
    float pull = p.channels[SALIENCY * cells + cell] + p.channels[MOTION * cells + cell];
    return value == COARSE ? pull : pull + detail_of(p, 3, cell);
}

// The mean over the unit's cells, each column's sum first; what lies beyond the grid is as the nearest cell of it.
__device__ inline float unit_value(const TopK& p, int value, int row, int column)
{
    const Grid& grid = p.grid;
    if (grid.merge == 1) return cell_value(p, value, row * grid.columns + column);
    float sum = 0.0f;
    for (int x = 0; x < grid.merge; x++) {
        float down = 0.0f;
        for (int y = 0; y < grid.merge; y++) {
            int at = min(row * grid.merge + y, grid.rows - 1), across = min(column * grid.merge + x, grid.columns - 1);
            down += cell_value(p, value, at * grid.columns + across);
        }
        sum += down;
    }
    return sum / (float)(grid.merge * grid.merge);
}

// Units along a row of the grid.
__device__ inline int units_across(const Grid& grid) { return (grid.columns + grid.merge - 1) / grid.merge; }

// The fewest living units that hold the share of the sum of their values, which are not negative; at least one.
__device__ inline int fewest(const TopK& p, const Stretch& own, int* partial)
{
    __shared__ double sums[WARP];
    int living = 0;
    double total = 0.0;
    __syncthreads();
    for (int i = threadIdx.x; i < own.count; i += blockDim.x) {
        if (!p.alive[i]) continue;
        living++;
        total += value_of(p.keys[i]);
    }
    if (!block_sum(living, partial)) return 0;
    double wanted = p.share * block_sum(total, sums) * p.nearly;
    if (!(wanted > 0.0)) return 1;
    u32 least = 0x80000000u;  // the greatest key for which the units with that key or a greater one hold the share
    for (u32 bit = 1u << 30; bit; bit >>= 1) {
        double held = 0.0;
        for (int i = threadIdx.x; i < own.count; i += blockDim.x)
            if (p.alive[i] && p.keys[i] >= (least | bit)) held += value_of(p.keys[i]);
        if (block_sum(held, sums) >= wanted) least |= bit;
    }
    int greater = 0, equal = 0;
    double held = 0.0;
    for (int i = threadIdx.x; i < own.count; i += blockDim.x) {
        if (!p.alive[i]) continue;
        greater += p.keys[i] > least;
        equal += p.keys[i] == least;
        if (p.keys[i] > least) held += value_of(p.keys[i]);
    }
    double lacking = (wanted - block_sum(held, sums)) / value_of(least);
    return block_sum(greater, partial) + min(max((int)ceil(lacking), 1), block_sum(equal, partial));
}

// Those that pass a stage stay alive. `keep`: units, at least the budget; 0: as many as the budget.
__device__ inline void pass(const TopK& p, const Stretch& own, int keep, int budget, int* partial)
{
    int most = max(keep, budget);
    if (p.share > 0.0) {
        int least = fewest(p, own, partial);
        most = keep ? max(least, budget) : min(least, budget);
    }
    keep_highest(p.keys, p.alive, own, most, partial);
}

// Coarse to fine: what each stage finds highest.
__device__ inline void cull_by_score(const TopK& p, const Stretch& own, int budget, int* partial)
{
    int columns = units_across(p.grid);
    for (int stage = 0; stage < p.count; stage++) {
        int value = p.stages[stage].value;
        for (int i = threadIdx.x; i < own.count; i += blockDim.x)
            if (p.alive[i]) p.keys[i] = key_of(unit_value(p, value, i / columns, i % columns));
        pass(p, own, p.stages[stage].keep, budget, partial);
    }
}

// The units of which the reader lacks most.
__device__ inline void cull_by_error(const TopK& p, const Stretch& own, int budget, int* partial)
{
    int columns = units_across(p.grid);
    for (int i = threadIdx.x; i < own.count; i += blockDim.x) {
        float lost = p.kept[node_at(0, i / columns, i % columns, p.grid.root_columns)];
        p.keys[i] = key_of(lost);
        if (!(lost > p.enough)) p.alive[i] = 0;
    }
    pass(p, own, 0, budget, partial);
}

// The tokens of the chosen units, in reading order. Returns their number.
__device__ inline int write_tokens(const TopK& p, const Stretch& own, int* partial)
{
    const Grid& grid = p.grid;
    int columns = units_across(grid), found = 0;
    for (int i = own.first; i < own.end; i++) found += p.alive[i];
    int at = sum_before(found, partial);
    for (int i = own.first; i < own.end; i++)
        if (p.alive[i]) write_unit(grid, p.tokens, at++, 0, i / columns, i % columns);
    return block_sum(found, partial) * grid.merge * grid.merge;
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) top_k(const __grid_constant__ TopK p)
{
    __shared__ int partial[WARP];
    const Grid& grid = p.grid;
    if (p.conclusion.frame->unchanged) return;
    int columns = units_across(grid), units = (grid.rows + grid.merge - 1) / grid.merge * columns;
    Stretch own = own_stretch(units);
    int asked = p.conclusion.frame->budget, budget = asked ? asked / (grid.merge * grid.merge) : p.budget;
    for (int i = threadIdx.x; i < units; i += blockDim.x)
        p.alive[i] = i / columns < grid.unit_rows && i % columns < grid.unit_columns;
    if (p.stream_memory && !p.conclusion.frame->new_scene) cull_by_error(p, own, budget, partial);
    else cull_by_score(p, own, budget, partial);
    int count = write_tokens(p, own, partial);
    if (threadIdx.x == 0) conclude(p.conclusion, count, 0, 0, 0);
}
