/* What cells are like, for queries in plain words: the share of each named colour, lightness, and strokes of letters.
   One value per cell of the Grid and map, for the cells of the tiles that were written and those that see them. */

#include "native.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLOURS = 11,
    COLOUR_LEVEL = 2,
    COLOUR_SIDE = CELL >> COLOUR_LEVEL,
    STROKE_LEVEL = 1,
    STROKE_SIDE = CELL >> STROKE_LEVEL,
    WIDEST = 5 /* samples of STROKE_LEVEL between the two edges of a stroke */
};

typedef struct {
    const float *luma, *cb, *cr; /* of COLOUR_LEVEL, in 8-bit units */
    const float *fine;           /* luma of STROKE_LEVEL */
    const uint8_t *name;         /* [32][64][64]: by Y >> 3, Cb >> 2, Cr >> 2: which colour, 0 .. COLOURS - 1 */
    const uint8_t *lightness;    /* the same: L* / 100, in 1/255 */
    float *shares;               /* [COLOURS][grid] */
    float *light;                /* [grid] */
    float *strokes;              /* [grid] */
    int32_t rows, columns;       /* of the Grid */
    float step;                  /* luma difference, in 8-bit units, that makes an edge of a stroke */
} Attributes;

static inline int32_t rounded(float value)
{
    int32_t whole = (int32_t)(value + 0.5f);
    return least(greatest(whole, 0), 255);
}

static void name_colours(const Attributes *a, int32_t row, int32_t column)
{
    int64_t width = (int64_t)a->columns * COLOUR_SIDE, cells = (int64_t)a->rows * a->columns;
    int32_t count[COLOURS] = {0}, light = 0;
    for (int32_t y = 0; y < COLOUR_SIDE; y++)
        for (int32_t x = 0; x < COLOUR_SIDE; x++) {
            int64_t at = (row * COLOUR_SIDE + y) * width + column * COLOUR_SIDE + x;
            int32_t bin = (rounded(a->luma[at]) >> 3) << 12 | (rounded(a->cb[at]) >> 2) << 6 | rounded(a->cr[at]) >> 2;
            count[a->name[bin]]++;
            light += a->lightness[bin];
        }
    int64_t cell = (int64_t)row * a->columns + column;
    for (int32_t k = 0; k < COLOURS; k++)
        a->shares[k * cells + cell] = (float)count[k] / (float)(COLOUR_SIDE * COLOUR_SIDE);
    a->light[cell] = (float)light / (float)(255 * COLOUR_SIDE * COLOUR_SIDE);
}

/* Strokes that end in the cell: an edge up and an edge down, or the other way round, at most WIDEST samples apart. */
static void count_strokes(const Attributes *a, int32_t row, int32_t column)
{
    int32_t width = a->columns * STROKE_SIDE, left = column * STROKE_SIDE, count = 0;
    for (int32_t y = 0; y < STROKE_SIDE; y++) {
        const float *luma = a->fine + (int64_t)(row * STROKE_SIDE + y) * width;
        int32_t sign = 0, seen = left - 2 * WIDEST;
        for (int32_t x = greatest(left - WIDEST, 1); x < least(left + STROKE_SIDE, width - 1); x++) {
            float across = luma[x + 1] - luma[x - 1];
            int32_t here = across > a->step ? 1 : across < -a->step ? -1 : 0;
            if (!here) continue;
            if (x >= left && here == -sign && x - seen <= WIDEST) count++;
            sign = here;
            seen = x;
        }
    }
    a->strokes[(int64_t)row * a->columns + column] = (float)count;
}

/* ``written``: [tiles] that were written. Colours are those of their cells, strokes also reach the cells beside. */
EXPORT void attributes(const Attributes *a, const uint8_t *written)
{
    int32_t across = a->columns / CELLS_PER_TILE;
    for (int32_t row = 0; row < a->rows; row++) {
        const uint8_t *tiles = written + row / CELLS_PER_TILE * across;
        for (int32_t column = 0; column < a->columns; column++) {
            int32_t before = greatest(column - 1, 0), behind = least(column + 1, a->columns - 1);
            if (tiles[column / CELLS_PER_TILE]) name_colours(a, row, column);
            if (tiles[before / CELLS_PER_TILE] || tiles[behind / CELLS_PER_TILE]) count_strokes(a, row, column);
        }
    }
}
