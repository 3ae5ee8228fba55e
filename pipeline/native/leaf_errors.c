/* Leaf errors: squared error of each cell when shown by a token of a level, enlarged bilinearly.

   e_l = e_(l-1) + 4^(l-1) * sum((m_(l-1) - U2 m_l)^2) over the cell's samples of level l - 1: m_l is a level, U2 the
   bilinear enlargement by 2. The recursion leaves out how the errors of successive enlargements correlate.

   Samples are held in 64ths of a grey value, differences in 16ths, so that sums of their squares over a cell are whole
   numbers below 2^32, in any order. Enlarging reads neighbouring samples, so the errors of a cell also depend on the
   cells around it. */

#include "native.h"

#include <string.h>

enum { GAP = 4 }; /* unchanged cells between changed ones that are cheaper to process than to skip */

/* near[columns] = whether each cell of a row lies in a tile of ``written`` or touches one. Returns whether any does. */
static int find_near(const uint8_t *written, int32_t row, int32_t rows, int32_t columns, uint8_t *near)
{
    int32_t tiles = columns / CELLS_PER_TILE, first = greatest(row - 1, 0) / CELLS_PER_TILE;
    int32_t last = least(row + 1, rows - 1) / CELLS_PER_TILE;
    memset(near, 0, (size_t)columns);
    int found = 0;
    for (int32_t tile = 0; tile < tiles; tile++) {
        if (!(written[first * tiles + tile] | written[last * tiles + tile])) continue;
        int32_t left = greatest(tile * CELLS_PER_TILE - 1, 0), right = least((tile + 1) * CELLS_PER_TILE, columns - 1);
        memset(near + left, 1, (size_t)(right - left + 1));
        found = 1;
    }
    return found;
}

static FindErrors *for_this_processor(void)
{
#if defined(HAS_AVX2)
    if (__builtin_cpu_supports("avx2")) return find_errors_avx2;
#endif
    return find_errors;
}

/* How many of the remaining cells to process next; a few too many are cheaper than many small batches. */
static int32_t together(int32_t left, int32_t columns)
{
    int32_t cells = 2;
    while (cells < MOST_CELLS && cells < left && 2 * cells <= columns) cells *= 2;
    return cells;
}

void leaf_errors(const Pyramid planes[3], const LeafErrors *e, int32_t row)
{
    FindErrors *find = for_this_processor();
    if (!find_near(e->written, row, e->rows, e->columns, e->near)) return;
    for (int32_t column = 0; column < e->columns;) {
        if (!e->near[column]) {
            column++;
            continue;
        }
        int32_t end = column + 1;
        for (int32_t x = end; x < least(end + GAP, e->columns); x++)
            if (e->near[x]) end = x + 1;
        while (column < end) {
            int32_t cells = together(end - column, e->columns);
            column = least(column, e->columns - cells);
            find(planes, e, row, column, cells);
            column += cells;
        }
    }
}
