/* What differs, cell by cell, from the picture before and from what rested there before anything came: a picture without
   the things that move, learnt where nothing stirs. */

#include "native.h"

enum { REST_LEVEL = 2, SIDE = CELL >> REST_LEVEL, SAMPLES = SIDE * SIDE };

typedef struct {
    const float *now[3];  /* luma, Cb, Cr of REST_LEVEL, in 8-bit units */
    uint8_t *last[3];     /* the same as it was, rounded */
    uint8_t *rest[3];     /* the same as it rested, where that is known */
    uint8_t *known;       /* [grid] */
    int32_t *stirred;     /* [grid]: the frame in which the cell last changed */
    float *stirs, *moved; /* [grid]: shares of the samples; moved is -1 where no rest is known */
    int32_t rows, columns; /* of the Grid */
    int32_t frame;
    int32_t patience;     /* frames without a change until a cell rests */
    int32_t step;         /* difference in 8-bit units up to which samples are alike */
} Rest;

static inline int32_t differ(int32_t a, int32_t b, int32_t step) { return a - b > step || b - a > step; }

static inline uint8_t rounded(float value) { return (uint8_t)least(greatest((int32_t)(value + 0.5f), 0), 255); }

static void compare(const Rest *r, int32_t row, int32_t column)
{
    int64_t cell = (int64_t)row * r->columns + column, width = (int64_t)r->columns * SIDE;
    int32_t settles = r->frame - r->stirred[cell] > r->patience, stirs = 0, moved = 0;
    if (settles) r->known[cell] = 1;
    for (int32_t y = 0; y < SIDE; y++)
        for (int32_t x = 0; x < SIDE; x++) {
            int64_t at = (row * SIDE + y) * width + column * SIDE + x;
            int32_t other = 0, away = 0;
            for (int32_t plane = 0; plane < 3; plane++) {
                uint8_t now = rounded(r->now[plane][at]), last = r->last[plane][at];
                if (settles) r->rest[plane][at] = last;
                other |= differ(now, last, r->step);
                away |= differ(now, r->rest[plane][at], r->step);
                r->last[plane][at] = now;
            }
            stirs += other;
            moved += away;
        }
    if (stirs) r->stirred[cell] = r->frame;
    r->stirs[cell] = (float)stirs / SAMPLES;
    r->moved[cell] = r->known[cell] ? (float)moved / SAMPLES : -1.0f;
}

/* Compare the cells of the tiles of ``written`` with what they held, before it is forgotten. */
EXPORT void compare_rest(const Rest *r, const uint8_t *written)
{
    for (int32_t row = 0; row < r->rows; row++)
        for (int32_t column = 0; column < r->columns; column++)
            if (written[(row / CELLS_PER_TILE) * (r->columns / CELLS_PER_TILE) + column / CELLS_PER_TILE])
                compare(r, row, column);
}
