/* Background model: frame differences and a learned static background, per cell. */

#include "native.h"
#include "spec/attributes.h"

enum {
    SIDE = CELL >> BACKGROUND_LEVEL,
    SAMPLES = SIDE * SIDE,
    PART = 64 /* cells processed together, by vector instructions */
};

typedef struct {
    const float *now[3];    /* luma, Cb, Cr of BACKGROUND_LEVEL, in 8-bit units */
    uint8_t *last[3];       /* the previous frame, rounded */
    uint8_t *background[3]; /* valid where ``known`` is set */
    uint8_t *known;         /* [grid]: the cell's background has been learned */
    int32_t *last_change;   /* [grid]: the frame in which the cell last changed */
    float *difference;      /* [grid]: share of the samples that differ from the previous frame */
    float *foreground;      /* [grid]: share that differs from the background; -1 where that is unknown */
    int32_t rows, columns;  /* of the Grid */
    int32_t frame;
    int32_t learning_frames; /* without a change, after which a cell becomes background */
    int32_t step;            /* largest difference, in 8-bit units, that counts as no change */
} Background;

INLINE uint8_t rounded(float value) { return (uint8_t)(int32_t)(value + 0.5f); } /* of a mean of bytes */

INLINE uint8_t differ(uint8_t a, uint8_t b, uint8_t step) { return (uint8_t)(a > b ? a - b : b - a) > step; }

/* One row of samples from ``at`` on. Where ``learns`` is set, the previous sample becomes background. ``difference``
   and ``foreground`` count the samples that differ, by column. */
INLINE void compare_row(const Background *b, int64_t at, int32_t samples, const uint8_t *learns, uint8_t *difference,
                        uint8_t *foreground)
{
    uint8_t other[PART * SIDE] = {0}, away[PART * SIDE] = {0}, step = (uint8_t)least(b->step, 255);
    for (int32_t plane = 0; plane < 3; plane++) {
        const float *picture = b->now[plane] + at;
        uint8_t *restrict last = b->last[plane] + at, *restrict background = b->background[plane] + at;
        for (int32_t x = 0; x < samples; x++) {
            uint8_t now = rounded(picture[x]), kept = learns[x] ? last[x] : background[x];
            other[x] |= differ(now, last[x], step);
            away[x] |= differ(now, kept, step);
            background[x] = kept;
            last[x] = now;
        }
    }
    for (int32_t x = 0; x < samples; x++) {
        difference[x] += other[x];
        foreground[x] += away[x];
    }
}

/* ``cells`` cells, at most PART, from ``column`` on. */
INLINE void compare(const Background *b, int32_t row, int32_t column, int32_t cells)
{
    int64_t first = (int64_t)row * b->columns + column, width = (int64_t)b->columns * SIDE;
    uint8_t learns[PART * SIDE], difference[PART * SIDE] = {0}, foreground[PART * SIDE] = {0};
    for (int32_t x = 0; x < cells * SIDE; x++)
        learns[x] = b->frame - b->last_change[first + x / SIDE] > b->learning_frames;
    for (int32_t y = 0; y < SIDE; y++) {
        int64_t at = (row * SIDE + y) * width + column * SIDE;
        compare_row(b, at, cells * SIDE, learns, difference, foreground);
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        int32_t changed = 0, differing = 0;
        for (int32_t x = cell * SIDE; x < (cell + 1) * SIDE; x++) {
            changed += difference[x];
            differing += foreground[x];
        }
        b->known[first + cell] |= learns[cell * SIDE];
        if (changed) b->last_change[first + cell] = b->frame;
        b->difference[first + cell] = (float)changed / SAMPLES;
        b->foreground[first + cell] = b->known[first + cell] ? (float)differing / SAMPLES : -1.0f;
    }
}

/* Compare the cells of the tiles of ``written`` with the previous frame and the background, and update both. */
FOR_EACH_PROCESSOR
EXPORT void update_background(const Background *b, const uint8_t *written)
{
    for (int32_t row = 0; row < b->rows; row++) {
        const uint8_t *tiles = written + row / CELLS_PER_TILE * (b->columns / CELLS_PER_TILE);
        for (int32_t column = 0; column < b->columns;) {
            int32_t end = column;
            while (end < least(column + PART, b->columns) && tiles[end / CELLS_PER_TILE]) end++;
            if (end > column) compare(b, row, column, end - column);
            column = greatest(end, column + 1);
        }
    }
}
