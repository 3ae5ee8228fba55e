// The quadtree with the least weighted squared error for the budget: pipeline/native/pruning.c on the GPU.
//
// Prices lie on a lattice. Each block prunes all trees for two prices and counts the tokens; the block that counts last
// narrows the range. Two rounds of 88 blocks find the lowest price whose tokens fit; then that last block extracts the
// tree, spends what is left over on the best single steps, and writes the tokens in order.
#include "single_steps.cuh"

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
