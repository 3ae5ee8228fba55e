/* Distance of each cell to the nearest edge cell, exact within a reach: first down the columns, then along the rows. */

#include "native.h"

#include <math.h>
#include <string.h>

/* apart[x] = cells to the nearest edge cell above; reach + 1 if there is none within reach. */
FOR_EACH_PROCESSOR
static void pass_down(const float *edges, const float *inverted, int32_t columns, float least_edge, int32_t reach,
                      const int32_t *before, int32_t *apart)
{
    for (int32_t x = 0; x < columns; x++) {
        int32_t far = before ? before[x] + 1 : reach + 1;
        far = far < reach + 1 ? far : reach + 1;
        apart[x] = edges[x] > least_edge || inverted[x] > least_edge ? 0 : far;
    }
}

FOR_EACH_PROCESSOR
static void nearer(const int32_t *other, int32_t columns, int32_t *apart)
{
    for (int32_t x = 0; x < columns; x++) apart[x] = other[x] + 1 < apart[x] ? other[x] + 1 : apart[x];
}

/* squares[x] = min(squares[x], apart[x + offset]^2 + offset^2). */
FOR_EACH_PROCESSOR
static void nearest_along(const int32_t *apart, int32_t offset, int32_t from, int32_t to, int32_t *squares)
{
    for (int32_t x = from; x < to; x++) {
        int32_t square = apart[x + offset] * apart[x + offset] + offset * offset;
        squares[x] = square < squares[x] ? square : squares[x];
    }
}

FOR_EACH_PROCESSOR
static void to_share(const int32_t *squares, int32_t columns, int32_t reach, float *out)
{
    for (int32_t x = 0; x < columns; x++) {
        float share = sqrtf((float)squares[x]) / (float)reach;
        out[x] = share < 1.0f ? share : 1.0f;
    }
}

/* ``distance`` [rows, columns]: to the nearest cell with an edge above ``least_edge`` in either map, / reach, clipped
   to 1.
   ``apart`` int32[rows, columns] and ``squares`` int32[columns] are working memory. */
EXPORT void edge_distance(const float *edges, const float *inverted, int32_t rows, int32_t columns, float least_edge,
                          int32_t reach, int32_t *apart, int32_t *squares, float *distance)
{
    for (int32_t y = 0; y < rows; y++)
        pass_down(edges + (int64_t)y * columns, inverted + (int64_t)y * columns, columns, least_edge, reach,
                  y ? apart + (int64_t)(y - 1) * columns : NULL, apart + (int64_t)y * columns);
    for (int32_t y = rows - 2; y >= 0; y--)
        nearer(apart + (int64_t)(y + 1) * columns, columns, apart + (int64_t)y * columns);
    for (int32_t y = 0; y < rows; y++) {
        for (int32_t x = 0; x < columns; x++) squares[x] = reach * reach;
        for (int32_t offset = -reach; offset <= reach; offset++)
            nearest_along(apart + (int64_t)y * columns, offset, greatest(-offset, 0), least(columns - offset, columns),
                          squares);
        to_share(squares, columns, reach, distance + (int64_t)y * columns);
    }
}
