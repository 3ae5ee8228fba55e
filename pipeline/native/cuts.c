/* Scene cuts: sums over the cells of a picture, and products of the structures of two pictures. The structure is the
   Haar details of 2x2 cells: what the left ones exceed the right ones by, the upper the lower, one diagonal the other.

   Sums are whole numbers, so the answer is exact. */

#include "native.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { SIDE = TILE / 2 /* of a cell */ };

#if defined(__SSE2__)

/* Sum over a cell's samples. */
static inline int32_t cell_sum(const uint8_t *samples, int64_t stride)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i sum = zero;
    for (int32_t y = 0; y < SIDE; y++)
        sum = _mm_add_epi32(sum, _mm_sad_epu8(_mm_loadu_si128((const __m128i *)(samples + y * stride)), zero));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_srli_si128(sum, 8)));
}

#else

static inline int32_t cell_sum(const uint8_t *samples, int64_t stride)
{
    int32_t sum = 0;
    for (int32_t y = 0; y < SIDE; y++)
        for (int32_t x = 0; x < SIDE; x++) sum += samples[y * stride + x];
    return sum;
}

#endif

/* ``sums`` uint16[rows][columns], row by row: over the samples of each cell of the tiles that lie wholly in the
   picture. */
EXPORT void cell_sums(const Plane *luma, uint16_t *sums)
{
    for (int32_t top = 0, rows = luma->height / TILE * TILE; top < rows; top += SIDE)
        for (int32_t left = 0, columns = luma->width / TILE * TILE; left < columns; left += SIDE)
            *sums++ = (uint16_t)cell_sum(luma->samples + top * luma->stride + left, luma->stride);
}

typedef struct {
    int32_t left, upper, diagonal;
} Details;

/* Of 2x2 cells, in a row and the one below. */
static inline Details details(const uint16_t *upper, const uint16_t *lower)
{
    int32_t a = upper[0], b = upper[1], c = lower[0], d = lower[1];
    return (Details){a - b + c - d, a + b - c - d, a - b - c + d};
}

static inline int64_t product(Details one, Details other)
{
    return (int64_t)one.left * other.left + (int64_t)one.upper * other.upper + (int64_t)one.diagonal * other.diagonal;
}

static inline void add_row(const uint16_t *one, const uint16_t *other, int32_t columns, int32_t count, int32_t step,
                           int64_t products[3])
{
    for (int32_t i = 0; i < count; i += step) {
        Details now = details(one + i, one + i + columns), held = details(other + i, other + i + columns);
        products[0] += product(now, now);
        products[1] += product(held, held);
        products[2] += product(now, held);
    }
}

/* Products of the structures of two pictures of ``rows`` x ``columns`` cells: of the first with itself, of the other
   with itself, and of both; summed over the 2x2 cells at every ``step``-th row and column, 1 or 2, of the first, beside
   those of the other that lie ``down`` cells above and ``right`` cells to the left of them. */
EXPORT void structure_products(const uint16_t *one, const uint16_t *other, int32_t rows, int32_t columns, int32_t step,
                               int32_t down, int32_t right, int64_t products[3])
{
    int32_t left = greatest(right, 0), count = columns - 1 + least(right, 0) - left;
    products[0] = products[1] = products[2] = 0;
    for (int32_t y = greatest(down, 0); y < rows - 1 + least(down, 0); y += step) {
        const uint16_t *now = one + y * columns + left, *held = other + (y - down) * columns + left - right;
        if (step == 1) add_row(now, held, columns, count, 1, products);
        else add_row(now, held, columns, count, 2, products);
    }
}
