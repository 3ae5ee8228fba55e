// Superpixels of the Grid on keyframes: SLIC on Lab + position with a fixed number of iterations, as
// pipeline/cascade/clusters.py. Each cell gets the nearest of all centres; from the second iteration on, a warp only looks
// at those whose place alone does not make them farther than the centres that its cells had before.
//
// One block. Sums over a cluster are whole numbers, so they do not depend on the order of threads.
#include "cascade.cuh"

const int CLUSTERS = 50;
const int FEATURES = 5;        // L, a, b, row and column
const int ITERATIONS = 5;
const int THREADS = 1024;

struct Clusters {
    const FrameState* frame;
    const Choice* choice;
    const float* colours[3];  // Y, Cb, Cr of each cell, 8-bit units
    float* features;          // [FEATURES][cells]
    float* distance[2];       // [cells], by turn: to the centroid, / half the diagonal
    float* label[2];          // whole numbers
    float* size[2];           // cells in the cluster / cells in the Grid
    const int* seeds;         // [count]: cells on a lattice
    int count, rows, columns;
    float fixed;              // features are summed in this fraction: the sum over all cells fits an int
    float unit;               // of place: how much one cell counts, in units of Lab
    float half_diagonal;      // cells
    float matrix[9], shift[3];
};

__device__ inline float linear_light(float value)
{
    return value <= 0.04045f ? value / 12.92f : powf((value + 0.055f) / 1.055f, 2.4f);
}

__device__ inline float lab_curve(float value)
{
    return value > 0.008856f ? cbrtf(value) : 7.787f * value + 16.0f / 116.0f;
}

// CIE Lab (D65) of R'G'B' in 8-bit units; sRGB primaries.
__device__ inline void lab_of(const float* rgb, float* lab)
{
    float r = linear_light(rgb[0] / 255.0f), g = linear_light(rgb[1] / 255.0f), b = linear_light(rgb[2] / 255.0f);
    float x = (0.412453f * r + 0.357580f * g + 0.180423f * b) / 0.950456f;
    float y = 0.212671f * r + 0.715160f * g + 0.072169f * b;
    float z = (0.019334f * r + 0.119193f * g + 0.950227f * b) / 1.088754f;
    lab[0] = y > 0.008856f ? 116.0f * cbrtf(y) - 16.0f : 903.3f * y;
    lab[1] = 500.0f * (lab_curve(x) - lab_curve(y));
    lab[2] = 200.0f * (lab_curve(y) - lab_curve(z));
}

__device__ inline void write_features(const Clusters& p, int cell)
{
    int cells = p.rows * p.columns;
    float value[3], rgb[3], lab[3];
    for (int i = 0; i < 3; i++) value[i] = p.colours[i][cell];
    for (int c = 0; c < 3; c++) {
        const float* weights = p.matrix + 3 * c;
        float sum = ((weights[0] * value[0] + weights[1] * value[1]) + weights[2] * value[2]) + p.shift[c];
        rgb[c] = fminf(fmaxf(rintf(sum), 0.0f), 255.0f);
    }
    lab_of(rgb, lab);
    for (int i = 0; i < 3; i++) p.features[i * cells + cell] = lab[i];
    p.features[3 * cells + cell] = (float)(cell / p.columns) * p.unit;
    p.features[4 * cells + cell] = (float)(cell % p.columns) * p.unit;
}

struct Centre {
    float4 first;   // L, a, b, row
    float2 second;  // column, and the square of all five
};

struct Centres {
    Centre value[CLUSTERS];
    int sums[CLUSTERS][FEATURES + 1];  // and cells
};

__device__ inline void set_centre(Centre& centre, const float* feature)
{
    float square = 0.0f;
    for (int i = 0; i < FEATURES; i++) square += feature[i] * feature[i];
    centre.first.x = feature[0], centre.first.y = feature[1], centre.first.z = feature[2], centre.first.w = feature[3];
    centre.second.x = feature[4], centre.second.y = square;
}

// |f - c|^2 less |f|^2, which is the same for all centres.
__device__ inline float compared(const Centre& centre, const float* feature)
{
    float square = fmaf(-2.0f * feature[0], centre.first.x, centre.second.y);
    square = fmaf(-2.0f * feature[1], centre.first.y, square);
    square = fmaf(-2.0f * feature[2], centre.first.z, square);
    square = fmaf(-2.0f * feature[3], centre.first.w, square);
    return fmaf(-2.0f * feature[4], centre.second.x, square);
}

// The least and the greatest of a warp's values, none of which is negative: as whole numbers, floats keep their order.
__device__ inline float least_of_warp(float value)
{
    return __uint_as_float(__reduce_min_sync(EVERYONE, __float_as_uint(value)));
}

__device__ inline float greatest_of_warp(float value)
{
    return __uint_as_float(__reduce_max_sync(EVERYONE, __float_as_uint(value)));
}

// Where a warp's cells lie, and the square of how far their last centres are at most.
struct Reach {
    float top, bottom, left, right, square;
};

__device__ inline Reach reach_of(const Centre& last, const float* feature)
{
    float away[FEATURES] = {feature[0] - last.first.x, feature[1] - last.first.y, feature[2] - last.first.z,
                            feature[3] - last.first.w, feature[4] - last.second.x};
    float square = 0.0f;
    for (int i = 0; i < FEATURES; i++) square += away[i] * away[i];
    return {least_of_warp(feature[3]), greatest_of_warp(feature[3]), least_of_warp(feature[4]),
            greatest_of_warp(feature[4]), greatest_of_warp(square)};
}

// Whether the centre may be the nearest of one of the warp's cells. The margin is more than rounding can make of it.
__device__ inline bool within(const Reach& reach, const Centre& centre)
{
    float down = fmaxf(fmaxf(reach.top - centre.first.w, centre.first.w - reach.bottom), 0.0f);
    float across = fmaxf(fmaxf(reach.left - centre.second.x, centre.second.x - reach.right), 0.0f);
    return down * down + across * across <= reach.square + (1.0f + 4e-6f * centre.second.y);
}

// One bit for each centre to look at.
__device__ inline unsigned long long candidates(const Centres& centres, int count, const Reach& reach, int lane)
{
    unsigned low = __ballot_sync(EVERYONE, lane < count && within(reach, centres.value[lane]));
    int second = lane + WARP;
    unsigned high = __ballot_sync(EVERYONE, second < count && within(reach, centres.value[min(second, CLUSTERS - 1)]));
    return (unsigned long long)high << WARP | low;
}

// The nearest centre of a cell; of equally near ones, the first.
__device__ inline int nearest(const Centres& centres, unsigned long long among, const float* feature)
{
    float least = 0.0f;
    int best = -1;
    for (; among; among &= among - 1) {
        int c = __ffsll(among) - 1;
        float square = compared(centres.value[c], feature);
        if (best < 0 || square < least) {
            least = square;
            best = c;
        }
    }
    return best;
}

// Adds a warp's cells to the sums of their clusters, of which there are few: one after another. Lanes without a cell have
// zeros.
__device__ inline void add_cells(Centres& centres, int best, const int* values, int lane)
{
    for (unsigned left = EVERYONE; left;) {
        int cluster = __shfl_sync(EVERYONE, best, __ffs(left) - 1), total = 0;
        for (int i = 0; i <= FEATURES; i++) {
            int sum = __reduce_add_sync(EVERYONE, best == cluster ? values[i] : 0);
            if (lane == i) total = sum;
        }
        if (lane <= FEATURES) atomicAdd(&centres.sums[cluster][lane], total);
        left &= ~__ballot_sync(EVERYONE, best == cluster);
    }
}

// Labels all cells, and moves the centres to the means of their cells; a centre without any stays.
__device__ inline void iterate(const Clusters& p, Centres& centres, float* label, bool labelled)
{
    int cells = p.rows * p.columns, lane = threadIdx.x % WARP;
    for (int i = threadIdx.x; i < CLUSTERS * (FEATURES + 1); i += THREADS) (&centres.sums[0][0])[i] = 0;
    __syncthreads();
    for (int first = threadIdx.x - lane; first < cells; first += THREADS) {
        int cell = min(first + lane, cells - 1), exists = first + lane < cells;
        float feature[FEATURES];
        for (int i = 0; i < FEATURES; i++) feature[i] = p.features[i * cells + cell];
        unsigned long long among = (1ull << p.count) - 1;
        if (labelled) among = candidates(centres, p.count, reach_of(centres.value[(int)label[cell]], feature), lane);
        int best = nearest(centres, among, feature);
        if (exists) label[cell] = (float)best;
        int values[FEATURES + 1];
        for (int i = 0; i < FEATURES; i++) values[i] = exists ? __float2int_rn(feature[i] * p.fixed) : 0;
        values[FEATURES] = exists;
        add_cells(centres, best, values, lane);
    }
    __syncthreads();
    if (int size = threadIdx.x < p.count ? centres.sums[threadIdx.x][FEATURES] : 0; size) {
        float mean[FEATURES];
        for (int i = 0; i < FEATURES; i++)
            mean[i] = (float)((double)centres.sums[threadIdx.x][i] / p.fixed / size);
        set_centre(centres.value[threadIdx.x], mean);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) clusters(const __grid_constant__ Clusters p)
{
    __shared__ Centres centres;
    if (!p.frame->keyframe) return;
    int cells = p.rows * p.columns, turn = 1 - p.choice->turn;
    float* label = p.label[turn];
    for (int cell = threadIdx.x; cell < cells; cell += THREADS) write_features(p, cell);
    __syncthreads();
    if (threadIdx.x < p.count) {
        float feature[FEATURES];
        for (int i = 0; i < FEATURES; i++) feature[i] = p.features[i * cells + p.seeds[threadIdx.x]];
        set_centre(centres.value[threadIdx.x], feature);
    }
    __syncthreads();
    for (int i = 0; i <= ITERATIONS; i++) iterate(p, centres, label, i > 0);
    for (int cell = threadIdx.x; cell < cells; cell += THREADS) {
        int best = (int)label[cell];
        float down = (p.features[3 * cells + cell] - centres.value[best].first.w) / p.unit;
        float across = (p.features[4 * cells + cell] - centres.value[best].second.x) / p.unit;
        p.distance[turn][cell] = fminf(sqrtf(down * down + across * across) / p.half_diagonal, 1.0f);
        p.size[turn][cell] = (float)centres.sums[best][FEATURES] / (float)cells;
    }
}
