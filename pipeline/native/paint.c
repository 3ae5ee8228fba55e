/* Paints tokens into the reader's picture: their samples, enlarged bilinearly or bicubically to the pixels they cover.

   Sample centres are aligned and edge samples repeated. Rows are enlarged first, then columns; results are rounded. */

#include "native.h"
#include "spec/tokens.h"

#include <string.h>

enum { WIDEST = PATCH << TOP_LEVEL, TAPS = 4 };

typedef struct {
    const float *samples; /* of the level */
    int32_t rows, columns;
    int32_t top, left; /* of the token, in samples of its level */
    uint8_t *onto;     /* its first pixel */
    int64_t stride;
} Token;

/* A row of the token's samples, enlarged by ``factor``. */
INLINE void widen(const Token *t, int32_t row, int32_t factor, float *restrict out)
{
    float near[PATCH + 2]; /* with a neighbour at each end */
    const float *samples = t->samples + (int64_t)least(greatest(row, 0), t->rows - 1) * t->columns;
    for (int32_t x = 0; x < PATCH + 2; x++) near[x] = samples[least(greatest(t->left + x - 1, 0), t->columns - 1)];
    enlarge_row(near, PATCH, factor, out);
}

INLINE void enlarge(const Token *t, int32_t factor)
{
    float rows[2][WIDEST], *upper = rows[0], *lower = rows[1];
    widen(t, t->top - 1, factor, upper);
    widen(t, t->top, factor, lower);
    for (int32_t y = 0; y < PATCH * factor; y++) {
        int32_t phase = y % factor, from = phase < factor / 2 ? -1 : 0;
        if (phase == factor / 2) {
            float *first = upper;
            upper = lower, lower = first;
            widen(t, t->top + y / factor + 1, factor, lower);
        }
        float part = ((float)phase + 0.5f) / (float)factor - 0.5f - (float)from;
        uint8_t *out = t->onto + y * t->stride;
        for (int32_t x = 0; x < PATCH * factor; x++)
            out[x] = (uint8_t)(int32_t)(upper[x] * (1.0f - part) + lower[x] * part + 0.5f);
    }
}

/* Weights of the four samples around a position, ``part`` of the way from the second to the third: cubic convolution
   (Keys, 1981). */
INLINE void cubic_weights(float part, float *weights)
{
    const float a = CUBIC;
    float far = part + 1.0f, rest = 1.0f - part;
    weights[0] = ((a * far - 5.0f * a) * far + 8.0f * a) * far - 4.0f * a;
    weights[1] = ((a + 2.0f) * part - (a + 3.0f)) * part * part + 1.0f;
    weights[2] = ((a + 2.0f) * rest - (a + 3.0f)) * rest * rest + 1.0f;
    weights[3] = 1.0f - weights[0] - weights[1] - weights[2];
}

INLINE float weighted(float a, float b, float c, float d, const float *weights)
{
    return ((a * weights[0] + b * weights[1]) + c * weights[2]) + d * weights[3];
}

INLINE uint8_t to_byte(float value)
{
    float most = value < 255.0f ? value : 255.0f;
    return (uint8_t)(int32_t)((most > 0.0f ? most : 0.0f) + 0.5f);
}

/* The same, bicubically; ``weights`` by phase. */
INLINE void widen_cubic(const Token *t, int32_t row, int32_t factor, float (*weights)[TAPS], float *restrict out)
{
    float near[PATCH + TAPS]; /* with two neighbours at each end */
    const float *samples = t->samples + (int64_t)least(greatest(row, 0), t->rows - 1) * t->columns;
    for (int32_t x = 0; x < PATCH + TAPS; x++) near[x] = samples[least(greatest(t->left + x - 2, 0), t->columns - 1)];
    for (int32_t x = 0; x < PATCH; x++)
        for (int32_t phase = 0; phase < factor; phase++) {
            const float *first = near + x + (phase >= factor / 2);
            out[x * factor + phase] = weighted(first[0], first[1], first[2], first[3], weights[phase]);
        }
}

INLINE void enlarge_cubic(const Token *t, int32_t factor)
{
    float rows[TAPS][WIDEST], weights[WIDEST / PATCH][TAPS];
    for (int32_t phase = 0; phase < factor; phase++)
        cubic_weights(((float)phase + 0.5f) / (float)factor - (phase < factor / 2 ? -0.5f : 0.5f), weights[phase]);
    for (int32_t row = -2; row < TAPS - 2; row++) widen_cubic(t, t->top + row, factor, weights, rows[row + 2]);
    for (int32_t y = 0; y < PATCH * factor; y++) {
        int32_t phase = y % factor, first = y / factor + (phase >= factor / 2); /* of four rows, from row -2 */
        if (phase == factor / 2) widen_cubic(t, t->top + first + 1, factor, weights, rows[(first + 3) % TAPS]);
        const float *a = rows[first % TAPS], *b = rows[(first + 1) % TAPS];
        const float *c = rows[(first + 2) % TAPS], *d = rows[(first + 3) % TAPS];
        uint8_t *out = t->onto + y * t->stride;
        for (int32_t x = 0; x < PATCH * factor; x++) out[x] = to_byte(weighted(a[x], b[x], c[x], d[x], weights[phase]));
    }
}

FOR_EACH_PROCESSOR
static void paint_enlarged_cubic(const Token *t, int32_t factor)
{
    if (factor == 2) enlarge_cubic(t, 2);
    else if (factor == 4) enlarge_cubic(t, 4);
    else if (factor == 8) enlarge_cubic(t, 8);
    else enlarge_cubic(t, 16);
}

FOR_EACH_PROCESSOR
static void paint_enlarged(const Token *t, int32_t factor)
{
    if (factor == 2) enlarge(t, 2);
    else if (factor == 4) enlarge(t, 4);
    else if (factor == 8) enlarge(t, 8);
    else enlarge(t, 16);
}

/* One token in one plane. If it is as fine as the base or finer, the base is copied. */
static void paint(const Pyramid *from, const Plane *onto, int32_t lod, int32_t row, int32_t column, int32_t cubic)
{
    int32_t side = PATCH << lod >> from->base, top = row * side, left = column * side, step = lod - from->base;
    uint8_t *pixels = (uint8_t *)onto->samples + top * onto->stride + left;
    if (step > 0) {
        Token token = {from->coarse[step - 1],
                       from->rows >> step,
                       (int32_t)(from->stride >> step),
                       row * PATCH,
                       column * PATCH,
                       pixels,
                       onto->stride};
        if (cubic) paint_enlarged_cubic(&token, 1 << step);
        else paint_enlarged(&token, 1 << step);
    } else {
        for (int32_t y = 0; y < side; y++)
            memcpy(pixels + y * onto->stride, from->pixels + (top + y) * from->stride + left, (size_t)side);
    }
}

/* ``onto`` are the planes of the reader's picture; all tokens lie inside them. */
EXPORT void paint_tokens(const Pyramid from[3], const Plane onto[3], const uint8_t *lod, const int32_t *row,
                         const int32_t *column, int32_t count, int32_t cubic)
{
    for (int32_t plane = 0; plane < 3; plane++)
        for (int32_t i = 0; i < count; i++) paint(&from[plane], &onto[plane], lod[i], row[i], column[i], cubic);
}

/* The pixel (y, x) of a level enlarged bicubically by ``factor``. */
static float cubic_at(const float *samples, int32_t rows, int32_t columns, int32_t factor, int32_t y, int32_t x)
{
    int32_t above = y / factor - (y % factor < factor / 2), before = x / factor - (x % factor < factor / 2);
    float down[TAPS], across[TAPS], column[TAPS];
    cubic_weights(((float)(y % factor) + 0.5f) / (float)factor - 0.5f - (float)(above - y / factor), down);
    cubic_weights(((float)(x % factor) + 0.5f) / (float)factor - 0.5f - (float)(before - x / factor), across);
    for (int32_t i = 0; i < TAPS; i++) {
        const float *row = samples + (int64_t)least(greatest(above + i - 1, 0), rows - 1) * columns;
        float near[TAPS];
        for (int32_t k = 0; k < TAPS; k++) near[k] = row[least(greatest(before + k - 1, 0), columns - 1)];
        column[i] = weighted(near[0], near[1], near[2], near[3], across);
    }
    return weighted(column[0], column[1], column[2], column[3], down);
}

/* One token of a level 2^step times as coarse as the plane; it may extend beyond the plane's edge. */
EXPORT void paint_upper(const float *samples, int32_t rows, int32_t columns, const Plane *onto, int32_t step,
                        int32_t row, int32_t column, int32_t cubic)
{
    int32_t factor = 1 << step, top = row * PATCH * factor, left = column * PATCH * factor;
    int32_t bottom = least(top + PATCH * factor, onto->height), right = least(left + PATCH * factor, onto->width);
    for (int32_t y = top; cubic && y < bottom; y++)
        for (int32_t x = left; x < right; x++)
            ((uint8_t *)onto->samples)[y * onto->stride + x] = to_byte(cubic_at(samples, rows, columns, factor, y, x));
    for (int32_t y = top; !cubic && y < bottom; y++) {
        int32_t above = y / factor - (y % factor < factor / 2);
        float down = ((float)(y % factor) + 0.5f) / (float)factor - 0.5f - (float)(above - y / factor);
        const float *upper = samples + (int64_t)least(greatest(above, 0), rows - 1) * columns;
        const float *lower = samples + (int64_t)least(above + 1, rows - 1) * columns;
        uint8_t *out = (uint8_t *)onto->samples + y * onto->stride;
        for (int32_t x = left; x < right; x++) {
            int32_t before = x / factor - (x % factor < factor / 2);
            int32_t near = least(greatest(before, 0), columns - 1), far = least(before + 1, columns - 1);
            float across = ((float)(x % factor) + 0.5f) / (float)factor - 0.5f - (float)(before - x / factor);
            float first = upper[near] * (1.0f - across) + upper[far] * across;
            float second = lower[near] * (1.0f - across) + lower[far] * across;
            out[x] = (uint8_t)(int32_t)(first * (1.0f - down) + second * down + 0.5f);
        }
    }
}
