// What is left of the budget is spent on the single steps that gain most: a kept unit gets a token, or a token is split
// into its four children.
#pragma once

#include "pruning.cuh"

__device__ inline u8* state_of(const Allocate& p, const Node& node)
{
    return p.state + level_start(p.grid, node.level) + node.row * columns_of(p.grid, node.level) + node.column;
}

__device__ inline float leaf_error(const Allocate& p, int level, int number)
{
    if (level == 0) return 0.0f;
    if (level == 1) return p.leaf1[number];
    if (level == 2) return p.leaf2[number];
    if (p.grid.top > TOP_LEVEL && level > TOP_LEVEL)
        return p.upper[upper_start(p.grid.root_rows, p.grid.root_columns, level) + number];
    return p.leaves[level == 3 ? number : 4 * p.grid.roots + number];
}

// Taking a single step: a kept unit gets a token (level 0), or a token is split.
struct Step {
    u64 key;            // 0: there is none
    int level, number;  // of the node
    int extra;          // further tokens
};

// A single step as one number: the greatest gain per token first, then the lowest level, then the lowest node in the
// order of quadtree.py, in which all first children come before all second ones, from the roots up row by row.
__device__ inline u64 step_key(const Grid& grid, float rate, int level, int number)
{
    int depths = grid.top > TOP_LEVEL ? max(TOP_LEVEL - level, 0) : TOP_LEVEL - level, rank = number >> (2 * depths),
        nodes = grid.roots;
    for (int depth = 1; depth <= depths; depth++, nodes *= 4) rank += ((number >> (2 * (depths - depth))) & 3) * nodes;
    return ((u64)__float_as_uint(rate) << 32) | (0xffffffffu - ((u32)level << 27) - (u32)rank);
}

// Makes the step at a node the best one, if it is better, gains enough and there is room for its tokens.
__device__ inline void consider(const Allocate& p, int room, int level, int number, Step* best)
{
    float gain;
    int extra = 1;
    if (level == 0) {
        gain = p.kept[number];
    } else {
        Node node = numbered(p.grid, level, number);
        float children[4];
        extra = -1;
        for (int i = 0; i < 4; i++) {
            Node child = child_of(node, i);
            int inside = is_inside(p.grid, child.level, child.row, child.column);
            children[i] = inside ? leaf_error(p, child.level, number_of(p.grid, child)) : 0.0f;
            extra += inside;
        }
        gain = leaf_error(p, level, number) - over_four(children);
    }
    if (extra < 1 || extra > room || !(gain > (float)extra * p.min_gain)) return;
    float rate = extra == 1 ? gain : gain / (float)extra;
    if (__float_as_uint(rate) < (u32)(best->key >> 32)) return;
    u64 key = step_key(p.grid, rate, level, number);
    if (key > best->key) *best = {key, level, number, extra};
}

// Which steps there are at a node of level 2, at those below it, and at those above it of which it is the first: a bit
// for each of its 16 units, its 4 nodes of level 1, itself, and levels 3 and 4.
__device__ inline u32 steps_at(const Allocate& p, int number)
{
    Node node = numbered(p.grid, 2, number), below = child_of(node, 0), bottom = child_of(below, 0);
    const u8* nodes1 = state_of(p, below);
    const u8* cells = state_of(p, bottom);
    u32 rows[4], steps = (*state_of(p, node) == TOKEN) << 20;
    for (int y = 0; y < 4; y++) rows[y] = *reinterpret_cast<const u32*>(cells + y * columns_of(p.grid, 0));
#pragma unroll
    for (int i = 0; i < 4; i++) {
        steps |= (nodes1[i / 2 * columns_of(p.grid, 1) + i % 2] == TOKEN) << (16 + i);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            u32 state = rows[2 * (i / 2) + j / 2] >> 8 * (2 * (i % 2) + j % 2) & 0xff;
            steps |= (state == KEPT) << (4 * i + j);
        }
    }
    for (int level = 3; level <= TOP_LEVEL && number % (1 << 2 * (level - 2)) == 0; level++) {
        Node above = {level, node.row >> (level - 2), node.column >> (level - 2)};
        steps |= (*state_of(p, above) == TOKEN) << (18 + level);
    }
    return steps;
}

// The best step at the nodes that this thread looks after; see looks_after. Its loop is not unrolled: a block runs this
// code a few times and mostly waits for its instructions.
__device__ inline Step best_step(const Allocate& p, int room)
{
    const Grid& grid = p.grid;
    Step best = {};
    for (int node = threadIdx.x; node < 16 * grid.roots; node += blockDim.x) {
        u32 steps = steps_at(p, node);
#pragma unroll 1
        for (; steps; steps &= steps - 1) {
            int i = __ffs(steps) - 1, level = i < 16 ? 0 : i < 20 ? 1 : i - 18;
            int number = level == 0 ? 16 * node + i : level == 1 ? 4 * node + i - 16 : node >> 2 * (level - 2);
            consider(p, room, level, number, &best);
        }
    }
    for (int level = TOP_LEVEL + 1; level <= grid.top; level++)
        for (int node = threadIdx.x; node < nodes_of(grid, level); node += blockDim.x)
            if (*state_of(p, numbered(grid, level, node)) == TOKEN) consider(p, room, level, node, &best);
    return best;
}

// Whether it is this thread that reads and writes a node's state: that of its first, or its only, node of level 2;
// above TOP_LEVEL they take turns.
__device__ inline int looks_after(int level, int number)
{
    if (level <= TOP_LEVEL) number = level < 2 ? number >> 2 * (2 - level) : number << 2 * (level - 2);
    return number % blockDim.x == threadIdx.x;
}

// Takes a step, as far as this thread looks after the nodes. Returns whether it does after any of them.
__device__ inline int take_step(const Allocate& p, const Step& step)
{
    Node node = numbered(p.grid, step.level, step.number);
    int changed = looks_after(step.level, step.number);
    if (changed) *state_of(p, node) = step.level ? NEITHER : TOKEN;
#pragma unroll 1
    for (int i = 0; step.level && i < 4; i++) {
        Node child = child_of(node, i);
        if (!is_inside(p.grid, child.level, child.row, child.column)) continue;
        if (!looks_after(child.level, number_of(p.grid, child))) continue;
        *state_of(p, child) = TOKEN;
        changed = 1;
    }
    return changed;
}

// Spends `room` on the single best steps, one after the other. Returns the tokens added. Keys are unlike each other,
// and a thread reads only states that it writes; so the block waits once for each step, and the warps' best steps lie
// in two halves by turns.
__device__ inline int fill(const Allocate& p, int room)
{
    __shared__ Step offered[2][MOST_THREADS / WARP];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP, left = room, stale = 1;
    Step mine;
    for (int half = 0; left > 0; half = 1 - half) {
        if (stale) mine = best_step(p, left);
        u64 best = warp_greatest(mine.key);
        if (mine.key == best && (best || lane == 0)) offered[half][warp] = mine;
        __syncthreads();
        u64 key = lane < warps ? offered[half][lane].key : 0;
        best = warp_greatest(key);
        if (best == 0) break;
        Step taken = offered[half][__ffs(__ballot_sync(EVERYONE, key == best)) - 1];
        left -= taken.extra;
        stale = take_step(p, taken) || mine.extra > left;
    }
    return room - left;
}
