/* Scene cuts: the structure of a picture, the coarsest detail of its tiles, and products of two structures.

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

/* ``details`` int32[tiles, 3]: of each tile that lies wholly in the picture, row by row, what its left cells exceed the
   right ones by, the upper the lower ones, and one diagonal the other: sums over the cells' samples. */
EXPORT void structure(const Plane *luma, int32_t *details)
{
    for (int32_t top = 0; top + TILE <= luma->height; top += TILE)
        for (int32_t left = 0; left + TILE <= luma->width; left += TILE, details += 3) {
            const uint8_t *upper = luma->samples + top * luma->stride + left, *lower = upper + SIDE * luma->stride;
            int32_t a = cell_sum(upper, luma->stride), b = cell_sum(upper + SIDE, luma->stride),
                    c = cell_sum(lower, luma->stride), d = cell_sum(lower + SIDE, luma->stride);
            details[0] = a - b + c - d;
            details[1] = a + b - c - d;
            details[2] = a - b - c + d;
        }
}

/* Sum of the products of two structures of ``count`` numbers each. */
EXPORT int64_t structures_product(const int32_t *one, const int32_t *other, int32_t count)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++) sum += (int64_t)one[i] * other[i];
    return sum;
}
