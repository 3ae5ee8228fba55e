// The quadtree with the least weighted squared error for the budget: pipeline/native/pruning.c on the GPU.
//
// Prices lie on a lattice. Each block prunes all trees for two prices and counts the tokens; the block that counts last
// narrows the range. Two rounds of 88 blocks find the lowest price whose tokens fit; then that last block extracts the
// tree, spends what is left over on the best single steps, and writes the tokens in order.
//
// Up to the roots all is done in registers. Where the budget is smaller than their number, what is above them is pruned
// in memory, level by level.
#include "block.cuh"

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

// Rows, columns and nodes of any level.
__device__ inline int rows_of(const Grid& grid, int level)
{
    return grid.top > TOP_LEVEL && level > TOP_LEVEL ? upper_length(grid.root_rows, level)
                                                     : grid.root_rows << (TOP_LEVEL - level);
}

__device__ inline int columns_of(const Grid& grid, int level)
{
    return grid.top > TOP_LEVEL && level > TOP_LEVEL ? upper_length(grid.root_columns, level)
                                                     : grid.root_columns << (TOP_LEVEL - level);
}

__device__ inline int nodes_of(const Grid& grid, int level) { return rows_of(grid, level) * columns_of(grid, level); }

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

// Tokens of the best trees for two prices, known to the whole block.
__device__ inline void count_tokens(const Allocate& p, const float* price, int* counts, int* partial)
{
    int nodes = 16 * p.grid.roots, tokens[TRIED] = {0, 0}, lane = threadIdx.x % WARP;
    for (int first = threadIdx.x & ~(WARP - 1); first < nodes; first += blockDim.x) {
        int node = first + lane, exists = node < nodes;
        Part part = part_of(p, node, exists);
        for (int i = 0; i < TRIED; i++) {
            Pruned pruned = prune(part, p.kept != 0, price[i]);
            if (!exists || node % 16) continue;
            tokens[i] += pruned.tokens;
            if (p.grid.top == TOP_LEVEL) continue;
            UpperTrees trees = upper_trees(p, i);
            trees.costs[node / 16] = pruned.cost;
            trees.tokens[node / 16] = pruned.tokens;
        }
    }
    for (int i = 0; p.grid.top > TOP_LEVEL && i < TRIED; i++)
        tokens[i] = prune_upper(p, upper_trees(p, i), price[i], nullptr);
    for (int i = 0; i < TRIED; i++) counts[i] = block_sum(tokens[i], partial);
}

// How many of the round's prices are too low; by the whole block that counted last. Counts never grow with the price.
__device__ inline int too_low(const Allocate& p, int* partial)
{
    int over = 0, tried = TRIED * gridDim.x;
    for (int i = threadIdx.x; i < tried; i += blockDim.x) over += __ldcg(p.counts + i) > p.budget;
    return min(block_sum(over, partial), tried - 1);
}

const int STATES = 4;  // that lie in a word

// The level's first place in the order of tokens. Levels below TOP_LEVEL begin with a word; before them up to three
// places may stand empty.
__device__ inline int level_start(const Grid& grid, int level)
{
    int start = 0;
    for (int l = grid.top; l > level; l--) {
        start += nodes_of(grid, l);
        if (l == TOP_LEVEL) start = (start + STATES - 1) / STATES * STATES;
    }
    return start;
}

__device__ inline int is_inside(const Grid& grid, int level, int row, int column)
{
    return row << level < grid.unit_rows && column << level < grid.unit_columns;
}

// Whether no node above this one is a token.
__device__ inline int is_open(const Allocate& p, int level, int row, int column)
{
    const Grid& grid = p.grid;
    for (int above = level + 1; above <= grid.top; above++) {
        int steps = above - level, place = (row >> steps) * columns_of(grid, above) + (column >> steps);
        if (p.state[level_start(grid, above) + place] == TOKEN) return 0;
    }
    return 1;
}

// What the best tree for `price` makes of the nodes above TOP_LEVEL.
__device__ inline void extract_upper(const Allocate& p, float price)
{
    const Grid& grid = p.grid;
    int nodes = 16 * grid.roots, lane = threadIdx.x % WARP;
    UpperTrees trees = upper_trees(p, 0);
    for (int first = threadIdx.x & ~(WARP - 1); first < nodes; first += blockDim.x) {
        int node = first + lane, exists = node < nodes;
        Pruned pruned = prune(part_of(p, node, exists), p.kept != 0, price);
        if (!exists || node % 16) continue;
        trees.costs[node / 16] = pruned.cost;
        trees.tokens[node / 16] = pruned.tokens;
    }
    prune_upper(p, trees, price, p.state);
    for (int level = TOP_LEVEL + 1; level <= grid.top; level++) {  // those above are still as prune_upper left them
        __syncthreads();
        int start = level_start(grid, level), columns = columns_of(grid, level);
        for (int i = threadIdx.x; i < nodes_of(grid, level); i += blockDim.x)
            if (p.state[start + i] && !is_open(p, level, i / columns, i % columns)) p.state[start + i] = NEITHER;
    }
    __syncthreads();
}

// Writes what the best tree for `price` makes of every node, and the errors of the upper leaves.
__device__ inline void extract(const Allocate& p, float price)
{
    const Grid& grid = p.grid;
    if (grid.top > TOP_LEVEL) extract_upper(p, price);
    int nodes = 16 * grid.roots, lane = threadIdx.x % WARP, start[TOP_LEVEL + 1], across[TOP_LEVEL + 1];
    for (int level = 0; level <= TOP_LEVEL; level++) {
        start[level] = level_start(grid, level);
        across[level] = columns_of(grid, level);
    }
    for (int first = threadIdx.x & ~(WARP - 1); first < nodes; first += blockDim.x) {
        int node = first + lane, exists = node < nodes;
        Pruned pruned = prune(part_of(p, node, exists), p.kept != 0, price);
        Place at = place_of(2, node, grid.root_columns);
        int open4 = grid.top == TOP_LEVEL || !exists || is_open(p, TOP_LEVEL, at.row >> 2, at.column >> 2);
        int leaf4 = __shfl_sync(EVERYONE, (int)pruned.better4, lane & ~15), open3 = open4 && !leaf4;
        int leaf3 = __shfl_sync(EVERYONE, (int)pruned.better3, lane & ~3), open2 = open3 && !leaf3;
        if (!exists) continue;
        if (node % 16 == 0) {
            p.state[start[4] + (at.row >> 2) * across[4] + (at.column >> 2)] = open4 && leaf4 ? TOKEN : NEITHER;
            p.leaves[4 * grid.roots + node / 16] = pruned.leaf4;
        }
        if (node % 4 == 0) {
            p.state[start[3] + (at.row >> 1) * across[3] + (at.column >> 1)] = open3 && leaf3 ? TOKEN : NEITHER;
            p.leaves[node / 4] = pruned.leaf3;
        }
        int open1 = open2 && !pruned.better2;
        p.state[start[2] + at.row * across[2] + at.column] = open2 && pruned.better2 ? TOKEN : NEITHER;
        u16 nodes1[2] = {};
        u32 cells[4] = {};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int open0 = open1 && !pruned.better1[i], row = 2 * (i / 2), column = 2 * (i % 2);
            nodes1[i / 2] |= (open1 && pruned.better1[i] ? TOKEN : NEITHER) << 8 * (i % 2);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int y = row + j / 2, x = column + j % 2;
                int inside = open0 && is_inside(grid, 0, 4 * at.row + y, 4 * at.column + x);
                u32 state = !inside ? NEITHER : !p.kept || pruned.bottom[4 * i + j] ? TOKEN : KEPT;
                cells[y] |= state << 8 * x;
            }
        }
        for (int y = 0; y < 2; y++)
            *reinterpret_cast<u16*>(p.state + start[1] + (2 * at.row + y) * across[1] + 2 * at.column) = nodes1[y];
        for (int y = 0; y < 4; y++)
            *reinterpret_cast<u32*>(p.state + start[0] + (4 * at.row + y) * across[0] + 4 * at.column) = cells[y];
    }
    int empty = start[TOP_LEVEL] + nodes_of(grid, TOP_LEVEL) + threadIdx.x;
    if (empty < start[TOP_LEVEL - 1]) p.state[empty] = NEITHER;
}

struct Node {
    int level, row, column;
};

// The node whose state lies at `place`.
__device__ inline Node node_of(const Grid& grid, int place)
{
    int level = grid.top;
    while (level > 0 && place >= level_start(grid, level - 1)) level--;
    int within = place - level_start(grid, level), columns = columns_of(grid, level);
    Node node = {level, within / columns, within % columns};
    return node;
}

// The node of a level by its number there: in Morton order up to TOP_LEVEL, row by row above it.
__device__ inline Node numbered(const Grid& grid, int level, int number)
{
    Place at;
    if (grid.top > TOP_LEVEL && level > TOP_LEVEL) {
        int columns = columns_of(grid, level);
        at = {number / columns, number % columns};
    } else {
        at = place_of(level, number, grid.root_columns);
    }
    Node node = {level, at.row, at.column};
    return node;
}

__device__ inline Node child_of(const Node& node, int i)
{
    Node child = {node.level - 1, 2 * node.row + i / 2, 2 * node.column + i % 2};
    return child;
}

__device__ inline int number_of(const Grid& grid, const Node& node)
{
    if (grid.top > TOP_LEVEL && node.level > TOP_LEVEL) return node.row * columns_of(grid, node.level) + node.column;
    return node_at(node.level, node.row, node.column, grid.root_columns);
}

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

__device__ inline u64 warp_greatest(u64 value)
{
    for (int lanes = WARP / 2; lanes; lanes /= 2) {
        u64 other = __shfl_xor_sync(EVERYONE, value, lanes);
        value = other > value ? other : value;
    }
    return value;
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

// Every thread looks through its own stretch of places, and lists those of tokens behind those of the threads before
// it; then each makes tokens of its part of the list.
__device__ inline void write_tokens(const Allocate& p, int units, int* partial)
{
    const Grid& grid = p.grid;
    const u32* states = reinterpret_cast<const u32*>(p.state);
    int words = (level_start(grid, 0) + nodes_of(grid, 0)) / STATES, stretch = (words + blockDim.x - 1) / blockDim.x;
    int first = threadIdx.x * stretch, end = min(first + stretch, words), found = 0, each = grid.merge * grid.merge;
#pragma unroll 4
    for (int word = first; word < end; word++) found += __popc(states[word] & 0x01010101u);
    int at = sum_before(found, partial);
    for (int word = first; word < end && found; word++) {
        u32 four = states[word] & 0x01010101u;
        for (int i = 0; four; i++, four >>= 8) {
            if (!(four & 1)) continue;
            p.tokens[at++ * each].lod = STATES * word + i;
            found--;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < units; i += blockDim.x) {
        Node node = node_of(grid, p.tokens[i * each].lod);
        write_unit(grid, p.tokens, i, node.level, node.row, node.column);
    }
}

__device__ inline void finish(const Allocate& p, int price, int units, int* partial)
{
    extract(p, p.prices[price]);
    __syncthreads();
    if (price > p.start && units < p.budget) units += fill(p, p.budget - units);
    __syncthreads();
    write_tokens(p, units, partial);
    if (threadIdx.x) return;
    int debt = p.rate.debt ? max(0, p.rate.owed + units - p.rate.average) : 0, each = p.grid.merge * p.grid.merge;
    if (p.rate.debt) *p.rate.debt = debt;
    conclude(p.conclusion, units * each, price, debt * each, p.rate.owed > 0);
}

// With what the debt leaves of the budget, and the price that it asks for.
__device__ inline void keep_to_rate(Allocate* p)
{
    Rate* rate = &p->rate;
    int deepest = rate->depth * p->budget;
    rate->average = p->budget;
    rate->owed = min(*rate->debt, deepest);
    p->budget = min((int)(rate->burst * rate->average), rate->average + deepest - rate->owed);
    if (!rate->owed) return;
    p->start = min(p->start + (int)(rate->steps * ((double)rate->owed / deepest)), p->last);
    p->min_gain = p->prices[p->start];
}

// With this frame's budget. Units may go without a token where the reader holds something.
__device__ inline Allocate of_this_frame(const Allocate& given)
{
    Allocate p = given;
    int asked = p.conclusion.frame->budget;
    if (asked) p.budget = asked / (p.grid.merge * p.grid.merge);
    if (p.rate.debt) keep_to_rate(&p);
    if (!p.stream_memory || p.conclusion.frame->new_scene) p.kept = nullptr;
    return p;
}

__device__ __forceinline__ void round_of(const Allocate& p)
{
    __shared__ int partial[WARP];
    __shared__ int last;
    CascadeState* cascade = p.conclusion.cascade;
    if (p.conclusion.frame->unchanged) return;
    int low = p.round ? cascade->low : p.start, step = p.round ? cascade->step : p.step, counts[TRIED];
    float price[TRIED];
    for (int i = 0; i < TRIED; i++) price[i] = p.prices[min(low + (TRIED * (int)blockIdx.x + i) * step, p.last)];
    count_tokens(p, price, counts, partial);
    if (threadIdx.x == 0) {
        for (int i = 0; i < TRIED; i++) p.counts[TRIED * blockIdx.x + i] = counts[i];
        __threadfence();
        last = atomicAdd(&cascade->ticket, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    int fits = too_low(p, partial), chosen = min(low + fits * step, p.last);
    if (threadIdx.x == 0) {
        cascade->ticket = 0;
        cascade->low = fits ? min(low + (fits - 1) * step, p.last) + 1 : chosen;
        cascade->step = fits ? 1 : 0;
    }
    if (p.round) finish(p, chosen, __ldcg(p.counts + fits), partial);
}

// Where the roots are the coarsest tokens, as they nearly always are. Then all that is above them, and every loop over
// the levels, is known to the compiler.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) allocate(const __grid_constant__ Allocate given)
{
    Allocate p = of_this_frame(given);
    p.grid.top = TOP_LEVEL;
    round_of(p);
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) allocate_upper(const __grid_constant__ Allocate given)
{
    round_of(of_this_frame(given));
}
