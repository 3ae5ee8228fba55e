/* What differs, cell by cell, from the picture before and from what rested there before anything came: a picture without
   the things that move, learnt where nothing stirs. */

#include "native.h"
#include "spec/attributes.h"

enum {
    SIDE = CELL >> REST_LEVEL,
    SAMPLES = SIDE * SIDE,
    PART = 64 /* cells side by side that are compared together, in vector instructions */
};

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

INLINE uint8_t rounded(float value) { return (uint8_t)(int32_t)(value + 0.5f); } /* of a mean of bytes */

INLINE uint8_t differ(uint8_t a, uint8_t b, uint8_t step) { return (uint8_t)(a > b ? a - b : b - a) > step; }

/* One row of samples from ``at`` on. ``settles`` is 0 or 1 by sample; ``stirs`` and ``moved`` count those that differ. */
INLINE void compare_row(
    const Rest *r, int64_t at, int32_t samples, const uint8_t *settles, uint8_t *stirs, uint8_t *moved)
{
    uint8_t other[PART * SIDE] = {0}, away[PART * SIDE] = {0}, step = (uint8_t)least(r->step, 255);
    for (int32_t plane = 0; plane < 3; plane++) {
        const float *picture = r->now[plane] + at;
        uint8_t *restrict last = r->last[plane] + at, *restrict rest = r->rest[plane] + at;
        for (int32_t x = 0; x < samples; x++) {
            uint8_t now = rounded(picture[x]), kept = settles[x] ? last[x] : rest[x];
            other[x] |= differ(now, last[x], step);
            away[x] |= differ(now, kept, step);
            rest[x] = kept;
            last[x] = now;
        }
    }
    for (int32_t x = 0; x < samples; x++) {
        stirs[x] += other[x];
        moved[x] += away[x];
    }
}

/* ``cells`` cells, at most PART, from ``column`` on. */
INLINE void compare(const Rest *r, int32_t row, int32_t column, int32_t cells)
{
    int64_t first = (int64_t)row * r->columns + column, width = (int64_t)r->columns * SIDE;
    uint8_t settles[PART * SIDE], stirs[PART * SIDE] = {0}, moved[PART * SIDE] = {0};
    for (int32_t x = 0; x < cells * SIDE; x++) settles[x] = r->frame - r->stirred[first + x / SIDE] > r->patience;
    for (int32_t y = 0; y < SIDE; y++) {
        int64_t at = (row * SIDE + y) * width + column * SIDE;
        compare_row(r, at, cells * SIDE, settles, stirs, moved);
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        int32_t stirring = 0, moving = 0;
        for (int32_t x = cell * SIDE; x < (cell + 1) * SIDE; x++) {
            stirring += stirs[x];
            moving += moved[x];
        }
        r->known[first + cell] |= settles[cell * SIDE];
        if (stirring) r->stirred[first + cell] = r->frame;
        r->stirs[first + cell] = (float)stirring / SAMPLES;
        r->moved[first + cell] = r->known[first + cell] ? (float)moving / SAMPLES : -1.0f;
    }
}

/* Compare the cells of the tiles of ``written`` with what they held, before it is forgotten. */
FOR_EACH_PROCESSOR EXPORT void compare_rest(const Rest *r, const uint8_t *written)
{
    for (int32_t row = 0; row < r->rows; row++) {
        const uint8_t *tiles = written + row / CELLS_PER_TILE * (r->columns / CELLS_PER_TILE);
        for (int32_t column = 0; column < r->columns;) {
            int32_t end = column;
            while (end < least(column + PART, r->columns) && tiles[end / CELLS_PER_TILE]) end++;
            if (end > column) compare(r, row, column, end - column);
            column = greatest(end, column + 1);
        }
    }
}
