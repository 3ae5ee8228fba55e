// The quadtree with the least weighted squared error for the budget: pipeline/native/pruning.c on the GPU.
//
// Prices lie on a lattice. Each block prunes all trees for one price and counts the tokens; the block that counts last
// narrows the range. Two rounds of 176 blocks find the lowest price whose tokens fit; then that last block extracts the
// tree, spends what is left over on the best single steps, and writes the tokens in order.
#include "block.cuh"

struct Allocate {
    Conclusion conclusion;
    const float* prices;  // [last + 1 - first]: the lattice
    const float* kept;    // [units]: weighted error of no token; null: every unit must be covered
    const float* leaf1;   // [nodes of level 1]: weighted error of one token
    const float* leaf2;   // [nodes of level 2]
    const float* leaf3;   // [nodes of level 2]: shares, see carry.cu
    const float* leaf4;
    float* leaves;        // [nodes of level 3, then of level 4]: their whole errors, written at the end
    u8* state;            // [nodes of all levels, level 0 first]: enum State
    int* counts;          // [blocks]
    Token* tokens;
    Grid grid;
    int budget;           // units
    int start, last;      // indices of the lowest and the highest price
    int step;             // of the first round
    int round;            // 0 or 1
    double min_gain;
};

enum State { NEITHER = 0, TOKEN = 1, KEPT = 2 };

// First node of a level in an array of all levels.
__device__ inline int level_start(const Grid& grid, int level)
{
    int start = 0;
    for (int l = 0; l < level; l++) start += grid.roots << (2 * (TOP - l));
    return start;
}

// The best trees over one node of level 2, and with its neighbours in the warp over those above it.
struct Pruned {
    u8 bottom[16];  // would be a token if no node above it were
    u8 better1[4];  // better shown as one token than split
    u8 better2, better3, better4;
    float leaf3, leaf4;
    int tokens;     // of the whole root
};

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

__device__ inline Pruned prune(const Allocate& p, int node, int exists, float price)
{
    Pruned pruned;
    float cost2 = 0.0f;
    int tokens2 = 0;
    for (int i = 0; i < 4; i++) {
        float cost = 0.0f;
        int tokens = 0;
        if (exists && p.kept) {
            float4 kept = reinterpret_cast<const float4*>(p.kept)[4 * node + i];
            float errors[4] = {kept.x, kept.y, kept.z, kept.w}, least[4];
            for (int j = 0; j < 4; j++) {
                pruned.bottom[4 * i + j] = price < errors[j];
                tokens += price < errors[j];
                least[j] = fminf(price, errors[j]);
            }
            cost = over_four(least);
        } else {
            int units = exists ? units_under(p.grid, 1, 4 * node + i) : 0;
            for (int j = 0; j < 4; j++)
                pruned.bottom[4 * i + j] = units == 4 || (units && units_under(p.grid, 0, 16 * node + 4 * i + j));
            tokens = units;
            cost = price * (float)units;
        }
        float leaf = exists ? p.leaf1[4 * node + i] : 0.0f;
        pruned.better1[i] = prefer_leaf(leaf + price, &cost, &tokens);
        cost2 += cost;
        tokens2 += tokens;
    }
    pruned.better2 = prefer_leaf((exists ? p.leaf2[node] : 0.0f) + price, &cost2, &tokens2);
    float cost3 = over_lanes(cost2, 1);
    int tokens3 = over_lanes(tokens2, 1);
    pruned.leaf3 = over_lanes(exists ? p.leaf3[node] : 0.0f, 1);
    float share4 = over_lanes(exists ? p.leaf4[node] : 0.0f, 1);
    pruned.better3 = prefer_leaf(pruned.leaf3 + price, &cost3, &tokens3);
    float cost4 = over_lanes(cost3, 4);
    int tokens4 = over_lanes(tokens3, 4);
    pruned.leaf4 = over_lanes(share4, 4);
    pruned.better4 = prefer_leaf(pruned.leaf4 + price, &cost4, &tokens4);
    pruned.tokens = exists && node % 16 == 0 ? tokens4 : 0;
    return pruned;
}

__device__ inline int count_tokens(const Allocate& p, float price, int* partial)
{
    int nodes = 16 * p.grid.roots, tokens = 0;
    for (int first = threadIdx.x & ~(WARP - 1); first < nodes; first += blockDim.x) {
        int node = first + threadIdx.x % WARP;
        tokens += prune(p, node, node < nodes, price).tokens;
    }
    return block_sum(tokens, partial);
}

// The lowest of the prices tried whose tokens fit; by the whole block that counted last.
__device__ inline int first_that_fits(const Allocate& p, int* partial)
{
    int over = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) over += __ldcg(p.counts + i) > p.budget;
    return min(block_sum(over, partial), (int)gridDim.x - 1);  // counts never grow with the price
}

__device__ inline void extract(const Allocate& p, float price)
{
    const Grid& grid = p.grid;
    int nodes = 16 * grid.roots, lane = threadIdx.x % WARP;
    u8 *state1 = p.state + level_start(grid, 1), *state2 = p.state + level_start(grid, 2);
    u8 *state3 = p.state + level_start(grid, 3), *state4 = p.state + level_start(grid, 4);
    for (int first = threadIdx.x & ~(WARP - 1); first < nodes; first += blockDim.x) {
        int node = first + lane, exists = node < nodes;
        Pruned pruned = prune(p, node, exists, price);
        int open4 = 1, open3 = !__shfl_sync(EVERYONE, (int)pruned.better4, lane & ~15);
        int leaf3 = __shfl_sync(EVERYONE, (int)pruned.better3, lane & ~3), open2 = open3 && !leaf3;
        if (!exists) continue;
        if (node % 16 == 0) {
            state4[node / 16] = open4 && !open3 ? TOKEN : NEITHER;
            p.leaves[4 * grid.roots + node / 16] = pruned.leaf4;
        }
        if (node % 4 == 0) {
            state3[node / 4] = open3 && leaf3 ? TOKEN : NEITHER;
            p.leaves[node / 4] = pruned.leaf3;
        }
        int open1 = open2 && !pruned.better2;
        state2[node] = open2 && pruned.better2 ? TOKEN : NEITHER;
        for (int i = 0; i < 4; i++) {
            int open0 = open1 && !pruned.better1[i], parent = 4 * node + i;
            state1[parent] = open1 && pruned.better1[i] ? TOKEN : NEITHER;
            for (int j = 0; j < 4; j++) {
                int keeps = p.kept && open0 && units_under(grid, 0, 4 * parent + j);
                p.state[4 * parent + j] = open0 && pruned.bottom[4 * i + j] ? TOKEN : keeps ? KEPT : NEITHER;
            }
        }
    }
}

// A single step as one number: the greatest gain per token first, then the lowest level, then the lowest node in the
// order of quadtree.py, in which all first children come before all second ones.
__device__ inline u64 step_key(const Grid& grid, float rate, int level, int node)
{
    int rank = node >> (2 * (TOP - level)), nodes = grid.roots;
    for (int depth = 1; depth <= TOP - level; depth++, nodes *= 4)
        rank += ((node >> (2 * (TOP - level - depth))) & 3) * nodes;
    return ((u64)__float_as_uint(rate) << 32) | (0xffffffffu - ((u32)level << 29) - (u32)rank);
}

__device__ inline float leaf_error(const Allocate& p, int level, int node)
{
    if (level == 0) return 0.0f;
    if (level == 1) return p.leaf1[node];
    if (level == 2) return p.leaf2[node];
    return p.leaves[level == 3 ? node : 4 * p.grid.roots + node];
}

// Further tokens of the step at a node, and what it gains; 0 where there is none.
__device__ inline int step_at(const Allocate& p, int level, int node, float* gain)
{
    u8 state = p.state[level_start(p.grid, level) + node];
    if (level == 0) {
        if (state != KEPT) return 0;
        *gain = p.kept[node];
        return 1;
    }
    if (state != TOKEN) return 0;
    float children[4];
    int extra = -1;
    for (int i = 0; i < 4; i++) {
        children[i] = leaf_error(p, level - 1, 4 * node + i);
        extra += units_under(p.grid, level - 1, 4 * node + i) > 0;
    }
    *gain = leaf_error(p, level, node) - over_four(children);
    return max(extra, 0);
}

// The best step among the nodes that this thread looks after: every blockDim-th of each level.
__device__ inline u64 best_step(const Allocate& p, int room, int* place)
{
    u64 best = 0;
    for (int level = p.kept ? 0 : 1; level <= TOP; level++) {
        int nodes = p.grid.roots << (2 * (TOP - level));
        for (int node = threadIdx.x; node < nodes; node += blockDim.x) {
            float gain = 0.0f;
            int extra = step_at(p, level, node, &gain);
            if (extra < 1 || extra > room || !((double)gain > extra * p.min_gain)) continue;
            u64 key = step_key(p.grid, gain / (float)extra, level, node);
            if (key > best) {
                best = key;
                *place = level << 28 | node;
            }
        }
    }
    return best;
}

__device__ inline int take_step(const Allocate& p, int level, int node)
{
    u8* state = p.state + level_start(p.grid, level);
    state[node] = NEITHER;
    if (level == 0) {
        state[node] = TOKEN;
        return 1;
    }
    u8* below = p.state + level_start(p.grid, level - 1);
    int extra = -1;
    for (int i = 0; i < 4; i++) {
        int inside = units_under(p.grid, level - 1, 4 * node + i) > 0;
        below[4 * node + i] = inside ? TOKEN : NEITHER;
        extra += inside;
    }
    return extra;
}

__device__ inline u64 warp_greatest(u64 value)
{
    for (int lanes = WARP / 2; lanes; lanes /= 2) {
        u64 other = __shfl_xor_sync(EVERYONE, value, lanes);
        value = other > value ? other : value;
    }
    return value;
}

// Spends `room` on the single best steps, one after the other. Returns the tokens added.
__device__ inline int fill(const Allocate& p, int room)
{
    __shared__ u64 greatest[MOST_THREADS / WARP];
    __shared__ int taken, extra;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    int place = 0, left = room;
    u64 mine = best_step(p, left, &place);
    while (left > 0) {
        u64 best = warp_greatest(mine);
        if (lane == 0) greatest[warp] = best;
        __syncthreads();
        best = warp_greatest(lane < warps ? greatest[lane] : 0);
        if (best == 0) break;
        if (best == mine) {
            taken = place;
            extra = take_step(p, place >> 28, place & 0xfffffff);
        }
        __syncthreads();
        left -= extra;
        int level = taken >> 28, node = taken & 0xfffffff, touched = node % blockDim.x == threadIdx.x;
        for (int i = 0; level && i < 4; i++) touched |= (4 * node + i) % blockDim.x == threadIdx.x;
        if (touched || left < 3) mine = best_step(p, left, &place);
        __syncthreads();
    }
    return room - left;
}

// Place number `index` in the order of tokens: the coarsest level first, then row by row. With merge = 2 a unit has four.
struct Turn {
    int level, row, column;
};

__device__ inline Turn turn_of(const Grid& grid, int index)
{
    int level = TOP, each = grid.merge * grid.merge;
    while (level > 0 && index >= each * (grid.roots << (2 * (TOP - level)))) {
        index -= each * (grid.roots << (2 * (TOP - level)));
        level--;
    }
    int across = grid.merge * (grid.root_columns << (TOP - level));
    Turn turn = {level, index / across, index % across};
    return turn;
}

__device__ inline int is_token(const Allocate& p, const Turn& turn)
{
    const Grid& grid = p.grid;
    int node = node_at(turn.level, turn.row / grid.merge, turn.column / grid.merge, grid.root_columns);
    return p.state[level_start(grid, turn.level) + node] == TOKEN;
}

// Every thread looks through its own stretch of places, and writes its tokens behind those of the threads before it.
__device__ inline void write_tokens(const Allocate& p, int* partial)
{
    const Grid& grid = p.grid;
    int places = grid.merge * grid.merge * (level_start(grid, TOP) + grid.roots);
    int stretch = (places + blockDim.x - 1) / blockDim.x, first = threadIdx.x * stretch;
    int end = min(first + stretch, places), found = 0;
    for (int i = first; i < end; i++) found += is_token(p, turn_of(grid, i));
    int at = sum_before(found, partial);
    for (int i = first; i < end && found; i++) {
        Turn turn = turn_of(grid, i);
        if (!is_token(p, turn)) continue;
        Token* token = p.tokens + at++;
        token->lod = turn.level;
        token->row = turn.row;
        token->column = turn.column;
        found--;
    }
}

__device__ inline void finish(const Allocate& p, int price, int units, int* partial)
{
    extract(p, p.prices[price]);
    __syncthreads();
    if (price > p.start && units < p.budget) units += fill(p, p.budget - units);
    __syncthreads();
    write_tokens(p, partial);
    if (threadIdx.x == 0) conclude(p.conclusion, units * p.grid.merge * p.grid.merge, price);
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) allocate(const __grid_constant__ Allocate p)
{
    __shared__ int partial[WARP];
    __shared__ int last;
    Choice* choice = p.conclusion.choice;
    if (p.conclusion.frame->rests) return;
    int low = p.round ? choice->low : p.start, step = p.round ? choice->step : p.step;
    int price = min(low + (int)blockIdx.x * step, p.last);
    int tokens = count_tokens(p, p.prices[price], partial);
    if (threadIdx.x == 0) {
        p.counts[blockIdx.x] = tokens;
        __threadfence();
        last = atomicAdd(&choice->ticket, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    int fits = first_that_fits(p, partial), chosen = min(low + fits * step, p.last);
    if (threadIdx.x == 0) {
        choice->ticket = 0;
        choice->low = fits ? min(low + (fits - 1) * step, p.last) + 1 : chosen;
        choice->step = fits ? 1 : 0;
    }
    if (p.round) finish(p, chosen, __ldcg(p.counts + fits), partial);
}
