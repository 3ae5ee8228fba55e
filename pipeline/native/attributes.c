/* Attributes of cells, for queries in words: the share of each named colour, lightness, and letter strokes.
   One value per cell and map, for the cells of the written tiles; strokes also for the cells beside them. */

#include "native.h"
#include "spec/attributes.h"

enum { COLOUR_SIDE = CELL >> COLOUR_LEVEL, SAMPLES = COLOUR_SIDE * COLOUR_SIDE, STROKE_SIDE = CELL >> STROKE_LEVEL };

typedef struct {
    const float *luma, *cb, *cr; /* of COLOUR_LEVEL, in 8-bit units */
    const float *fine;           /* luma of STROKE_LEVEL */
    const uint8_t *name;         /* [32][64][64]: by Y >> 3, Cb >> 2, Cr >> 2: index of the colour, 0 .. COLOURS - 1 */
    const uint8_t *lightness;    /* the same: L* / 100, in 1/255 */
    float *shares;               /* [COLOURS][grid] */
    float *light;                /* [grid] */
    float *strokes;              /* [grid] */
    int32_t rows, columns;       /* of the Grid */
    float step;                  /* luma difference, in 8-bit units, that makes an edge of a stroke */
} Attributes;

enum { PART = 64 }; /* cells processed together, by vector instructions */

INLINE int32_t rounded(float value) { return (int32_t)(value + 0.5f); } /* of a mean of bytes: 0 .. 255 */

/* The colour of a bin, as a count of one in its five bits. */
INLINE uint64_t counted(const uint8_t *name, int32_t bin) { return (uint64_t)1 << 5 * name[bin]; }

/* Colours of ``cells`` cells, at most PART, from ``column`` on. Each colour is counted in five bits of a word. */
INLINE void name_colours(const Attributes *a, int32_t row, int32_t column, int32_t cells)
{
    int64_t width = (int64_t)a->columns * COLOUR_SIDE, all = (int64_t)a->rows * a->columns;
    uint64_t count[PART] = {0};
    int32_t light[PART] = {0}, bin[PART * COLOUR_SIDE];
    const uint8_t *name = a->name, *lightness = a->lightness;
    for (int32_t y = 0; y < COLOUR_SIDE; y++) {
        int64_t at = (row * COLOUR_SIDE + y) * width + column * COLOUR_SIDE;
        const float *luma = a->luma + at, *cb = a->cb + at, *cr = a->cr + at;
        for (int32_t x = 0; x < cells * COLOUR_SIDE; x++)
            bin[x] = (rounded(luma[x]) >> 3) << 12 | (rounded(cb[x]) >> 2) << 6 | rounded(cr[x]) >> 2;
        for (int32_t cell = 0; cell < cells; cell++) { /* unrolled by hand: a loop over the four is not vectorised */
            const int32_t *own = bin + cell * COLOUR_SIDE;
            count[cell] +=
                counted(name, own[0]) + counted(name, own[1]) + counted(name, own[2]) + counted(name, own[3]);
            light[cell] += lightness[own[0]] + lightness[own[1]] + lightness[own[2]] + lightness[own[3]];
        }
    }
    int64_t first = (int64_t)row * a->columns + column;
    for (int32_t k = 0; k < COLOURS; k++)
        for (int32_t cell = 0; cell < cells; cell++)
            a->shares[k * all + first + cell] = (float)(int32_t)(count[cell] >> 5 * k & 31) / SAMPLES;
    for (int32_t cell = 0; cell < cells; cell++) a->light[first + cell] = (float)light[cell] / (255 * SAMPLES);
}

/* Edges of a row of samples from ``left`` - WIDEST_STROKE on: 1 rising, -1 falling, 0 none, as at the picture's edge.
 */
INLINE void find_edges(const float *restrict luma, int32_t left, int32_t right, int32_t width, float step,
                       int8_t *restrict edge)
{
    int32_t first = greatest(left - WIDEST_STROKE, 1), end = least(right, width - 1);
    for (int32_t x = left - WIDEST_STROKE; x < first; x++) edge[x - left + WIDEST_STROKE] = 0;
    for (int32_t x = greatest(end, first); x < right; x++) edge[x - left + WIDEST_STROKE] = 0;
    for (int32_t x = first; x < end; x++) {
        float across = luma[x + 1] - luma[x - 1];
        edge[x - left + WIDEST_STROKE] = (int8_t)((across > step) - (across < -step));
    }
}

/* Strokes that end in each of ``cells`` cells: a rising and a falling edge, in either order, at most WIDEST_STROKE
   samples apart, with no edge between them. */
INLINE void count_strokes(const Attributes *a, int32_t row, int32_t column, int32_t cells)
{
    int32_t width = a->columns * STROKE_SIDE, left = column * STROKE_SIDE, samples = cells * STROKE_SIDE;
    uint8_t count[PART * STROKE_SIDE] = {0};
    int8_t edges[STROKE_SIDE][WIDEST_STROKE + PART * STROKE_SIDE];
    for (int32_t y = 0; y < STROKE_SIDE; y++)
        find_edges(a->fine + (int64_t)(row * STROKE_SIDE + y) * width, left, left + samples, width, a->step, edges[y]);
    for (int32_t y = 0; y < STROKE_SIDE; y++) {
        const int8_t *here = edges[y] + WIDEST_STROKE;
        for (int32_t x = 0; x < samples; x++) {
            int8_t last = here[x - 1];
            for (int32_t back = 2; back <= WIDEST_STROKE; back++) last |= here[x - back] & (int8_t)-(last == 0);
            count[x] += (here[x] > 0 && last < 0) || (here[x] < 0 && last > 0);
        }
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        int32_t sum = 0;
        for (int32_t x = 0; x < STROKE_SIDE; x++) sum += count[cell * STROKE_SIDE + x];
        a->strokes[(int64_t)row * a->columns + column + cell] = (float)sum;
    }
}

/* How many cells from ``column`` on, at most PART, lie in written tiles, or within ``beside`` cells of one. */
static int32_t cells_written(const uint8_t *tiles, int32_t column, int32_t columns, int32_t beside)
{
    int32_t end = column;
    while (end < least(column + PART, columns)) {
        int32_t before = greatest(end - beside, 0), behind = least(end + beside, columns - 1);
        if (!tiles[before / CELLS_PER_TILE] && !tiles[behind / CELLS_PER_TILE]) break;
        end++;
    }
    return end - column;
}

/* Update the cells of the tiles of ``written``, and the strokes of the cells beside them. */
FOR_EACH_PROCESSOR
EXPORT void attributes(const Attributes *a, const uint8_t *written)
{
    int32_t across = a->columns / CELLS_PER_TILE;
    for (int32_t row = 0; row < a->rows; row++) {
        const uint8_t *tiles = written + row / CELLS_PER_TILE * across;
        for (int32_t column = 0, cells; column < a->columns; column += greatest(cells, 1))
            if ((cells = cells_written(tiles, column, a->columns, 0))) name_colours(a, row, column, cells);
        for (int32_t column = 0, cells; column < a->columns; column += greatest(cells, 1))
            if ((cells = cells_written(tiles, column, a->columns, 1))) count_strokes(a, row, column, cells);
    }
}
