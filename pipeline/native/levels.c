/* Writes tiles into the levels: pixels, exact 2x2 means, motion and leaf errors.

   Pixels are summed in whole numbers: the 256 of a cell add up to at most 65,280. */

#include "native.h"

#include <math.h>
#include <string.h>

/* The motion map: largest change of luma at ``level`` in each cell, times ``scale``, clipped to 1. */
typedef struct {
    const void *before;     /* luma of ``level`` before this update, laid out as in the pyramid; null: no motion map */
    const uint8_t *changed; /* [tiles] to compute it for */
    float *motion;          /* [grid] */
    float scale;
    int32_t level;
} Motion;

/* Copy the pixels of the tiles of ``mask`` in one row of tiles. Edge samples are repeated where the picture ends inside
   a tile. */
static void copy_row(const Plane *source, Pyramid *into, int32_t row, int32_t columns, const uint8_t *mask)
{
    int32_t side = TILE >> into->base;
    for (int32_t first = 0; first < columns; first++) {
        int32_t end = first;
        while (end < columns && mask[end]) end++;
        if (end == first) continue;
        int32_t left = first * side, width = greatest(least(end * side, source->width) - left, 0);
        for (int32_t y = row * side; y < (row + 1) * side; y++) {
            const uint8_t *from = source->samples + least(y, source->height - 1) * source->stride;
            uint8_t *to = into->pixels + y * into->stride + left;
            memcpy(to, from + left, (size_t)width);
            memset(to + width, from[source->width - 1], (size_t)((end - first) * side - width));
        }
        first = end;
    }
}

enum { CELLS = CELLS_PER_TILE * CELLS_PER_TILE }; /* of a tile, numbered row by row */

/* Sums of two rows each; two neighbours can be read as one number of twice the width. */
typedef union {
    uint16_t one[TILE / 2 * TILE];
    uint32_t two[TILE / 2 * TILE / 2];
} Columns;

/* sums[x] = the sum of neighbours 2x and 2x + 1, ``count`` of them. */
INLINE void sum_pairs(const Columns *columns, int32_t count, uint16_t *restrict sums)
{
    for (int32_t x = 0; x < count; x++) sums[x] = (uint16_t)((columns->two[x] & 0xffff) + (columns->two[x] >> 16));
}

/* sums[side / 2, side / 2] = sums of 2x2 pixels. */
INLINE void sum_pixels(const uint8_t *pixels, int64_t stride, int32_t side, uint16_t *restrict sums)
{
    Columns columns;
    for (int32_t y = 0; y < side / 2; y++)
        for (int32_t x = 0; x < side; x++)
            columns.one[y * side + x] = (uint16_t)(pixels[2 * y * stride + x] + pixels[(2 * y + 1) * stride + x]);
    sum_pairs(&columns, side / 2 * side / 2, sums);
}

/* coarse[side / 2, side / 2] = sums of 2x2 of ``sums`` [side, side]. */
INLINE void sum_again(const uint16_t *restrict sums, int32_t side, uint16_t *restrict coarse)
{
    Columns columns;
    for (int32_t y = 0; y < side / 2; y++)
        for (int32_t x = 0; x < side; x++)
            columns.one[y * side + x] = (uint16_t)(sums[2 * y * side + x] + sums[(2 * y + 1) * side + x]);
    sum_pairs(&columns, side / 2 * side / 2, coarse);
}

INLINE void store_means(const uint16_t *restrict sums, float share, int32_t side, float *restrict into, int64_t stride)
{
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) into[y * stride + x] = (float)sums[y * side + x] * share;
}

/* The level ``step`` above the first one, [side, side] in the tile, from its sums. */
INLINE void build_level(const Pyramid *into, int32_t row, int32_t column, int32_t step, int32_t side,
                        const uint16_t *restrict sums)
{
    int64_t stride = into->stride >> (step + 1);
    float share = 1.0f / (float)(4 << (2 * step)); /* a sum covers 4^(step + 1) samples */
    store_means(sums, share, side, into->coarse[step] + row * side * stride + column * side, stride);
}

/* All levels of one tile of a plane with ``side`` pixels along a tile. */
INLINE void build_levels(const Pyramid *into, int32_t row, int32_t column, int32_t side)
{
    uint16_t first[TILE / 2 * TILE / 2], second[TILE / 4 * TILE / 4], third[TILE / 8 * TILE / 8], fourth[CELLS];
    sum_pixels(into->pixels + row * side * into->stride + column * side, into->stride, side, first);
    build_level(into, row, column, 0, side / 2, first);
    sum_again(first, side / 2, second);
    build_level(into, row, column, 1, side / 4, second);
    sum_again(second, side / 4, third);
    build_level(into, row, column, 2, side / 8, third);
    if (side < TILE) return;
    sum_again(third, side / 8, fourth);
    build_level(into, row, column, 3, side / 16, fourth);
}

FOR_EACH_PROCESSOR
static void build_whole(const Pyramid *into, int32_t row, int32_t column) { build_levels(into, row, column, TILE); }

FOR_EACH_PROCESSOR
static void build_half(const Pyramid *into, int32_t row, int32_t column) { build_levels(into, row, column, TILE / 2); }

/* A tile's luma at the level of the motion map (uint8 at level 0, else float32), as float32. */
FOR_EACH_PROCESSOR
static void read_tile(const void *samples, int32_t level, int64_t start, int64_t stride, float out[TILE * TILE])
{
    int32_t side = TILE >> level;
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            int64_t at = start + y * stride + x;
            out[y * side + x] = level ? ((const float *)samples)[at] : (float)((const uint8_t *)samples)[at];
        }
}

/* Store the largest difference in each cell of a tile, scaled, at ``corner`` of the motion map. */
FOR_EACH_PROCESSOR
static void set_motion(const float *then, const float *now, const Motion *motion, float *corner, int64_t columns)
{
    int32_t cell = CELL >> motion->level, side = TILE >> motion->level;
    for (int32_t c = 0; c < CELLS; c++) {
        int32_t down = c / CELLS_PER_TILE, across = c % CELLS_PER_TILE;
        float most = 0.0f;
        for (int32_t y = down * cell; y < (down + 1) * cell; y++)
            for (int32_t x = across * cell; x < (across + 1) * cell; x++) {
                float change = fabsf(now[y * side + x] - then[y * side + x]);
                most = change > most ? change : most;
            }
        most *= motion->scale;
        corner[down * columns + across] = most < 1.0f ? most : 1.0f;
    }
}

/* Levels and motion of one tile, whose pixels are written already. ``before``: previous luma at the level of the motion
   map, from this row of tiles on; null: no motion for this tile. */
static void build_tile(const Pyramid into[3], const Motion *motion, const void *before, int32_t row, int32_t column,
                       int32_t columns)
{
    float then[TILE * TILE], now[TILE * TILE];
    int64_t cells = (int64_t)columns * CELLS_PER_TILE, corner = row * CELLS_PER_TILE * cells + column * CELLS_PER_TILE;
    int32_t level = motion->level, side = TILE >> level;
    int64_t stride = into[0].stride >> level;
    if (before) read_tile(before, level, column * side, stride, then);
    for (int32_t plane = 0; plane < 3; plane++) {
        if (into[plane].base) build_half(&into[plane], row, column);
        else build_whole(&into[plane], row, column);
    }
    if (!before) return;
    const void *luma = level ? (const void *)into[0].coarse[level - 1] : (const void *)into[0].pixels;
    read_tile(luma, level, row * side * stride + column * side, stride, now);
    set_motion(then, now, motion, motion->motion + corner, cells);
}

/* Luma before the update, from a row of tiles on; pixels are copied to ``strip`` before they are overwritten. */
static const void *luma_before(const Motion *motion, const Pyramid *luma, int32_t row, uint8_t *strip)
{
    int64_t stride = luma->stride >> motion->level, start = row * (TILE >> motion->level) * stride;
    if (!motion->before) return NULL;
    if (motion->level) return (const float *)motion->before + start;
    memcpy(strip, (const uint8_t *)motion->before + start, (size_t)(TILE * stride));
    return strip;
}

/* Write the tiles of ``mask`` in one row of tiles. */
static void write_row(const Plane source[3], Pyramid into[3], const Motion *motion, int32_t row, int32_t columns,
                      const uint8_t *mask, uint8_t *strip)
{
    if (!memchr(mask, 1, (size_t)columns)) return;
    const void *before = luma_before(motion, &into[0], row, strip);
    for (int32_t plane = 0; plane < 3; plane++) copy_row(&source[plane], &into[plane], row, columns, mask);
    for (int32_t column = 0; column < columns; column++)
        if (mask[column])
            build_tile(into, motion, before && motion->changed[row * columns + column] ? before : NULL, row, column,
                       columns);
}

/* Write the tiles of ``errors->written`` from the frame's planes. ``motion->before`` may be the planes that
   are written. ``strip``: working memory for a row of tiles of luma. The errors of a row of cells follow as soon as the
   row of tiles below it is written, while its samples are still in the cache. */
EXPORT void write_tiles(const Plane source[3], Pyramid into[3], const Motion *motion, const LeafErrors *errors,
                        uint8_t *strip)
{
    int32_t rows = errors->rows / CELLS_PER_TILE, columns = errors->columns / CELLS_PER_TILE;
    for (int32_t row = 0; row < rows; row++) {
        write_row(source, into, motion, row, columns, errors->written + row * columns, strip);
        if (row) leaf_errors(into, errors, CELLS_PER_TILE * row - 1);
        leaf_errors(into, errors, CELLS_PER_TILE * row);
    }
    leaf_errors(into, errors, errors->rows - 1);
}
