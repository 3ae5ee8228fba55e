// Carries every cell's maps from the previous frame to this one along the flow, scores the cell, and weights its errors.
//
// One warp per unit, one block of 16 warps per quadtree node of level 2: so the weighted errors of a node's cells are
// summed where they are made, in the order of pruning.c. Where the frame rests, only the cells' ages move on.
// Results equal pipeline/cascade/scores.py, cache.py and ledger.py bit for bit, given the same flow and channels, except
// that a score warped between cells may differ in its last bits.
#include "flow.cuh"

enum Map { RELEVANCE, SALIENCY_BEFORE, FIXATION, ATTENTION, CLUSTER_DISTANCE, CLUSTER_ID, CLUSTER_SIZE, SINCE, MAPS };
const int LINEAR_MAPS = CLUSTER_ID;  // the maps before this one are averaged; the others hold identities and counts
enum Channel { EDGES, EDGES_INVERTED, HIGHPASS, LOWPASS, MOTION, SALIENCY, EDGE_DISTANCE };  // as state.py's GRID_CHANNELS

const float UNSEEN = 64.0f * 64.0f * 256.0f;
const float FADING = 0.9f;  // of fixation, attention and gaze, per frame

struct Carry {
    const FrameState* frame;
    Choice* choice;
    const u8* changed;          // [tiles]
    const float* fine;          // luma of the flow level, now
    const float* coarse;        // luma of level 4, now
    float* fine_before[2];      // the same of the frame before, by turn
    float* coarse_before[2];
    const float* given;         // dx, dy and confidence [3][cells] instead of a search; null: search
    float* flow;                // [3][cells]: what was found
    float* maps;                // [MAPS][turns][cells]; SINCE holds whole numbers
    const float* channels;      // [7][cells]
    const float* eccentricity;  // [cells]
    const float* bump;          // [cells]: the gaze fed in, else zeros
    const float* paid;          // [cells]: the attention fed in, else zeros
    float* gaze;                // [cells]
    float* attention_before;    // [cells]
    int* age;                   // [cells]: frames since the cell's pixels changed
    u8* pending;                // [cells]: no token was emitted there since
    float* scores;              // [3][cells]: final score, information, perspective
    const float* errors;        // [4][cells], of levels 1..4
    const float* reader_error;  // [cells]: of what the reader holds; null: it holds nothing
    float* kept;                // [units]: weighted error of no token
    float* leaf1;               // [nodes of level 1]: weighted error of one token
    float* leaf2;               // [nodes of level 2]
    float* leaf3;               // [nodes of level 2]: their share of a level-3 leaf's error
    float* leaf4;               // the same for level 4
    Grid grid;
    int side;                   // samples of the flow level along a cell
    int caches;                 // 0: every frame is scored alone
    int scored;                 // 0: every cell has weight 1
    int max_age;
    float confidence, blend, floor;
};

struct Carried {
    float map;         // lane j holds map j
    float confidence;  // of the flow
    int valid;         // the maps may be reused
};

// The flow of the cell, by the search or as given; unchanged cells rest.
__device__ inline CellFlow cell_flow(const Carry& p, int from, int row, int column, int changed, int lane)
{
    const Grid& grid = p.grid;
    int cells = grid.rows * grid.columns, cell = row * grid.columns + column;
    CellFlow flow = {0.0f, 0.0f, 1.0f};
    if (p.given) {
        flow.dx = p.given[cell];
        flow.dy = p.given[cells + cell];
        flow.confidence = p.given[2 * cells + cell];
    } else if (changed) {
        Picture coarse_now = {p.coarse, grid.rows, grid.columns};
        Picture coarse_before = {p.coarse_before[from], grid.rows, grid.columns};
        Picture fine_now = {p.fine, grid.rows * p.side, grid.columns * p.side};
        Picture fine_before = {p.fine_before[from], grid.rows * p.side, grid.columns * p.side};
        flow = search(coarse_now, coarse_before, fine_now, fine_before, p.side, row, column, lane);
    }
    if (lane == 0) {
        p.flow[cell] = flow.dx;
        p.flow[cells + cell] = flow.dy;
        p.flow[2 * cells + cell] = flow.confidence;
    }
    return flow;
}

__device__ inline Carried carry_cell(const Carry& p, const FrameState& frame, int from, int row, int column, int changed,
                                     int lane)
{
    const Grid& grid = p.grid;
    int cells = grid.rows * grid.columns, map = min(lane, MAPS - 1);
    const float* before = p.maps + (2 * map + from) * cells;
    Carried carried = {map == SINCE ? __int_as_float(p.max_age) : 0.0f, 0.0f, 0};
    if (frame.keyframe || !p.caches) return carried;
    int inside = 1;
    float confidence = 1.0f;
    if (frame.changed_count) {
        CellFlow flow = cell_flow(p, from, row, column, changed, lane);
        float x = (float)column + flow.dx, y = (float)row + flow.dy;
        Picture whole = {before, grid.rows, grid.columns};
        carried.map = map < LINEAR_MAPS ? between(whole, y, x) : sample(whole, __float2int_rn(y), __float2int_rn(x));
        inside = x > -0.5f && y > -0.5f && x < (float)grid.columns - 0.5f && y < (float)grid.rows - 0.5f;
        confidence = carried.confidence = flow.confidence;
    } else {
        carried.map = before[row * grid.columns + column];
    }
    int since = __float_as_int(__shfl_sync(EVERYONE, carried.map, SINCE));
    carried.valid = inside && confidence >= p.confidence && since < p.max_age;
    return carried;
}

// What this cell's maps are for the next frame: lane j writes map j.
__device__ inline void remember(const Carry& p, int to, int cell, const Carried& carried, float score, int lane)
{
    int cells = p.grid.rows * p.grid.columns;
    float map = carried.map;
    if (lane == RELEVANCE) map = score;
    if (lane == SALIENCY_BEFORE) map = p.channels[SALIENCY * cells + cell];
    if (lane == FIXATION) map = FADING * map;
    if (lane == ATTENTION) {
        p.attention_before[cell] = map;
        map = fminf(FADING * map + p.paid[cell], 1.0f);
    }
    if (lane == SINCE) map = __int_as_float(carried.valid ? __float_as_int(map) + 1 : 0);
    if (lane < MAPS) p.maps[(2 * lane + to) * cells + cell] = map;
    if (lane == MAPS) p.gaze[cell] = fmaxf(FADING * p.gaze[cell], p.bump[cell]);
}

__device__ inline void keep_pictures(const Carry& p, int to, int row, int column, int lane)
{
    int columns = p.grid.columns, width = columns * p.side;
    if (lane == 0) p.coarse_before[to][row * columns + column] = p.coarse[row * columns + column];
    if (lane < p.side * p.side) {
        int at = (row * p.side + lane / p.side) * width + column * p.side + lane % p.side;
        p.fine_before[to][at] = p.fine[at];
    }
}

__device__ inline void age_cell(const Carry& p, const FrameState& frame, int cell, int changed, int lane)
{
    if (lane) return;
    if (frame.forgets || changed) p.pending[cell] = 1;
    p.age[cell] = frame.forgets || changed ? 0 : p.age[cell] + 1;
}

// Works on one cell and returns its weight.
__device__ inline float weigh(const Carry& p, const FrameState& frame, int row, int column, int lane, int* recomputed)
{
    const Grid& grid = p.grid;
    int cells = grid.rows * grid.columns, cell = row * grid.columns + column;
    int changed = p.changed[(row / 2) * (grid.columns / 2) + column / 2];
    int inside = row < grid.inside_rows && column < grid.inside_columns;
    int from = p.choice->turn, to = 1 - from;
    age_cell(p, frame, cell, changed, lane);
    Carried carried = carry_cell(p, frame, from, row, column, changed, lane);
    keep_pictures(p, to, row, column, lane);
    const float* channel = p.channels + cell;
    float distance = channel[EDGE_DISTANCE * cells];
    float wanted = distance < 1.0f || changed ? 1.0f : 0.0f;
    float detail = fmaxf(channel[EDGES * cells], channel[EDGES_INVERTED * cells]);
    float information = (0.4f * detail + 0.3f * channel[HIGHPASS * cells]) + 0.3f * (1.0f - distance);
    float pull = 0.6f * channel[SALIENCY * cells] + 0.4f * channel[MOTION * cells];
    float perspective = pull * (1.0f - 0.5f * p.eccentricity[cell]);
    information *= wanted;
    perspective *= wanted;
    float score = 0.5f * (information + perspective);
    float trust = carried.valid && changed ? carried.confidence : 0.0f;
    score += trust * p.blend * (__shfl_sync(EVERYONE, carried.map, RELEVANCE) - score);
    remember(p, to, cell, carried, score, lane);
    if (lane == 0) {
        p.scores[cell] = score;
        p.scores[cells + cell] = information;
        p.scores[2 * cells + cell] = perspective;
        *recomputed += inside && !carried.valid;
    }
    if (!inside) return 0.0f;
    return p.scored ? p.floor + score : 1.0f;
}

// Product of weight and error, for the error of lane 0 (kept) or 1..4 (levels), summed over the unit's cells.
__device__ inline float weighted_error(const Carry& p, const FrameState& frame, Place unit, int lane, int* recomputed)
{
    const Grid& grid = p.grid;
    int cells = grid.rows * grid.columns;
    float total = 0.0f;
    for (int x = 0; x < grid.merge; x++) {
        float sum = 0.0f;
        for (int y = 0; y < grid.merge; y++) {
            int row = unit.row * grid.merge + y, column = unit.column * grid.merge + x;
            if (row >= grid.rows || column >= grid.columns) continue;
            int cell = row * grid.columns + column;
            float weight = weigh(p, frame, row, column, lane, recomputed);
            float error = UNSEEN;
            if (lane > 0) error = p.errors[(min(lane, TOP) - 1) * cells + cell];
            else if (p.reader_error) error = p.reader_error[cell];
            sum += error * weight;
        }
        total += sum;
    }
    return total;
}

// By the first warp: the sums over the node's 4 x 4 units. Lanes 4i .. 4i + 3 have the four children of level i + 1.
__device__ inline void write_costs(const Carry& p, const float (*products)[16], int lane)
{
    int node = blockIdx.x, level = min(lane / 4 + 1, TOP), child = lane % 4;
    float quarter = over_four(products[level] + 4 * child);
    float parts[4];
    for (int i = 0; i < 4; i++) parts[i] = __shfl_sync(EVERYONE, quarter, (lane & ~3) + i);
    float sum = over_four(parts);
    if (lane < 4) p.leaf1[4 * node + child] = quarter;
    if (lane == 4) p.leaf2[node] = sum;
    if (lane == 8) p.leaf3[node] = sum;
    if (lane == 12) p.leaf4[node] = sum;
    if (lane >= 16) p.kept[16 * node + lane - 16] = products[0][lane - 16];
}

__device__ inline void rest(const Carry& p, Place unit, int lane)
{
    const Grid& grid = p.grid;
    if (lane >= grid.merge * grid.merge) return;
    int row = unit.row * grid.merge + lane / grid.merge, column = unit.column * grid.merge + lane % grid.merge;
    if (row < grid.rows && column < grid.columns) p.age[row * grid.columns + column] += 1;
}

extern "C" __global__ void __launch_bounds__(512) carry(const __grid_constant__ Carry p)
{
    __shared__ float products[TOP + 1][16];
    __shared__ int recomputed;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    Place unit = place_of(0, 16 * blockIdx.x + warp, p.grid.root_columns);
    FrameState frame = *p.frame;
    if (frame.rests) {
        rest(p, unit, lane);
        return;
    }
    if (threadIdx.x == 0) recomputed = 0;
    __syncthreads();
    int mine = 0;
    float product = weighted_error(p, frame, unit, lane, &mine);
    if (lane <= TOP) products[lane][warp] = product;
    if (mine) atomicAdd(&recomputed, mine);
    __syncthreads();
    if (warp == 0) write_costs(p, products, lane);
    if (threadIdx.x == 0 && recomputed) atomicAdd(&p.choice->recomputed, recomputed);
}
