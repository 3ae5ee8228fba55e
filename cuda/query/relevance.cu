// The relevance of each cell of the Grid to all queries together, and on request to each query.
//
// One thread per cell. Equals combined_relevance and relevance of pipeline/query/terms.py up to the order of additions.
#include "relevance.cuh"

const int THREADS = 128;

struct Relevance {
    Terms terms;
    const float* coefficients;  // [COEFFICIENTS][cells]
    float* combined;            // [cells]
    float* maps;                // [queries][cells]; null: not requested
    int rows, columns;
    float across, down;  // a cell's width and height / the picture's
};

extern "C" __global__ void __launch_bounds__(THREADS) relevance(const __grid_constant__ Relevance p)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x, cells = p.rows * p.columns;
    if (cell >= cells) return;
    float inputs[INPUTS];
#pragma unroll
    for (int i = 0; i < COEFFICIENTS; i++) inputs[i] = p.coefficients[i * cells + cell];
    inputs[COEFFICIENTS] = fminf(((float)(cell % p.columns) + 0.5f) * p.across, 1.0f);
    inputs[COEFFICIENTS + 1] = fminf(((float)(cell / p.columns) + 0.5f) * p.down, 1.0f);
    p.combined[cell] = combined_relevance(p.terms, inputs, [&](int query, float value) {
        if (p.maps) p.maps[query * cells + cell] = value;
    });
}
