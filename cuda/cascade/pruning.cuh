// The problem of an allocation, and for one price the trees with the least weighted squared error plus price of tokens.
//
// Up to the roots all is done in registers. Where the budget is smaller than their number, what is above them is pruned
// in memory, level by level.
#pragma once

#include "block.cuh"
#include "tree.cuh"

const int TRIED = 2;  // prices per block

// What pipeline/cascade/rate.py knows of a stream whose budget is an average.
struct Rate {
    int* debt;     // units spent beyond the average and not saved again since; null: the budget is fixed
    double burst;  // most units of a frame, as a multiple of the average
    int depth;     // most debt, in averages
    int steps;     // on the lattice, from the least price without debt to that with the most
    int average;   // this frame's, in units
    int owed;      // before this frame
};

struct Allocate {
    Conclusion conclusion;
    const float* prices;  // the lattice, ascending
    const float* kept;    // [units]: weighted error of no token; null inside the kernel: every unit must be covered
    const float* leaf1;   // [nodes of level 1]: weighted error of one token
    const float* leaf2;   // [nodes of level 2]
    const float* leaf3;   // [nodes of level 2]: shares, see carry.cu
    const float* leaf4;
    const u8* units;     // [nodes of level 1]: units inside the picture
    float* leaves;       // [nodes of level 3, then of level 4]: their whole errors, written at the end
    const float* upper;  // [nodes above TOP_LEVEL]: weighted error of one token
    u8* state;           // enum State of all nodes, the top level first, each row by row; see level_start
    int* counts;         // [blocks][TRIED]
    float* upper_costs;  // [blocks][TRIED][roots and nodes above TOP_LEVEL]
    int* upper_tokens;   // the same
    Token* tokens;
    Rate rate;
    Grid grid;
    int budget;         // units, unless the frame has its own; with a rate the average
    int stream_memory;  // 1: the reader holds earlier tokens
    int start, last;    // indices of the lowest and the highest price
    int step;           // of the first round
    int round;          // 0 or 1
    float min_gain;
};

enum State { NEITHER = 0, TOKEN = 1, KEPT = 2 };  // bit 0 tells tokens

// One level-2 node's part of the problem.
struct Part {
    float kept[16], leaf1[4], leaf2, share3, share4;
    u8 units[4];
};

// The best trees over one node of level 2, and with its neighbours in the warp over those above it.
struct Pruned {
    u8 bottom[16];  // with `kept`: would be a token if no node above it were
    u8 better1[4];  // better shown as one token than split
    u8 better2, better3, better4;
    float leaf3, leaf4;
    float cost;  // of the whole root
    int tokens;
};

__device__ inline Part part_of(const Allocate& p, int node, int exists)
{
    Part part = {};
    if (!exists) return part;
    float4 leaf1 = reinterpret_cast<const float4*>(p.leaf1)[node];
    uchar4 units = reinterpret_cast<const uchar4*>(p.units)[node];
    part.leaf1[0] = leaf1.x, part.leaf1[1] = leaf1.y, part.leaf1[2] = leaf1.z, part.leaf1[3] = leaf1.w;
    part.units[0] = units.x, part.units[1] = units.y, part.units[2] = units.z, part.units[3] = units.w;
    part.leaf2 = p.leaf2[node];
    part.share3 = p.leaf3[node];
    part.share4 = p.leaf4[node];
    if (p.kept)
        for (int i = 0; i < 4; i++) {
            float4 kept = reinterpret_cast<const float4*>(p.kept)[4 * node + i];
            part.kept[4 * i] = kept.x, part.kept[4 * i + 1] = kept.y;
            part.kept[4 * i + 2] = kept.z, part.kept[4 * i + 3] = kept.w;
        }
    return part;
}

// Sum over the lanes lane, lane + stride, ... of four children; right where the lane is the first of them.
template <typename T>
__device__ inline T over_lanes(T value, int stride)
{
    T a = value, b = __shfl_down_sync(EVERYONE, value, stride);
    T c = __shfl_down_sync(EVERYONE, value, 2 * stride), d = __shfl_down_sync(EVERYONE, value, 3 * stride);
    return ((a + b) + c) + d;
}

// One token instead of `cost`, where that is better. Of equal costs the one with fewer tokens is taken.
__device__ inline u8 prefer_leaf(float leaf, float* cost, int* tokens)
{
    u8 better = leaf < *cost || (leaf == *cost && *tokens > 1);
    if (better) {
        *cost = leaf;
        *tokens = 1;
    }
    return better;
}

__device__ inline Pruned prune(const Part& part, int keeps, float price)
{
    Pruned pruned;
    float cost2 = 0.0f;
    int tokens2 = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float cost = price * (float)part.units[i];
        int tokens = part.units[i];
        if (keeps) {
            float least[4];
            tokens = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float kept = part.kept[4 * i + j];
                pruned.bottom[4 * i + j] = price < kept;
                tokens += price < kept;
                least[j] = fminf(price, kept);
            }
            cost = over_four(least);
        }
        pruned.better1[i] = prefer_leaf(part.leaf1[i] + price, &cost, &tokens);
        cost2 += cost;
        tokens2 += tokens;
    }
    pruned.better2 = prefer_leaf(part.leaf2 + price, &cost2, &tokens2);
    float cost3 = over_lanes(cost2, 1);
    int tokens3 = over_lanes(tokens2, 1);
    pruned.leaf3 = over_lanes(part.share3, 1);
    pruned.better3 = prefer_leaf(pruned.leaf3 + price, &cost3, &tokens3);
    float cost4 = over_lanes(cost3, 4);
    int tokens4 = over_lanes(tokens3, 4);
    pruned.leaf4 = over_lanes(over_lanes(part.share4, 1), 4);
    pruned.better4 = prefer_leaf(pruned.leaf4 + price, &cost4, &tokens4);
    pruned.cost = cost4;
    pruned.tokens = tokens4;
    return pruned;
}

// What is known of the roots and of the nodes above them, for one price of this block; level TOP_LEVEL comes first.
struct UpperTrees {
    float* costs;
    int* tokens;
};

__device__ inline UpperTrees upper_trees(const Allocate& p, int tried)
{
    const Grid& grid = p.grid;
    int nodes = grid.roots + upper_start(grid.root_rows, grid.root_columns, grid.top + 1);
    size_t at = (size_t)(TRIED * blockIdx.x + tried) * nodes;
    UpperTrees trees = {p.upper_costs + at, p.upper_tokens + at};
    return trees;
}

// Prunes above the roots, whose trees are known. `better`, if any, is given the nodes that are better shown as one
// token, the coarsest level first. Returns this thread's part of all tokens.
__device__ inline int prune_upper(const Allocate& p, UpperTrees below, float price, u8* better)
{
    const Grid& grid = p.grid;
    int columns_below = grid.root_columns, rows_below = grid.root_rows, tokens = 0;
    const float* leaf = p.upper;
    if (better) better += upper_start(grid.root_rows, grid.root_columns, grid.top + 1);
    for (int level = TOP_LEVEL + 1; level <= grid.top; level++) {
        int rows = rows_of(grid, level), columns = columns_of(grid, level), nodes = rows * columns;
        UpperTrees here = {below.costs + rows_below * columns_below, below.tokens + rows_below * columns_below};
        if (better) better -= nodes;
        __syncthreads();
        for (int i = threadIdx.x; i < nodes; i += blockDim.x) {
            float children[4];
            int count = 0;
            for (int k = 0; k < 4; k++) {
                int row = 2 * (i / columns) + k / 2, column = 2 * (i % columns) + k % 2;
                int exists = row < rows_below && column < columns_below, child = row * columns_below + column;
                children[k] = exists ? below.costs[child] : 0.0f;
                count += exists ? below.tokens[child] : 0;
            }
            float cost = over_four(children);
            u8 alone = prefer_leaf(leaf[i] + price, &cost, &count);
            if (better) better[i] = alone;
            here.costs[i] = cost;
            here.tokens[i] = count;
            if (level == grid.top) tokens += count;
        }
        below = here;
        leaf += nodes;
        rows_below = rows, columns_below = columns;
    }
    return tokens;
}
