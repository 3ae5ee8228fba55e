/* Background model: frame differences and a learned static background, per cell. What a change of the light explains
   is no difference; see light.h. */

#include <string.h>

#include "light.h"
#include "native.h"
#include "spec/attributes.h"

enum {
    SIDE = CELL >> BACKGROUND_LEVEL,
    SAMPLES = SIDE * SIDE,
    PART = 64,                     /* cells processed together, by vector instructions */
    UNIT = 8,                      /* cells of which all are processed where the tile of one is written */
    WIDE = PART + 2 * WINDOW_REACH /* with the cells at both ends that windows reach */
};

/* Bits of ``coloured``: the chroma of a cell differs from the previous frame, from the background. */
enum { FROM_LAST = 1, FROM_LEARNED = 2 };

/* Bits: the previous sample becomes background; the sample is not written. */
enum { LEARNS = 1, STAYS = 2 };

typedef struct {
    const float *now[3];    /* luma, Cb, Cr of BACKGROUND_LEVEL, in 8-bit units */
    uint8_t *last[3];       /* the previous frame, rounded */
    uint8_t *background[3]; /* the previous frame where ``known`` is not set */
    uint8_t *known;         /* [grid]: the cell's background has been learned */
    uint8_t *coloured;      /* [grid] */
    int32_t *last_change;   /* [grid]: the frame in which the cell last changed */
    int32_t *moments;       /* [MOMENTS][grid] */
    float *difference;      /* [grid]: share of the samples that differ from the previous frame */
    float *foreground;      /* [grid]: share that differs from the background; -1 where that is unknown */
    int32_t rows, columns;  /* of the Grid */
    int32_t frame;
    int32_t learning_frames; /* without a change, after which a cell becomes background */
    int32_t step;            /* largest difference, in 8-bit units, that counts as no change */
    float unexplained;       /* see is_light */
} Background;

/* What a run of cells shows, by column of samples. */
typedef struct {
    uint8_t difference[PART * SIDE], foreground[PART * SIDE]; /* samples that differ */
    uint8_t recoloured[PART * SIDE], tinted[PART * SIDE];     /* whether the chroma of any differs */
    uint8_t before[SIDE][PART * SIDE];                        /* luma of the previous frame */
} Columns;

INLINE uint8_t rounded(float value) { return (uint8_t)(int32_t)(value + 0.5f); } /* of a mean of bytes */

INLINE uint8_t differ(uint8_t a, uint8_t b, uint8_t step) { return (uint8_t)(a > b ? a - b : b - a) > step; }

/* Row ``y`` of the cells, samples from ``at`` on. ``how``: which samples learn the previous one as background, and
   which stay as they are. */
INLINE void compare_row(const Background *b, int32_t y, int64_t at, int32_t samples, const uint8_t *how, Columns *sums)
{
    uint8_t other[PART * SIDE], away[PART * SIDE], step = (uint8_t)least(b->step, 255);
    memset(other, 0, (size_t)samples);
    memset(away, 0, (size_t)samples);
    memcpy(sums->before[y], b->last[0] + at, (size_t)samples);
    for (int32_t plane = 2; plane >= 0; plane--) {
        const float *picture = b->now[plane] + at;
        uint8_t *restrict last = b->last[plane] + at, *restrict background = b->background[plane] + at;
        for (int32_t x = 0; x < samples; x++) {
            uint8_t stays = how[x] & STAYS ? 255 : 0, now = (rounded(picture[x]) & ~stays) | (last[x] & stays);
            uint8_t kept = how[x] & LEARNS ? last[x] : background[x];
            other[x] |= differ(now, last[x], step);
            away[x] |= differ(now, kept, step);
            background[x] = kept;
            last[x] = now;
        }
        for (int32_t x = 0; plane == 1 && x < samples; x++) { /* both planes of chroma are compared */
            sums->recoloured[x] |= other[x];
            sums->tinted[x] |= away[x];
        }
    }
    for (int32_t x = 0; x < samples; x++) {
        sums->difference[x] += other[x];
        sums->foreground[x] += away[x];
    }
}

/* What differs in each of a run of cells, from ``first`` on: foreground where ``written``, nothing elsewhere. */
INLINE void count_cells(const Background *b, int64_t first, int32_t cells, const uint8_t *written, const Columns *sums)
{
    for (int32_t cell = 0; cell < cells; cell++) {
        int32_t changed = 0, differing = 0, recoloured = 0, tinted = 0;
        for (int32_t x = cell * SIDE; x < (cell + 1) * SIDE; x++) {
            changed += sums->difference[x];
            differing += sums->foreground[x];
            recoloured |= sums->recoloured[x];
            tinted |= sums->tinted[x];
        }
        b->coloured[first + cell] = (uint8_t)(recoloured * FROM_LAST | tinted * FROM_LEARNED);
        b->difference[first + cell] = (float)changed / SAMPLES;
        float foreground = b->known[first + cell] ? (float)differing / SAMPLES : -1.0f;
        b->foreground[first + cell] = written[cell] ? foreground : b->foreground[first + cell];
    }
}

/* The new moments of a run of cells whose first sample is ``at``; ``how``, by column of samples. */
INLINE void sum_cells(const Background *b, int64_t first, int64_t at, int32_t cells, const uint8_t *how,
                      const Columns *sums)
{
    int64_t all = (int64_t)b->rows * b->columns, width = (int64_t)b->columns * SIDE;
    int32_t sum[PART * SIDE], squares[PART * SIDE], lasts[PART * SIDE], learned[PART * SIDE];
    const uint8_t *now = b->last[0] + at, *background = b->background[0] + at;
    for (int32_t x = 0; x < cells * SIDE; x++) {
        sum[x] = squares[x] = lasts[x] = learned[x] = 0;
        for (int32_t y = 0; y < SIDE; y++) {
            int32_t value = now[y * width + x];
            sum[x] += value;
            squares[x] += value * value;
            lasts[x] += value * sums->before[y][x];
            learned[x] += value * background[y * width + x];
        }
    }
    int32_t *moments = b->moments + first;
    for (int32_t cell = 0; cell < cells; cell++) {
        int32_t x = cell * SIDE, old = moments[NOW * all + cell], old_squares = moments[NOW_SQUARES * all + cell];
        moments[LAST * all + cell] = old;
        moments[LAST_SQUARES * all + cell] = old_squares;
        moments[LEARNED * all + cell] = how[x] & LEARNS ? old : moments[LEARNED * all + cell];
        moments[LEARNED_SQUARES * all + cell] = how[x] & LEARNS ? old_squares : moments[LEARNED_SQUARES * all + cell];
        moments[NOW * all + cell] = sum[x] + sum[x + 1] + sum[x + 2] + sum[x + 3];
        moments[NOW_SQUARES * all + cell] = squares[x] + squares[x + 1] + squares[x + 2] + squares[x + 3];
        moments[NOW_LAST * all + cell] = lasts[x] + lasts[x + 1] + lasts[x + 2] + lasts[x + 3];
        moments[NOW_LEARNED * all + cell] = learned[x] + learned[x + 1] + learned[x + 2] + learned[x + 3];
    }
}

/* ``cells`` cells, at most PART, from ``column`` on. Those that are not ``written`` stay as they are, as by keep(). */
INLINE void compare(const Background *b, int32_t row, int32_t column, int32_t cells, const uint8_t *written)
{
    int64_t first = (int64_t)row * b->columns + column, width = (int64_t)b->columns * SIDE;
    int64_t at = row * SIDE * width + column * SIDE;
    size_t samples = (size_t)cells * SIDE;
    uint8_t how[PART * SIDE];
    Columns sums;
    for (int32_t cell = 0; cell < cells; cell++) {
        uint8_t rests = written[cell] & (b->frame - b->last_change[first + cell] > b->learning_frames);
        memset(how + cell * SIDE, (rests | !b->known[first + cell]) * LEARNS | !written[cell] * STAYS, SIDE);
        b->known[first + cell] |= rests;
    }
    memset(sums.difference, 0, samples);
    memset(sums.foreground, 0, samples);
    memset(sums.recoloured, 0, samples);
    memset(sums.tinted, 0, samples);
    for (int32_t y = 0; y < SIDE; y++) compare_row(b, y, at + y * width, cells * SIDE, how, &sums);
    count_cells(b, first, cells, written, &sums);
    sum_cells(b, first, at, cells, how, &sums);
}

/* The moments of cells that stay as they are: the previous frame is this one. */
INLINE void keep(const Background *b, int64_t first, int32_t cells)
{
    int64_t all = (int64_t)b->rows * b->columns;
    int32_t *now = b->moments + NOW * all + first, *squares = b->moments + NOW_SQUARES * all + first;
    int32_t *learned = b->moments + LEARNED * all + first,
            *learned_squares = b->moments + LEARNED_SQUARES * all + first;
    int32_t *product = b->moments + NOW_LEARNED * all + first;
    size_t bytes = (size_t)cells * sizeof *now;
    memcpy(b->moments + LAST * all + first, now, bytes);
    memcpy(b->moments + LAST_SQUARES * all + first, squares, bytes);
    memcpy(b->moments + NOW_LAST * all + first, squares, bytes);
    for (int32_t cell = 0; cell < cells; cell++) {
        int32_t known = b->known[first + cell];
        learned[cell] = known ? learned[cell] : now[cell];
        learned_squares[cell] = known ? learned_squares[cell] : squares[cell];
        product[cell] = known ? product[cell] : squares[cell];
    }
}

/* Moments over the windows of a run of cells. */
typedef struct {
    int32_t around[MOMENTS][PART];        /* the 3x3 around each cell */
    int32_t corner[2][MOMENTS][PART + 1]; /* the 2x2 around the upper and the lower left corner of each, and the last */
    int32_t across[WIDE];                 /* 1 for columns of cells inside the picture, from the one before on */
    int32_t tall[2];                      /* rows of cells inside it, of those of ``corner`` */
} Windows;

/* The windows of ``cells`` cells, at most PART, from ``column`` on. */
INLINE void sum_windows(const Background *b, int32_t row, int32_t column, int32_t cells, Windows *windows)
{
    int64_t all = (int64_t)b->rows * b->columns;
    int32_t left = greatest(column - WINDOW_REACH, 0), right = least(column + cells + WINDOW_REACH, b->columns);
    int32_t above = row > 0, below = row + 1 < b->rows, shift = left - column + WINDOW_REACH;
    for (int32_t x = 0; x < cells + 2; x++) windows->across[x] = x >= shift && x < shift + right - left;
    windows->tall[0] = above + 1;
    windows->tall[1] = below + 1;
    for (int32_t moment = 0; moment < MOMENTS; moment++) {
        const int32_t *own = b->moments + moment * all + (int64_t)row * b->columns + left;
        int32_t upper[WIDE], lower[WIDE], three[WIDE];
        upper[0] = lower[0] = three[0] = upper[cells + 1] = lower[cells + 1] = three[cells + 1] = 0;
        for (int32_t x = 0; x < right - left; x++) {
            int32_t over = above ? own[x - b->columns] : 0, under = below ? own[x + b->columns] : 0;
            upper[x + shift] = over + own[x];
            lower[x + shift] = own[x] + under;
            three[x + shift] = over + own[x] + under;
        }
        for (int32_t x = 0; x <= cells; x++) {
            windows->corner[0][moment][x] = upper[x] + upper[x + 1];
            windows->corner[1][moment][x] = lower[x] + lower[x + 1];
        }
        for (int32_t x = 0; x < cells; x++) windows->around[moment][x] = three[x] + three[x + 1] + three[x + 2];
    }
}

/* Whether light explains the change of a window from the previous frame, and from the background: bits of ``coloured``.
   ``m``: its moments, ``stride`` numbers apart. */
INLINE int32_t explained(const int32_t *m, int32_t stride, int32_t count, float unexplained, int32_t plain)
{
    int32_t now = m[NOW * stride], squares = m[NOW_SQUARES * stride];
    int32_t last = is_light(count, now, squares, m[LAST * stride], m[LAST_SQUARES * stride], m[NOW_LAST * stride],
                            unexplained, plain);
    int32_t learned = is_light(count, now, squares, m[LEARNED * stride], m[LEARNED_SQUARES * stride],
                               m[NOW_LEARNED * stride], unexplained, plain);
    return last * FROM_LAST | learned * FROM_LEARNED;
}

/* Take the changes that light explains out of those of a run of cells that are ``written``. */
INLINE void without_light(const Background *b, int32_t row, int32_t column, int32_t cells, const uint8_t *written)
{
    Windows windows;
    int32_t corner[2][PART + 1], around[PART];
    const int32_t *across = windows.across;
    sum_windows(b, row, column, cells, &windows);
    for (int32_t side = 0; side < 2; side++)
        for (int32_t x = 0; x <= cells; x++) {
            int32_t count = SAMPLES * windows.tall[side] * (across[x] + across[x + 1]);
            corner[side][x] = explained(&windows.corner[side][0][x], PART + 1, count, b->unexplained, 0);
        }
    for (int32_t x = 0; x < cells; x++) {
        int32_t count = SAMPLES * (windows.tall[0] + windows.tall[1] - 1) * (across[x] + 1 + across[x + 2]);
        around[x] = explained(&windows.around[0][x], PART, count, b->unexplained, 1);
    }
    float *difference = b->difference + (int64_t)row * b->columns + column;
    float *foreground = b->foreground + (int64_t)row * b->columns + column;
    const uint8_t *coloured = b->coloured + (int64_t)row * b->columns + column;
    for (int32_t x = 0; x < cells; x++) {
        int32_t lit = around[x] | corner[0][x] | corner[0][x + 1] | corner[1][x] | corner[1][x + 1];
        lit &= written[x] ? ~coloured[x] : 0;
        difference[x] = lit & FROM_LAST ? 0.0f : difference[x];
        foreground[x] = lit & FROM_LEARNED && foreground[x] > 0.0f ? 0.0f : foreground[x];
    }
}

/* Take the changes of the light out of those of a run of cells that are ``written``, and note which cells changed. */
INLINE void settle(const Background *b, int32_t row, int32_t column, int32_t cells, const uint8_t *written)
{
    int64_t first = (int64_t)row * b->columns + column;
    float *difference = b->difference + first, *foreground = b->foreground + first;
    const uint8_t *coloured = b->coloured + first;
    int32_t any = 0, grey = 0;
    for (int32_t x = 0; x < cells; x++) {
        int32_t differs = (difference[x] > 0.0f) * FROM_LAST | (foreground[x] > 0.0f) * FROM_LEARNED;
        any |= differs;
        grey |= written[x] ? differs & ~coloured[x] : 0; /* light does not change the chroma */
    }
    if (!any) return;
    if (grey) without_light(b, row, column, cells, written);
    int32_t *last_change = b->last_change + first;
    for (int32_t x = 0; x < cells; x++) last_change[x] = difference[x] > 0.0f ? b->frame : last_change[x];
}

/* Whether any of the cells from ``column`` on, UNIT or as many as there are, lies in a written tile of the row's. */
INLINE int32_t any_written(const uint8_t *tiles, int32_t column, int32_t columns)
{
    int32_t any = 0;
    for (int32_t x = column; x < least(column + UNIT, columns); x += CELLS_PER_TILE) any |= tiles[x / CELLS_PER_TILE];
    return any;
}

/* The end of the run of at most PART cells from ``column`` on, of units that all have written cells, or all none. */
INLINE int32_t run_end(const uint8_t *tiles, int32_t column, int32_t columns)
{
    int32_t end = column + UNIT, any = any_written(tiles, column, columns);
    while (end < least(column + PART, columns) && any_written(tiles, end, columns) == any) end += UNIT;
    return least(end, columns);
}

typedef enum { COMPARE, SETTLE } Pass;

/* One pass over a row of cells, whose tiles are ``tiles``. */
INLINE void process_row(const Background *b, int32_t row, const uint8_t *tiles, Pass pass)
{
    uint8_t written[PART];
    for (int32_t column = 0, end; column < b->columns; column = end) {
        int32_t cells = (end = run_end(tiles, column, b->columns)) - column;
        if (any_written(tiles, column, b->columns)) {
            for (int32_t x = 0; x < cells; x++) written[x] = tiles[(column + x) / CELLS_PER_TILE];
            if (pass == COMPARE) compare(b, row, column, cells, written);
            else settle(b, row, column, cells, written);
        } else if (pass == COMPARE) keep(b, (int64_t)row * b->columns + column, cells);
    }
}

/* Compare the cells of the tiles of ``written`` with the previous frame and the background, and update both. */
FOR_EACH_PROCESSOR
EXPORT void update_background(const Background *b, const uint8_t *written)
{
    int32_t across = b->columns / CELLS_PER_TILE;
    for (int32_t row = 0; row < b->rows; row++) process_row(b, row, written + row / CELLS_PER_TILE * across, COMPARE);
    for (int32_t row = 0; row < b->rows; row++) process_row(b, row, written + row / CELLS_PER_TILE * across, SETTLE);
}
