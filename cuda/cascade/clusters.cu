// Superpixels of the Grid on keyframes: SLIC on Lab + position with a fixed number of iterations, as
// pipeline/cascade/clusters.py. Each cell looks at all centres.
//
// Blocks share the cells. Sums over a cluster of cells are whole numbers, so they do not depend on the order of
// threads, nor on how many blocks there are.
#include "cascade.cuh"
#include "spec/clusters.h"

const int FEATURES = 5;  // L, a, b, row and column
const int THREADS = 1024;
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200  // those of consumers have no clusters of blocks
const int BLOCKS = 8;  // of a thread block cluster: they run together, and read each other's shared memory
#define TOGETHER __cluster_dims__(BLOCKS, 1, 1)
#define CLUSTERED
#else
const int BLOCKS = 1;
#define TOGETHER
#endif

struct Clusters {
    const FrameState* frame;
    const CascadeState* cascade;
    const float* colours[3];  // Y, Cb, Cr of each cell, 8-bit units
    float* features;          // [FEATURES][cells]
    float* distance[2];       // [cells], by turn: to the centroid, / half the diagonal
    float* label[2];          // whole numbers
    float* size[2];           // cells in the cluster / cells in the Grid
    const int* seeds;         // [count]: cells on a lattice
    int count, rows, columns;
    float fixed;          // features are summed in this fraction: the sum over all cells fits an int
    float unit;           // of place: how much one cell counts, in units of Lab
    float half_diagonal;  // cells
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

__device__ inline void feature_of(const Clusters& p, int cell, float* feature)
{
    float value[3], rgb[3];
    for (int i = 0; i < 3; i++) value[i] = p.colours[i][cell];
    for (int c = 0; c < 3; c++) {
        const float* weights = p.matrix + 3 * c;
        float sum = ((weights[0] * value[0] + weights[1] * value[1]) + weights[2] * value[2]) + p.shift[c];
        rgb[c] = fminf(fmaxf(rintf(sum), 0.0f), 255.0f);
    }
    lab_of(rgb, feature);
    feature[3] = (float)(cell / p.columns) * p.unit;
    feature[4] = (float)(cell % p.columns) * p.unit;
}

struct Centre {
    float4 first;   // L, a, b, row
    float2 second;  // column, and the square of all five
};

struct Sums {
    int features[CLUSTERS][FEATURES];
    int sizes[CLUSTERS];
};

struct Centres {
    Centre value[CLUSTERS];
    Sums own, all;  // of this block's cells, and of all
};

// Wait for all threads of all blocks; what they wrote to shared memory can be read.
__device__ inline void wait_for_all()
{
#ifdef CLUSTERED
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// The word that block `rank` has where this one has `word`, in shared memory.
__device__ inline int word_of(const int* word, int rank)
{
#ifdef CLUSTERED
    unsigned here = (unsigned)__cvta_generic_to_shared(word), there;
    int value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
    return value;
#else
    return *word;
#endif
}

// The sums of all blocks, which go on together.
__device__ inline void add_blocks(Centres& centres)
{
    const int WORDS = sizeof(Sums) / sizeof(int);
    const int* own = (const int*)&centres.own;
    wait_for_all();
    for (int i = threadIdx.x; i < WORDS; i += THREADS) {
        int total = 0;
        for (int rank = 0; rank < BLOCKS; rank++) total += word_of(own + i, rank);
        ((int*)&centres.all)[i] = total;
    }
    wait_for_all();
}

__device__ inline void set_centre(Centre& centre, const float* feature)
{
    float square = 0.0f;
    for (int i = 0; i < FEATURES; i++) square += feature[i] * feature[i];
    centre.first.x = feature[0], centre.first.y = feature[1], centre.first.z = feature[2], centre.first.w = feature[3];
    centre.second.x = feature[4], centre.second.y = square;
}

// |f - c|^2 less |f|^2, which is the same for all centres.
__device__ inline int nearest(const Centres& centres, int count, const float* feature)
{
    float twice[FEATURES], least = 0.0f;
    int best = 0;
    for (int i = 0; i < FEATURES; i++) twice[i] = -2.0f * feature[i];
    for (int c = 0; c < count; c++) {
        Centre centre = centres.value[c];
        float square = fmaf(twice[0], centre.first.x, centre.second.y);
        square = fmaf(twice[1], centre.first.y, square);
        square = fmaf(twice[2], centre.first.z, square);
        square = fmaf(twice[3], centre.first.w, square);
        square = fmaf(twice[4], centre.second.x, square);
        if (c == 0 || square < least) {
            least = square;
            best = c;
        }
    }
    return best;
}

// Adds a value of each lane to the sum of its cluster. Mostly a warp's cells are of one cluster.
__device__ inline void add_to(int* sum, int value, int together, int lane)
{
    if (!together) atomicAdd(sum, value);
    else if (int total = __reduce_add_sync(EVERYONE, value); lane == 0) atomicAdd(sum, total);
}

// Labels all cells, and moves the centres to the means of their cells; a centre without any stays.
__device__ inline void iterate(const Clusters& p, Centres& centres, float* label, int begin, int end)
{
    int cells = p.rows * p.columns, lane = threadIdx.x % WARP;
    for (int i = threadIdx.x; i < (int)(sizeof(Sums) / sizeof(int)); i += THREADS) ((int*)&centres.own)[i] = 0;
    __syncthreads();
    for (int first = begin + threadIdx.x - lane; first < end; first += THREADS) {
        int cell = min(first + lane, end - 1), exists = first + lane < end;
        float feature[FEATURES];
        for (int i = 0; i < FEATURES; i++) feature[i] = p.features[i * cells + cell];
        int best = nearest(centres, p.count, feature);
        int together = __all_sync(EVERYONE, best == __shfl_sync(EVERYONE, best, 0));
        if (exists) label[cell] = (float)best;
        add_to(&centres.own.sizes[best], exists, together, lane);
        for (int i = 0; i < FEATURES; i++)
            add_to(&centres.own.features[best][i], exists ? __float2int_rn(feature[i] * p.fixed) : 0, together, lane);
    }
    add_blocks(centres);
    const Sums& sums = centres.all;
    if (threadIdx.x < p.count && sums.sizes[threadIdx.x]) {
        float mean[FEATURES];
        for (int i = 0; i < FEATURES; i++)
            mean[i] = (float)((double)sums.features[threadIdx.x][i] / p.fixed / sums.sizes[threadIdx.x]);
        set_centre(centres.value[threadIdx.x], mean);
    }
    __syncthreads();
}

extern "C" __global__ void TOGETHER __launch_bounds__(THREADS) clusters(const __grid_constant__ Clusters p)
{
    __shared__ Centres centres;
    if (!p.frame->keyframe) return;
    int cells = p.rows * p.columns, turn = 1 - p.cascade->turn, share = (cells + BLOCKS - 1) / BLOCKS;
    int begin = min((int)blockIdx.x * share, cells), end = min(begin + share, cells);
    float* label = p.label[turn];
    for (int cell = begin + threadIdx.x; cell < end; cell += THREADS) {
        float feature[FEATURES];
        feature_of(p, cell, feature);
        for (int i = 0; i < FEATURES; i++) p.features[i * cells + cell] = feature[i];
    }
    if (threadIdx.x < p.count) {
        float feature[FEATURES];
        feature_of(p, p.seeds[threadIdx.x], feature);
        set_centre(centres.value[threadIdx.x], feature);
    }
    __syncthreads();
    for (int i = 0; i <= ITERATIONS; i++) iterate(p, centres, label, begin, end);
    for (int cell = begin + threadIdx.x; cell < end; cell += THREADS) {
        int best = (int)label[cell];
        float down = (p.features[3 * cells + cell] - centres.value[best].first.w) / p.unit;
        float across = (p.features[4 * cells + cell] - centres.value[best].second.x) / p.unit;
        p.distance[turn][cell] = fminf(sqrtf(down * down + across * across) / p.half_diagonal, 1.0f);
        p.size[turn][cell] = (float)centres.all.sizes[best] / (float)cells;
    }
}
