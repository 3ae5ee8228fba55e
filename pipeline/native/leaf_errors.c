/* The squared error that a reader is left with in each cell shown as one token of a level, enlarged bilinearly.

   e_l = e_(l-1) + 4^(l-1) * sum((m_(l-1) - U2 m_l)^2) over the cell's samples of level l - 1: m_l is a level, U2 the
   bilinear enlargement by 2. The recursion leaves out how the errors of successive enlargements correlate.

   Samples are held in 64ths of a grey value, differences in 16ths, so that sums of their squares over a cell are whole
   numbers below 2^32, whatever the order. A sample takes in its neighbours: the errors of a cell also depend on the cells
   around it. */

#include "native.h"

#include <string.h>

enum {
    UNIT = 64,      /* of a sample */
    COARSER = 4,    /* how many times larger the unit of a difference is */
    CHUNK = 64,     /* cells of a row that are worked on together */
    GAP = 4,        /* cells that need no work, but are cheaper to work on than to leave out */
    VECTOR = 16,    /* samples in a vector instruction: rows are worked on in whole ones */
    MOST = CHUNK * CELL / 2 + VECTOR /* samples of a row */
};

/* Rows of the coarse level, with a neighbour at either end, and of the fine one, its even and odd samples apart. */
typedef struct {
    uint16_t narrow[3][MOST + VECTOR];
    uint16_t high[2][MOST + VECTOR];  /* a row of the coarse level, twice as high */
    uint16_t fine[2][2][MOST];
    uint32_t squares[MOST];           /* by column of the coarse level */
} Rows;

INLINE uint16_t in_units(float mean) { return (uint16_t)(int32_t)(mean * (float)UNIT + 0.5f); }

/* ``count`` pairs of samples of the level ``step`` above the plane's base, from ``left`` on. */
INLINE void load_pairs(const Pyramid *plane, int32_t step, int32_t row, int32_t left, int32_t count, uint16_t *restrict even,
                       uint16_t *restrict odd)
{
    int64_t at = (int64_t)row * (plane->stride >> step) + left;
    if (step) {
        const float *from = plane->coarse[step - 1] + at;
        for (int32_t x = 0; x < count; x++) {
            even[x] = in_units(from[2 * x]);
            odd[x] = in_units(from[2 * x + 1]);
        }
    } else {
        const uint8_t *from = plane->pixels + at;
        for (int32_t x = 0; x < count; x++) {
            even[x] = (uint16_t)(from[2 * x] * UNIT);
            odd[x] = (uint16_t)(from[2 * x + 1] * UNIT);
        }
    }
}

/* ``count`` samples of a level above the base, with a neighbour at either end; the picture's edge is repeated. */
INLINE void load_rimmed(const Pyramid *plane, int32_t step, int32_t row, int32_t left, int32_t count, uint16_t *restrict to)
{
    int32_t rows = plane->rows >> step, columns = (int32_t)(plane->stride >> step);
    const float *from = plane->coarse[step - 1] + (int64_t)least(greatest(row, 0), rows - 1) * columns + left;
    for (int32_t x = 0; x < count; x++) to[x + 1] = in_units(from[x]);
    to[0] = left ? in_units(from[-1]) : to[1];
    to[count + 1] = left + count < columns ? in_units(from[count]) : to[count];
}

/* A quarter of ``far`` and three quarters of ``near``, rounded. Sums stay below 2^16. */
INLINE uint16_t between(uint16_t near, uint16_t far) { return (uint16_t)((uint16_t)(3 * near + far + 2) >> 2); }

INLINE void add_rows(const uint16_t *restrict near, const uint16_t *restrict far, int32_t n, uint16_t *restrict out)
{
    for (int32_t first = 0; first < n; first += VECTOR)
        for (int32_t x = first; x < first + VECTOR; x++) out[x] = between(near[x], far[x]);
}

INLINE uint32_t square(uint16_t fine, uint16_t shown)
{
    int16_t apart = (int16_t)((int16_t)(fine - shown + COARSER / 2) >> 2);
    return (uint32_t)(apart * apart);
}

/* Adds, for each of ``n`` coarse samples, the squares of what one row of the two fine ones under it differs by. ``high`` has
   a neighbour at either end. */
INLINE void add_squares(const uint16_t *restrict even, const uint16_t *restrict odd, const uint16_t *restrict high, int32_t n,
                        uint32_t *restrict squares)
{
    for (int32_t first = 0; first < n; first += VECTOR)
        for (int32_t x = first; x < first + VECTOR; x++) {
            uint16_t left = between(high[x + 1], high[x]), right = between(high[x + 1], high[x + 2]);
            squares[x] += square(even[x], left) + square(odd[x], right);
        }
}

/* One cell row of one plane: ``sums`` [cells] of squared differences between the level ``step - 1`` above the base and
   the next one, enlarged. ``side`` are the samples of the coarser one along a cell. */
INLINE void compare_levels(const Pyramid *plane, int32_t step, int32_t side, int32_t row, int32_t column, int32_t cells,
                           Rows *r, uint32_t *sums)
{
    int32_t width = cells * side, top = row * side, left = column * side;
    memset(r->squares, 0, sizeof(uint32_t) * (size_t)width);
    load_rimmed(plane, step, top - 1, left, width, r->narrow[0]);
    load_rimmed(plane, step, top, left, width, r->narrow[1]);
    for (int32_t y = 0; y < side; y++) {
        load_rimmed(plane, step, top + y + 1, left, width, r->narrow[(y + 2) % 3]);
        for (int32_t k = 0; k < 2; k++) {
            add_rows(r->narrow[(y + 1) % 3], r->narrow[(y + 2 * k) % 3], width + 2, r->high[k]);
            load_pairs(plane, step - 1, 2 * (top + y) + k, 2 * left, width, r->fine[k][0], r->fine[k][1]);
            add_squares(r->fine[k][0], r->fine[k][1], r->high[k], width, r->squares);
        }
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        sums[cell] = 0;
        for (int32_t x = 0; x < side; x++) sums[cell] += r->squares[cell * side + x];
    }
}

/* ``cells`` cells of a row, at most CHUNK, from ``column`` on. */
FOR_EACH_PROCESSOR
static void find_errors(const Pyramid planes[3], const double weights[3], int32_t row, int32_t column, int32_t cells,
                        int64_t at, float *const errors[TOP_LEVEL], Rows *r)
{
    double total[CHUNK] = {0};
    uint32_t sums[CHUNK];
    for (int32_t level = 1; level <= TOP_LEVEL; level++) {
        for (int32_t plane = 0; plane < 3; plane++) {
            int32_t step = level - planes[plane].base;
            double share = weights[plane] * (double)(1 << (2 * (step - 1))) / (UNIT / COARSER * UNIT / COARSER);
            if (step < 1) continue;
            if (level == 1) compare_levels(&planes[plane], step, CELL / 2, row, column, cells, r, sums);
            else if (level == 2) compare_levels(&planes[plane], step, CELL / 4, row, column, cells, r, sums);
            else if (level == 3) compare_levels(&planes[plane], step, CELL / 8, row, column, cells, r, sums);
            else compare_levels(&planes[plane], step, CELL / 16, row, column, cells, r, sums);
            for (int32_t cell = 0; cell < cells; cell++) total[cell] += share * (double)sums[cell];
        }
        for (int32_t cell = 0; cell < cells; cell++) errors[level - 1][at + cell] = (float)total[cell];
    }
}

/* near[columns] = which cells of a row lie in a tile of ``written`` or touch one; ``columns`` are of cells. Returns whether
   any does. */
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

void leaf_errors(const Pyramid planes[3], const LeafErrors *e, int32_t row)
{
    Rows r = {0};
    if (!find_near(e->written, row, e->rows, e->columns, e->near)) return;
    for (int32_t column = 0; column < e->columns;) {
        int32_t end = column + e->near[column];
        for (int32_t x = end; end > column && x < least(least(end + GAP, column + CHUNK), e->columns); x++)
            if (e->near[x]) end = x + 1;
        if (end > column)
            find_errors(planes, e->weights, row, column, end - column, (int64_t)row * e->columns + column, e->errors, &r);
        column = greatest(end, column + 1);
    }
}
