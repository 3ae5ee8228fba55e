// Makes the levels above TOP_LEVEL from the samples of TOP_LEVEL, one per cell. Equals pipeline/cpu/upper.py bit for
// bit.
//
// One block per plane, one level after the other. Launched only where the budget asks for tokens that coarse.
#include "cascade.cuh"

const int THREADS = 1024;

struct Upper {
    const FrameState* frame;
    const float* cells[3];  // Y, Cb, Cr of level TOP_LEVEL
    float* samples[3];      // of the levels TOP_LEVEL + 1 .. top
    Grid grid;
};

// The mean of 2x2 samples; the last row and column are repeated where their number is odd.
__device__ inline float mean_of_four(const float* samples, int rows, int columns, int row, int column)
{
    const float* upper = samples + 2 * row * columns;
    const float* lower = samples + min(2 * row + 1, rows - 1) * columns;
    int left = 2 * column, right = min(left + 1, columns - 1);
    return (((upper[left] + upper[right]) + lower[left]) + lower[right]) * 0.25f;
}

extern "C" __global__ void __launch_bounds__(THREADS) upper(const __grid_constant__ Upper p)
{
    const Grid& grid = p.grid;
    if (p.frame->unchanged) return;
    const float* from = p.cells[blockIdx.x];
    float* to = p.samples[blockIdx.x];
    for (int level = TOP_LEVEL + 1; level <= grid.top; level++) {
        int rows = upper_length(grid.rows, level), columns = upper_length(grid.columns, level);
        int rows_below = upper_length(grid.rows, level - 1), columns_below = upper_length(grid.columns, level - 1);
        for (int i = threadIdx.x; i < rows * columns; i += blockDim.x)
            to[i] = mean_of_four(from, rows_below, columns_below, i / columns, i % columns);
        __syncthreads();
        from = to;
        to += rows * columns;
    }
}
