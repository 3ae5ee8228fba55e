/* Leaf errors of some cells of a row; see leaf_errors.c. Included once per instruction set, with FIND_ERRORS defined as
   the name of the function. */

#include "native.h"
#include "spec/errors.h"

#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum {
    COARSER = 4,                             /* ratio of the unit of differences to that of samples */
    VECTOR = 16,                             /* samples per vector instruction; rows are processed in whole vectors */
    WIDEST = MOST_CELLS * CELL / 2 + VECTOR, /* samples of a row, with neighbours at each end */
#if defined(__AVX2__)
    TOGETHER = 2, /* samples whose squares are summed by one instruction, if a cell has as many */
#else
    TOGETHER = 1,
#endif
};

/* Samples of the coarse level with neighbours on all sides; the same enlarged vertically; the even and odd samples of a
   row of the fine level. */
typedef struct {
    uint16_t narrow[CELL / 2 + 2][WIDEST];
    uint16_t high[CELL][WIDEST];
    uint16_t fine[2][WIDEST];
    uint32_t squares[WIDEST]; /* by TOGETHER columns of the coarse level */
} Samples;

INLINE uint16_t in_units(float mean) { return (uint16_t)(int32_t)(mean * (float)UNIT + 0.5f); }

/* ``count`` pairs of samples of the level ``step`` above the plane's base, from ``left`` on. */
INLINE void load_pairs(const Pyramid *plane, int32_t step, int32_t row, int32_t left, int32_t count,
                       uint16_t *restrict even, uint16_t *restrict odd)
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

/* ``count`` samples of a level above the base, with a neighbour at each end; edge samples are repeated. */
INLINE void load_rimmed(const Pyramid *plane, int32_t step, int32_t row, int32_t left, int32_t count,
                        uint16_t *restrict to)
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

/* Add, for each of ``n`` coarse samples, the squared differences of the two fine samples under it in one row. ``high``
   has a neighbour at each end. */
INLINE void add_squares(const uint16_t *restrict even, const uint16_t *restrict odd, const uint16_t *restrict high,
                        int32_t n, uint32_t *restrict squares)
{
    for (int32_t first = 0; first < n; first += VECTOR)
        for (int32_t x = first; x < first + VECTOR; x++) {
            uint16_t left = between(high[x + 1], high[x]), right = between(high[x + 1], high[x + 2]);
            squares[x] += square(even[x], left) + square(odd[x], right);
        }
}

#if defined(__AVX2__)

/* The same for 16 coarse samples, two of them together. */
INLINE __m256i squares_of(__m256i even, __m256i odd, const uint16_t *high)
{
    const __m256i half = _mm256_set1_epi16(COARSER / 2);
    __m256i near = _mm256_loadu_si256((const __m256i *)(high + 1)), far = _mm256_loadu_si256((const __m256i *)high);
    __m256i three = _mm256_add_epi16(_mm256_add_epi16(near, near), _mm256_add_epi16(near, half));
    __m256i left = _mm256_srli_epi16(_mm256_add_epi16(three, far), 2);
    far = _mm256_loadu_si256((const __m256i *)(high + 2));
    __m256i right = _mm256_srli_epi16(_mm256_add_epi16(three, far), 2);
    even = _mm256_srai_epi16(_mm256_add_epi16(_mm256_sub_epi16(even, left), half), 2);
    odd = _mm256_srai_epi16(_mm256_add_epi16(_mm256_sub_epi16(odd, right), half), 2);
    return _mm256_add_epi32(_mm256_madd_epi16(even, even), _mm256_madd_epi16(odd, odd));
}

INLINE __m256i load(const void *from) { return _mm256_loadu_si256((const __m256i *)from); }

/* add_squares for whole vectors of a row of the fine level, which is ``step`` above the plane's base; TOGETHER. */
INLINE void add_row(const Pyramid *plane, int32_t step, int32_t row, int32_t left, int32_t n, const uint16_t *high,
                    Samples *s)
{
    const __m256i most = _mm256_set1_epi16(0xff * UNIT);
    const uint8_t *pixels = plane->pixels + (int64_t)row * plane->stride + left;
    int direct = step == 0 && n % VECTOR == 0;
    if (!direct) load_pairs(plane, step, row, left, n, s->fine[0], s->fine[1]);
    for (int32_t x = 0; x < n; x += VECTOR) {
        __m256i *into = (__m256i *)(s->squares + x / 2), even, odd;
        if (direct) {
            __m256i both = load(pixels + 2 * x);
            even = _mm256_and_si256(_mm256_slli_epi16(both, 6), most);
            odd = _mm256_and_si256(_mm256_srli_epi16(both, 2), most);
        } else {
            even = load(s->fine[0] + x);
            odd = load(s->fine[1] + x);
        }
        _mm256_storeu_si256(into, _mm256_add_epi32(load(into), squares_of(even, odd, high + x)));
    }
}

#endif

/* One plane: ``sums`` [cells] of squared differences between the level ``step - 1`` above the base and the enlarged
   next level, which has ``side`` samples along a cell. */
INLINE void compare_levels(const Pyramid *plane, int32_t step, int32_t side, int32_t row, int32_t column, int32_t cells,
                           Samples *s, uint32_t *sums)
{
    int32_t width = cells * side, top = row * side, left = column * side, together = least(TOGETHER, side);
    memset(s->squares, 0, sizeof(uint32_t) * (size_t)width);
    for (int32_t y = 0; y < side + 2; y++) load_rimmed(plane, step, top + y - 1, left, width, s->narrow[y]);
    for (int32_t y = 0; y < 2 * side; y++)
        add_rows(s->narrow[y / 2 + 1], s->narrow[y / 2 + 2 * (y % 2)], width + 2, s->high[y]);
    for (int32_t y = 0; y < 2 * side; y++) {
#if defined(__AVX2__)
        if (together == TOGETHER) {
            add_row(plane, step - 1, 2 * top + y, 2 * left, width, s->high[y], s);
            continue;
        }
#endif
        load_pairs(plane, step - 1, 2 * top + y, 2 * left, width, s->fine[0], s->fine[1]);
        add_squares(s->fine[0], s->fine[1], s->high[y], width, s->squares);
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        sums[cell] = 0;
        for (int32_t x = 0; x < side / together; x++) sums[cell] += s->squares[cell * side / together + x];
    }
}

/* The errors of ``cells`` cells of a row, from ``column`` on, at all levels. */
INLINE void find_some(const Pyramid planes[3], const LeafErrors *e, int32_t row, int32_t column, int32_t cells,
                      Samples *s)
{
    double total[MOST_CELLS] = {0};
    uint32_t sums[MOST_CELLS];
    for (int32_t level = 1; level <= TOP_LEVEL; level++) {
        for (int32_t plane = 0; plane < 3; plane++) {
            int32_t step = level - planes[plane].base;
            double share = e->weights[plane] * (double)(1 << (2 * (step - 1))) / (UNIT / COARSER * UNIT / COARSER);
            if (step < 1) continue;
            if (level == 1) compare_levels(&planes[plane], step, CELL / 2, row, column, cells, s, sums);
            else if (level == 2) compare_levels(&planes[plane], step, CELL / 4, row, column, cells, s, sums);
            else if (level == 3) compare_levels(&planes[plane], step, CELL / 8, row, column, cells, s, sums);
            else compare_levels(&planes[plane], step, CELL / 16, row, column, cells, s, sums);
            for (int32_t cell = 0; cell < cells; cell++) total[cell] += share * (double)sums[cell];
        }
        float *errors = e->errors[level - 1] + (int64_t)row * e->columns + column;
        for (int32_t cell = 0; cell < cells; cell++) errors[cell] = (float)total[cell];
    }
}

EXPORT void FIND_ERRORS(const Pyramid planes[3], const LeafErrors *e, int32_t row, int32_t column, int32_t cells)
{
    Samples s = {0};
    if (cells == MOST_CELLS) find_some(planes, e, row, column, MOST_CELLS, &s);
    else if (cells == 8) find_some(planes, e, row, column, 8, &s);
    else if (cells == 4) find_some(planes, e, row, column, 4, &s);
    else find_some(planes, e, row, column, 2, &s);
}
