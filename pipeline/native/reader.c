/* How wrong the reader's picture is: squared errors per cell. */

#include "native.h"

INLINE uint32_t squares(const uint8_t *a, int64_t a_stride, const uint8_t *b, int64_t b_stride, int32_t side)
{
    uint32_t columns[CELL] = {0}, sum = 0;
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            int16_t difference = (int16_t)(a[y * a_stride + x] - b[y * b_stride + x]);
            columns[x] += (uint32_t)(difference * difference);
        }
    for (int32_t x = 0; x < side; x++) sum += columns[x];
    return sum;
}

/* Over one cell; ``side`` is 16, or 8 in a plane at half resolution. */
FOR_EACH_PROCESSOR
static uint32_t squared_error(const uint8_t *a, int64_t a_stride, const uint8_t *b, int64_t b_stride, int32_t side)
{
    return side == CELL ? squares(a, a_stride, b, b_stride, CELL) : squares(a, a_stride, b, b_stride, CELL / 2);
}

/* ``error`` float32[grid] over the tiles of ``mask``: the planes' squared differences summed over each cell, times the
   plane's weight; ``unseen`` where ``seen`` is 0. ``sides`` are the samples along a cell of each plane. The planes are
   padded to whole tiles at least. */
EXPORT void reader_error(const Plane shown[3], const Plane truth[3], const int32_t sides[3], const double weights[3],
                         const uint8_t *seen, float unseen, int32_t rows, int32_t columns, const uint8_t *mask, float *error)
{
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++) {
            int64_t at = (int64_t)row * columns + column;
            if (!mask[(row / CELLS_PER_TILE) * (columns / CELLS_PER_TILE) + column / CELLS_PER_TILE]) continue;
            double sum = 0.0;
            for (int32_t plane = 0; seen[at] && plane < 3; plane++) {
                const Plane *a = &shown[plane], *b = &truth[plane];
                int32_t side = sides[plane];
                sum += weights[plane] * squared_error(a->samples + row * side * a->stride + column * side, a->stride,
                                                      b->samples + row * side * b->stride + column * side, b->stride, side);
            }
            error[at] = seen[at] ? (float)sum : unseen;
        }
}
