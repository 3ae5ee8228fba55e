/* The channels with local reach, reduced to the Grid as they are computed: one value per cell, for all cells within
   reach of a change. Runs of cells in a row are processed together, one row of samples at a time.

   Edges are the magnitude of 3x3 Sobel / 4 in sqrt(Y) and sqrt(1 - Y); scaling, square root and clipping commute with
   the maximum, so they are applied once per cell. Edge samples are repeated beyond the picture. */

#include "native.h"
#include "spec/local_channels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SURROUND = 1 << (TOP_LEVEL - SALIENCY_LEVEL) };

typedef struct {
    const void *luma;              /* at the analysis level: uint8 at level 0, else float32, in 8-bit units */
    const float *low;              /* luma of level 3 */
    const float *centre[3];        /* luma, Cb, Cr of level 2 */
    const float *surround[3];      /* the same of level 4 */
    float *edges, *edges_inverted; /* [grid], as the next ones */
    float *highpass, *lowpass, *saliency;
    int32_t level;                /* the analysis level */
    int32_t rows, columns;        /* of the Grid */
    int32_t margin;               /* reach of a change, in cells */
    float black, span;            /* of luma, in 8-bit units */
    float luma_gain, chroma_gain; /* of the saliency */
} Channels;

/* Rows of samples over one run of cells. ``light`` and ``dark`` have an extra sample at each end. */
typedef struct {
    float *light[3], *dark[3]; /* sqrt(Y), sqrt(1 - Y): three rows */
    float *plain, *low, *blended;
    float *most_light, *most_dark, *most_detail, *sum_low, *sum_contrast;
    float *surround[3];
} Rows;

static inline float clipped(float value, float black, float span)
{
    value -= black;
    value = value > 0.0f ? value : 0.0f;
    return value < span ? value : span;
}

/* ``count`` samples of row ``y`` from ``left`` (may be -1), as luma above black; coordinates are clamped. */
FOR_EACH_PROCESSOR
static void read_luma(const Channels *c, int32_t y, int32_t left, int32_t count, float *restrict out)
{
    int32_t side = CELL >> c->level, height = c->rows * side, width = c->columns * side;
    int64_t row = (int64_t)least(greatest(y, 0), height - 1) * width;
    int32_t first = left < 0, last = count - (left + count > width);
    if (c->level) {
        const float *samples = (const float *)c->luma + row + left;
        for (int32_t x = first; x < last; x++) out[x] = clipped(samples[x], c->black, c->span);
    } else {
        const uint8_t *samples = (const uint8_t *)c->luma + row + left;
        for (int32_t x = first; x < last; x++) out[x] = clipped((float)samples[x], c->black, c->span);
    }
    if (first) out[0] = out[1];
    if (last < count) out[count - 1] = out[count - 2];
}

FOR_EACH_PROCESSOR
static void take_roots(const float *restrict light, int32_t count, float span, float *restrict root,
                       float *restrict inverse)
{
    for (int32_t x = 0; x < count; x++) {
        root[x] = sqrtf(light[x]);
        inverse[x] = sqrtf(span - light[x]);
    }
}

/* most[x] = max(most[x], |grad|^2) of the middle one of three rows, which have an extra sample at each end. */
FOR_EACH_PROCESSOR
static void add_gradients(const float *restrict above, const float *restrict here, const float *restrict below,
                          int32_t count, float *restrict most)
{
    for (int32_t x = 0; x < count; x++) {
        float across = (above[x + 2] - above[x]) + 2.0f * (here[x + 2] - here[x]) + (below[x + 2] - below[x]);
        float down = (below[x] - above[x]) + 2.0f * (below[x + 1] - above[x + 1]) + (below[x + 2] - above[x + 2]);
        float square = (across * across + down * down) * 0.0625f;
        most[x] = square > most[x] ? square : most[x];
    }
}

/* The two rows of a small picture [height, width], and the weight of the second, that make row ``y`` of the picture
   enlarged by ``factor`` with aligned sample centres. */
typedef struct {
    const float *upper, *lower;
    float share;
} Pair;

static Pair rows_at(const float *small, int32_t height, int32_t width, int32_t y, int32_t factor)
{
    float place = ((float)y + 0.5f) / (float)factor - 0.5f, base = floorf(place);
    return (Pair){small + (int64_t)least(greatest((int32_t)base, 0), height - 1) * width,
                  small + (int64_t)least(greatest((int32_t)base + 1, 0), height - 1) * width, place - base};
}

/* out[0 .. count + 1] = the pair's blend in columns left - 1 .. left + count; edge samples are repeated. */
FOR_EACH_PROCESSOR
static void blend(Pair p, int32_t width, int32_t left, int32_t count, float *restrict out)
{
    const float *upper = p.upper + left, *lower = p.lower + left;
    for (int32_t x = 0; x < count; x++) out[x + 1] = upper[x] * (1.0f - p.share) + lower[x] * p.share;
    out[0] = left > 0 ? upper[-1] * (1.0f - p.share) + lower[-1] * p.share : out[1];
    out[count + 1] = left + count < width ? upper[count] * (1.0f - p.share) + lower[count] * p.share : out[count];
}

/* The same for luma above black. */
FOR_EACH_PROCESSOR
static void blend_luma(Pair p, int32_t width, int32_t left, int32_t count, float black, float span, float *restrict out)
{
    int32_t first = left > 0 ? 0 : 1, last = left + count < width ? count + 2 : count + 1;
    const float *upper = p.upper + left - 1, *lower = p.lower + left - 1;
    for (int32_t x = first; x < last; x++)
        out[x] = clipped(upper[x], black, span) * (1.0f - p.share) + clipped(lower[x], black, span) * p.share;
    if (first) out[0] = out[1];
    if (last == count + 1) out[count + 1] = out[count];
}

/* Enlarge ``count`` samples of a blended row to factor * count. */
FOR_EACH_PROCESSOR
static void enlarge(const float *restrict row, int32_t count, int32_t factor, float *restrict out)
{
    if (factor == 2) enlarge_row(row, count, 2, out);
    else if (factor == 4) enlarge_row(row, count, 4, out);
    else enlarge_row(row, count, 8, out);
}

FOR_EACH_PROCESSOR
static void add_detail(const float *restrict light, const float *restrict low, int32_t count, float *restrict most,
                       float *restrict sum)
{
    for (int32_t x = 0; x < count; x++) {
        float detail = fabsf(light[x] - low[x]);
        most[x] = detail > most[x] ? detail : most[x];
        sum[x] += low[x];
    }
}

/* Red-green (R - G) and blue-yellow (B - (R + G) / 2), both halved, come from Cb and Cr by BT.601's matrix. */
FOR_EACH_PROCESSOR
static void add_contrast(const Channels *c, const float *const centre[3], float *const surround[3], int32_t count,
                         float *restrict sum)
{
    for (int32_t x = 0; x < count; x++) {
        float luma = centre[0][x] - surround[0][x], cb = centre[1][x] - surround[1][x],
              cr = centre[2][x] - surround[2][x];
        float red_green = fabsf(RED_GREEN_CR * cr + RED_GREEN_CB * cb);
        float blue_yellow = fabsf(BLUE_YELLOW_CB * cb + BLUE_YELLOW_CR * cr);
        float contrast = fabsf(luma) * c->luma_gain + (red_green + blue_yellow) * c->chroma_gain;
        sum[x] += contrast < 1.0f ? contrast : 1.0f;
    }
}

static float maximum(const float *values, int32_t count)
{
    float most = 0.0f;
    for (int32_t x = 0; x < count; x++) most = values[x] > most ? values[x] : most;
    return most;
}

static float total(const float *values, int32_t count)
{
    float sum = 0.0f;
    for (int32_t x = 0; x < count; x++) sum += values[x];
    return sum;
}

static void clear(float *values, int32_t count) { memset(values, 0, (size_t)count * sizeof *values); }

static void rotate(float *rows[3])
{
    float *first = rows[0];
    rows[0] = rows[1], rows[1] = rows[2], rows[2] = first;
}

static void next_roots(const Channels *c, Rows *r, int32_t y, int32_t left, int32_t count)
{
    rotate(r->light);
    rotate(r->dark);
    read_luma(c, y, left - 1, count + 2, r->plain);
    take_roots(r->plain, count + 2, c->span, r->light[2], r->dark[2]);
}

/* Edges, highpass and lowpass of the cells [first, first + cells) of one row of cells. */
static void add_run(const Channels *c, Rows *r, int32_t row, int32_t first, int32_t cells)
{
    int32_t side = CELL >> c->level, count = cells * side, left = first * side,
            factor = 1 << (LOWPASS_LEVEL - c->level);
    int32_t per_cell = CELL >> LOWPASS_LEVEL;
    clear(r->most_light, count);
    clear(r->most_dark, count);
    clear(r->most_detail, count);
    clear(r->sum_low, count);
    next_roots(c, r, row * side - 1, left, count);
    next_roots(c, r, row * side, left, count);
    for (int32_t y = row * side; y < (row + 1) * side; y++) {
        blend_luma(rows_at(c->low, c->rows * per_cell, c->columns * per_cell, y, factor), c->columns * per_cell,
                   first * per_cell, cells * per_cell, c->black, c->span, r->blended);
        enlarge(r->blended, cells * per_cell, factor, r->low);
        add_detail(r->plain + 1, r->low, count, r->most_detail, r->sum_low);
        next_roots(c, r, y + 1, left, count);
        add_gradients(r->light[0], r->light[1], r->light[2], count, r->most_light);
        add_gradients(r->dark[0], r->dark[1], r->dark[2], count, r->most_dark);
    }
    for (int32_t cell = 0; cell < cells; cell++) {
        int64_t at = (int64_t)row * c->columns + first + cell;
        float light = sqrtf(maximum(r->most_light + cell * side, side) / c->span);
        float dark = sqrtf(maximum(r->most_dark + cell * side, side) / c->span);
        c->edges[at] = light < 1.0f ? light : 1.0f;
        c->edges_inverted[at] = dark < 1.0f ? dark : 1.0f;
        c->highpass[at] = maximum(r->most_detail + cell * side, side) / c->span;
        c->lowpass[at] = total(r->sum_low + cell * side, side) / (float)(side * side) / c->span;
    }
}

/* Saliency of the same cells: the mean contrast of level 2 with level 4. */
static void add_saliency(const Channels *c, Rows *r, int32_t row, int32_t first, int32_t cells)
{
    int32_t count = cells * SURROUND;
    clear(r->sum_contrast, count);
    for (int32_t y = row * SURROUND; y < (row + 1) * SURROUND; y++) {
        const float *centre[3];
        for (int32_t plane = 0; plane < 3; plane++) {
            centre[plane] = c->centre[plane] + (int64_t)y * c->columns * SURROUND + first * SURROUND;
            blend(rows_at(c->surround[plane], c->rows, c->columns, y, SURROUND), c->columns, first, cells, r->blended);
            enlarge(r->blended, cells, SURROUND, r->surround[plane]);
        }
        add_contrast(c, centre, r->surround, count, r->sum_contrast);
    }
    for (int32_t cell = 0; cell < cells; cell++)
        c->saliency[(int64_t)row * c->columns + first + cell] =
            total(r->sum_contrast + cell * SURROUND, SURROUND) / (float)(SURROUND * SURROUND);
}

/* Whether any tile of ``mask`` is within reach of a cell. */
static int in_reach(const uint8_t *mask, const Channels *c, int32_t row, int32_t column)
{
    int32_t across = c->columns / CELLS_PER_TILE;
    for (int32_t y = greatest(row - c->margin, 0); y <= least(row + c->margin, c->rows - 1); y++)
        for (int32_t x = greatest(column - c->margin, 0); x <= least(column + c->margin, c->columns - 1); x++)
            if (mask[(y / CELLS_PER_TILE) * across + x / CELLS_PER_TILE]) return 1;
    return 0;
}

static float *carve(float **memory, int32_t count)
{
    float *part = *memory;
    *memory += count;
    return part;
}

/* Recompute the channels of all cells within reach of the tiles of ``mask``. Returns 0, or -1 if out of memory. */
EXPORT int32_t local_channels(const Channels *c, const uint8_t *mask)
{
    int32_t width = greatest(c->columns * (CELL >> c->level), c->columns * SURROUND) + 16;
    float *memory = malloc(sizeof(float) * 17 * (size_t)width), *rest = memory;
    if (!memory) return -1;
    Rows r;
    for (int32_t i = 0; i < 3; i++) {
        r.light[i] = carve(&rest, width);
        r.dark[i] = carve(&rest, width);
        r.surround[i] = carve(&rest, width);
    }
    r.plain = carve(&rest, width);
    r.low = carve(&rest, width);
    r.blended = carve(&rest, width);
    r.most_light = carve(&rest, width);
    r.most_dark = carve(&rest, width);
    r.most_detail = carve(&rest, width);
    r.sum_low = carve(&rest, width);
    r.sum_contrast = carve(&rest, width);
    for (int32_t row = 0; row < c->rows; row++)
        for (int32_t first = 0; first < c->columns; first++) {
            int32_t end = first;
            while (end < c->columns && in_reach(mask, c, row, end)) end++;
            if (end > first) {
                add_run(c, &r, row, first, end - first);
                add_saliency(c, &r, row, first, end - first);
                first = end;
            }
        }
    free(memory);
    return 0;
}
