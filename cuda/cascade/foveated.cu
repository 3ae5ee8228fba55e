// Foveated allocation: nodes are split by their distance from the fixation point, as far as the budget goes; with a
// reader that holds earlier tokens, of several such trees the one whose best leaves it lacks most. Equals
// pipeline/cascade/foveated.py.
//
// In order: one block finds the fixation point and what each node would gain; where that point or the top level
// changed, the nodes are sorted; a block for each tree chooses its leaves; one block writes the tokens.
// Nodes of a level are numbered as in pipeline/quadtree.py, on which the order of equal ones depends: below TOP_LEVEL
// all first children of a level, then all second ones; from TOP_LEVEL on row by row.
#include "select.cuh"
#include "spec/foveated.h"

const int THREADS = 256;
const double NEVER_SPLIT = 1e300;

// Kept from frame to frame.
struct Fixation {
    double x, y;  // level-0 pixels
    int top;      // level for which the nodes are sorted; 0: they are not yet
    int moved;    // 1: the nodes must be sorted for this frame
};

struct Foveated {
    Conclusion conclusion;
    Token* tokens;
    const int* has_gaze;         // other than 0 where there is a gaze
    const double* gaze;          // its x and y
    const float* participation;  // [cells]; null: there is no query
    const float* kept;           // the weighted errors that carry.cu sums, in the order of cascade.cuh
    const float* leaf1;
    const float* leaf2;
    const float* leaf3;
    const float* leaf4;
    const float* upper;
    Fixation* fixation;
    int* rank;       // [nodes that can be split, from the top down]: place among the sorted ones
    double* needed;  // [sorted nodes]: the M0 above which a node is split
    u8* grown;       // [sorted nodes]: units that the split adds
    float* lost;     // [nodes from level 0 up]: weighted error of what the reader holds
    u32* keys;       // [nodes]: what a token gains, as numbers in the same order
    u8* alive;       // [trees][nodes]: chosen
    double* gained;  // [trees]
    Grid grid;
    int width, height;  // pixels
    int nodes;          // room in `alive` for a tree
    int budget;         // units, unless the frame has its own
    int stream_memory;  // 1: the reader holds earlier tokens
    float enough;       // a token must gain more
    double m0, e0;
    double half_diagonal;  // pixels
};

__device__ inline int columns_of(const Grid& grid, int level)
{
    if (level < TOP_LEVEL) return grid.root_columns << (TOP_LEVEL - level);
    return upper_length(grid.root_columns, level);
}

__device__ inline int rows_of(const Grid& grid, int level)
{
    if (level < TOP_LEVEL) return grid.root_rows << (TOP_LEVEL - level);
    return upper_length(grid.root_rows, level);
}

__device__ inline int nodes_of(const Grid& grid, int level) { return rows_of(grid, level) * columns_of(grid, level); }

// Nodes of the levels from `level` to the top.
__device__ inline int nodes_from(const Grid& grid, int level)
{
    int count = 0;
    for (int each = level; each <= grid.top; each++) count += nodes_of(grid, each);
    return count;
}

// Row and column of a node.
__device__ inline Place place_in(const Grid& grid, int level, int node)
{
    int columns = columns_of(grid, max(level, TOP_LEVEL)), roots = nodes_of(grid, max(level, TOP_LEVEL));
    int rest = node / roots, root = node % roots;
    Place place = {root / columns, root % columns};
    for (int below = level; below < TOP_LEVEL; below++, rest >>= 2) {
        place.row = 2 * place.row + (rest >> 1 & 1);
        place.column = 2 * place.column + (rest & 1);
    }
    return place;
}

// The node at a place: the inverse of place_in.
__device__ inline int node_in(const Grid& grid, int level, int row, int column)
{
    int depth = max(TOP_LEVEL - level, 0), each = grid.roots;
    int node = (row >> depth) * columns_of(grid, max(level, TOP_LEVEL)) + (column >> depth);
    for (int bit = depth - 1; bit >= 0; bit--, each *= 4) node += each * (2 * (row >> bit & 1) + (column >> bit & 1));
    return node;
}

__device__ inline int parent_of(const Grid& grid, int level, int node)
{
    if (level < TOP_LEVEL) return node % nodes_of(grid, level + 1);
    int columns = columns_of(grid, level);
    return node / columns / 2 * columns_of(grid, level + 1) + node % columns / 2;
}

// The k-th child in reading order; -1 where there is none.
__device__ inline int child_of(const Grid& grid, int level, int node, int k)
{
    if (level <= TOP_LEVEL) return k * nodes_of(grid, level) + node;
    int columns = columns_of(grid, level), row = 2 * (node / columns) + k / 2, column = 2 * (node % columns) + k % 2;
    int across = columns_of(grid, level - 1);
    return row < rows_of(grid, level - 1) && column < across ? row * across + column : -1;
}

// Whether any unit under the node lies inside the picture.
__device__ inline int is_inside(const Grid& grid, int level, const Place& place)
{
    return place.row << level < grid.unit_rows && place.column << level < grid.unit_columns;
}

__device__ inline int is_inside(const Grid& grid, int level, int node)
{
    return is_inside(grid, level, place_in(grid, level, node));
}

// The level of the index-th of all nodes that can be split, from the top down; `index` becomes the node.
__device__ inline int level_of_split(const Grid& grid, int* index)
{
    int level = grid.top;
    for (; *index >= nodes_of(grid, level); level--) *index -= nodes_of(grid, level);
    return level;
}

// The place of a node among those that can be split; the inverse of level_of_split.
__device__ inline int split_at(const Grid& grid, int level, int node) { return nodes_from(grid, level + 1) + node; }

// The M0 above which the index-th node is split, NEVER_SPLIT outside the picture. Distances are 0 inside the node.
__device__ inline double needed_of(const Foveated& p, int index)
{
    int level = level_of_split(p.grid, &index), side = CELL * p.grid.merge << level;
    Place place = place_in(p.grid, level, index);
    if (!is_inside(p.grid, level, place)) return NEVER_SPLIT;
    double x = p.fixation->x, y = p.fixation->y;
    double across = fmax(fmax(place.column * side - x, x - (place.column + 1) * side), 0.0);
    double down = fmax(fmax(place.row * side - y, y - (place.row + 1) * side), 0.0);
    return (sqrt(across * across + down * down) / p.half_diagonal + p.e0) / (double)(1 << level);
}

// The greatest value of all threads, known to all.
__device__ inline u64 block_greatest(u64 value, u64* partial)
{
    value = warp_greatest(value);
    if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = value;
    __syncthreads();
    u64 greatest = 0;
    for (int i = 0; i < (int)blockDim.x / WARP; i++)
        if (partial[i] > greatest) greatest = partial[i];
    return greatest;
}

// The gaze, else the centre of the cell most relevant to a query, else the picture's.
__device__ inline void fixate(const Foveated& p)
{
    __shared__ u64 partial[WARP];
    const Grid& grid = p.grid;
    u64 best = 0;  // a participation, and how far the cell is from the end of the grid: the first of equal ones wins
    int cells = grid.rows * grid.columns, asks = p.participation && !*p.has_gaze;
    for (int cell = threadIdx.x; asks && cell < cells; cell += blockDim.x) {
        if (cell / grid.columns >= grid.inside_rows || cell % grid.columns >= grid.inside_columns) continue;
        float found = p.participation[cell];
        u64 key = (u64)__float_as_uint(found) << 32 | (u32)(cells - cell);
        if (found > 0.0f && key > best) best = key;
    }
    best = block_greatest(best, partial);
    if (threadIdx.x) return;
    double x = p.width / 2.0, y = p.height / 2.0;
    if (*p.has_gaze) {
        x = p.gaze[0], y = p.gaze[1];
    } else if (best) {
        int cell = cells - (int)(u32)best;
        x = (cell % grid.columns + 0.5) * CELL, y = (cell / grid.columns + 0.5) * CELL;
    }
    Fixation* kept = p.fixation;
    kept->moved = x != kept->x || y != kept->y || grid.top != kept->top;
    kept->x = x, kept->y = y, kept->top = grid.top;
}

// Weighted error that a token on the node would leave.
__device__ inline float left_by(const Foveated& p, int level, int node)
{
    const Grid& grid = p.grid;
    if (level == 0) return 0.0f;
    if (level > TOP_LEVEL) return p.upper[upper_start(grid.root_rows, grid.root_columns, level) + node];
    Place place = place_in(grid, level, node);
    int at = node_at(level, place.row, place.column, grid.root_columns);
    if (level == 1) return p.leaf1[at];
    if (level == 2) return p.leaf2[at];
    if (level == 3) return over_four(p.leaf3 + 4 * at);
    float quarters[4];
    for (int i = 0; i < 4; i++) quarters[i] = over_four(p.leaf4 + 16 * at + 4 * i);
    return over_four(quarters);
}

// What a token on each node would gain, from the errors of the reader's picture.
__device__ inline void weigh_nodes(const Foveated& p)
{
    const Grid& grid = p.grid;
    int below = 0, start = 0;
    for (int level = 0; level <= grid.top; level++) {
        for (int node = threadIdx.x; node < nodes_of(grid, level); node += blockDim.x) {
            float lost;
            if (level == 0) {
                Place place = place_in(grid, 0, node);
                lost = p.kept[node_at(0, place.row, place.column, grid.root_columns)];
            } else {
                float children[4];
                for (int k = 0; k < 4; k++) {
                    int child = child_of(grid, level, node, k);
                    children[k] = child < 0 ? 0.0f : p.lost[below + child];
                }
                lost = over_four(children);
            }
            p.lost[start + node] = lost;
            p.keys[start + node] = key_of(lost - left_by(p, level, node));
        }
        __syncthreads();
        below = start;
        start += nodes_of(grid, level);
    }
}

__device__ inline int compares_trees(const Foveated& p) { return p.stream_memory && !p.conclusion.frame->new_scene; }

extern "C" __global__ void __launch_bounds__(MOST_THREADS) prepare(const __grid_constant__ Foveated p)
{
    if (p.conclusion.frame->unchanged) return;
    fixate(p);
    if (compares_trees(p)) weigh_nodes(p);
}

// A thread for each node that can be split: counts those before it.
extern "C" __global__ void __launch_bounds__(THREADS) sort_nodes(const __grid_constant__ Foveated p)
{
    __shared__ double needed[THREADS];
    if (p.conclusion.frame->unchanged || !p.fixation->moved) return;
    const Grid& grid = p.grid;
    int index = blockIdx.x * THREADS + threadIdx.x, count = nodes_from(grid, 1), rank = 0;
    double own = index < count ? needed_of(p, index) : NEVER_SPLIT;
    for (int first = 0; first < count; first += THREADS) {
        int other = first + threadIdx.x;
        __syncthreads();
        needed[threadIdx.x] = other < count ? needed_of(p, other) : NEVER_SPLIT;
        __syncthreads();
        for (int i = 0; i < THREADS; i++) rank += needed[i] < own || (needed[i] == own && first + i < index);
    }
    if (index >= count) return;
    p.rank[index] = own < NEVER_SPLIT ? rank : count;
    if (!(own < NEVER_SPLIT)) return;
    int node = index, level = level_of_split(grid, &node), children = 0;
    for (int k = 0; k < 4; k++) {
        int child = child_of(grid, level, node, k);
        children += child >= 0 && is_inside(grid, level - 1, child);
    }
    p.needed[rank] = own;
    p.grown[rank] = children - 1;
}

// How many of the sorted nodes a tree splits: `enough` is the most that the budget allows, `most` the most that M0
// does.
struct Sizes {
    int enough, most;
};

__device__ inline Sizes sizes_of_trees(const Foveated& p, int budget, int* partial)
{
    const Grid& grid = p.grid;
    int count = nodes_from(grid, 1), inside = 0, roots = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) inside += p.rank[i] < count;
    for (int i = threadIdx.x; i < nodes_of(grid, grid.top); i += blockDim.x) roots += is_inside(grid, grid.top, i);
    inside = block_sum(inside, partial);
    roots = block_sum(roots, partial);
    Stretch own = own_stretch(inside);
    int grown = 0, few = 0, fitting = 0;
    for (int i = own.first; i < own.end; i++) {
        grown += p.grown[i];
        few += p.needed[i] < p.m0;
    }
    int tokens = roots + sum_before(grown, partial);
    for (int i = own.first; i < own.end; i++) {
        tokens += p.grown[i];
        fitting += p.needed[i] < p.m0 && tokens <= budget;
    }
    Sizes sizes = {block_sum(fitting, partial), block_sum(few, partial)};
    return sizes;
}

// Of the sizes from the least to the most, at equal ratios of one more, the one of this tree.
__device__ inline int size_of_tree(const Sizes& sizes, int tree)
{
    double low = sizes.enough + 1.0, high = sizes.most + 1.0;
    if (tree == 1 << HALVINGS) return sizes.most;
    for (int bit = HALVINGS - 1; bit >= 0; bit--) {
        double middle = sqrt(low * high);
        if (tree >> bit & 1) low = middle;
        else high = middle;
    }
    return (int)low - 1;
}

// Whether a node is a leaf of the tree in which `size` nodes are split.
__device__ inline int is_leaf(const Foveated& p, int level, int node, int size)
{
    const Grid& grid = p.grid;
    if (!is_inside(grid, level, node)) return 0;
    if (level && p.rank[split_at(grid, level, node)] < size) return 0;
    return level == grid.top || p.rank[split_at(grid, level + 1, parent_of(grid, level, node))] < size;
}

// A block for each tree; where nothing is compared, the first one alone.
extern "C" __global__ void __launch_bounds__(MOST_THREADS) grow_trees(const __grid_constant__ Foveated p)
{
    __shared__ int partial[WARP];
    __shared__ double sums[WARP];
    int compares = compares_trees(p), asked = p.conclusion.frame->budget;
    if (p.conclusion.frame->unchanged || (blockIdx.x && !compares)) return;
    const Grid& grid = p.grid;
    int budget = asked ? asked / (grid.merge * grid.merge) : p.budget;
    Sizes sizes = sizes_of_trees(p, budget, partial);
    int size = compares ? size_of_tree(sizes, blockIdx.x) : sizes.enough;
    Stretch own = own_stretch(nodes_from(grid, 0));
    int start = 0, level = 0;
    u8* alive = p.alive + (size_t)blockIdx.x * p.nodes;
    for (int i = own.first; i < own.end; i++) {
        for (; i - start >= nodes_of(grid, level); level++) start += nodes_of(grid, level);
        alive[i] = is_leaf(p, level, i - start, size) && (!compares || p.keys[i] > key_of(p.enough));
    }
    if (!compares) return;
    keep_highest(p.keys, alive, own, budget, partial);
    double gained = 0.0;
    for (int i = own.first; i < own.end; i++)
        if (alive[i]) gained += value_of(p.keys[i]);
    gained = block_sum(gained, sums);
    if (threadIdx.x == 0) p.gained[blockIdx.x] = gained;
}

// The first tree with the greatest gain.
__device__ inline int best_tree(const Foveated& p)
{
    int best = 0;
    for (int tree = 1; compares_trees(p) && tree <= 1 << HALVINGS; tree++)
        if (p.gained[tree] > p.gained[best]) best = tree;
    return best;
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS) foveated(const __grid_constant__ Foveated p)
{
    __shared__ int partial[WARP];
    if (p.conclusion.frame->unchanged) return;
    const Grid& grid = p.grid;
    const u8* alive = p.alive + (size_t)best_tree(p) * p.nodes;
    int written = 0, start = nodes_from(grid, 0);
    for (int level = grid.top; level >= 0; level--) {
        int columns = columns_of(grid, level), count = nodes_of(grid, level), found = 0;
        Stretch own = own_stretch(count);
        start -= count;
        for (int i = own.first; i < own.end; i++)
            found += alive[start + node_in(grid, level, i / columns, i % columns)];
        int at = written + sum_before(found, partial);
        for (int i = own.first; i < own.end; i++)
            if (alive[start + node_in(grid, level, i / columns, i % columns)])
                write_unit(grid, p.tokens, at++, level, i / columns, i % columns);
        written += block_sum(found, partial);
    }
    if (threadIdx.x == 0) conclude(p.conclusion, written * grid.merge * grid.merge, 0, 0, 0);
}
