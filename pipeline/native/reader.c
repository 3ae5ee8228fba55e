/* Errors of the reader's picture: squared errors per cell, and the residual errors after a token was shown. */

#include "native.h"

/* Differences are stored first, so that the compiler vectorises the sum of their squares. */
INLINE uint32_t squares(const uint8_t *a, int64_t a_stride, const uint8_t *b, int64_t b_stride, int32_t side)
{
    int16_t apart[CELL * CELL];
    int32_t sum = 0;
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) apart[y * side + x] = (int16_t)(a[y * a_stride + x] - b[y * b_stride + x]);
    for (int32_t i = 0; i < side * side; i++) sum += apart[i] * apart[i];
    return (uint32_t)sum;
}

/* The same for one cell: ``side`` is 16, or 8 in a plane at half resolution. */
FOR_EACH_PROCESSOR
static uint32_t squared_error(const uint8_t *a, int64_t a_stride, const uint8_t *b, int64_t b_stride, int32_t side)
{
    return side == CELL ? squares(a, a_stride, b, b_stride, CELL) : squares(a, a_stride, b, b_stride, CELL / 2);
}

/* ``error`` float32[grid] over the tiles of ``mask``: the planes' squared differences summed over each cell, times the
   plane's weight; ``unseen`` where ``seen`` is 0. ``sides`` are the samples along a cell of each plane. The planes are
   padded to whole tiles at least. */
EXPORT void reader_error(const Plane shown[3], const Plane truth[3], const int32_t sides[3], const double weights[3],
                         const uint8_t *seen, float unseen, int32_t rows, int32_t columns, const uint8_t *mask,
                         float *error)
{
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++) {
            int64_t at = (int64_t)row * columns + column;
            if (!mask[(row / CELLS_PER_TILE) * (columns / CELLS_PER_TILE) + column / CELLS_PER_TILE]) continue;
            double sum = 0.0;
            for (int32_t plane = 0; seen[at] && plane < 3; plane++) {
                const Plane *a = &shown[plane], *b = &truth[plane];
                int32_t side = sides[plane];
                sum += weights[plane]
                       * squared_error(a->samples + row * side * a->stride + column * side, a->stride,
                                       b->samples + row * side * b->stride + column * side, b->stride, side);
            }
            error[at] = seen[at] ? (float)sum : unseen;
        }
}

/* Whether any of the three other tiles that touch the cell is in ``mask``: an enlarged token mixes their samples. */
static int beside(const uint8_t *mask, int32_t row, int32_t column, int32_t rows, int32_t columns)
{
    int32_t y = row / CELLS_PER_TILE, x = column / CELLS_PER_TILE;
    int32_t other_y = row % CELLS_PER_TILE ? y + 1 : y - 1, other_x = column % CELLS_PER_TILE ? x + 1 : x - 1;
    int32_t within_y = other_y >= 0 && other_y < rows, within_x = other_x >= 0 && other_x < columns;
    return (within_x && mask[y * columns + other_x]) || (within_y && mask[other_y * columns + x])
           || (within_y && within_x && mask[other_y * columns + other_x]);
}

/* Updates ``residual`` float32[levels, grid]: the error of each cell after a token of LOD 1, 2 ... was shown there, 0
   where none was since its pixels, or those around it, changed. ``changed`` and ``settled`` are uint8[tiles]: those
   that changed in this frame, and those that changed in the previous frame but not in this one. ``painted`` uint8[grid]
   marks cells painted at ``lod`` since the last call, and is cleared; ``outdated`` uint8[grid], cells that changed
   since painted. */
EXPORT void reader_residuals(const uint8_t *changed, const uint8_t *settled, const uint8_t *lod, const float *error,
                             int32_t rows, int32_t columns, uint8_t *painted, uint8_t *outdated, float *residual,
                             int32_t levels)
{
    int64_t count = (int64_t)rows * columns;
    int32_t tile_rows = rows / CELLS_PER_TILE, tile_columns = columns / CELLS_PER_TILE;
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++) {
            int64_t at = (int64_t)row * columns + column;
            int is_changed = changed[(row / CELLS_PER_TILE) * tile_columns + column / CELLS_PER_TILE];
            if (is_changed || beside(settled, row, column, tile_rows, tile_columns))
                for (int32_t level = 0; level < levels; level++) residual[level * count + at] = 0.0f;
            if (painted[at]) {
                if (lod[at] && lod[at] <= levels && !is_changed) residual[(lod[at] - 1) * count + at] = error[at];
                outdated[at] = 0;
            }
            outdated[at] |= (uint8_t)is_changed;
            painted[at] = 0;
        }
}
