/* Connected regions (8-connectivity) over the Grid: labels, extents, sizes, and which of them move. */

#include "native.h"

#include <string.h>

typedef struct {
    int32_t cells, left, top, right, bottom; /* right and bottom are the last column and row */
    int32_t plane;                           /* of the labels */
} Region;

static int32_t root_of(int32_t *parent, int32_t label)
{
    while (parent[label] != label) label = parent[label] = parent[parent[label]];
    return label;
}

static void unite(int32_t *parent, int32_t one, int32_t other)
{
    one = root_of(parent, one);
    other = root_of(parent, other);
    parent[greatest(one, other)] = least(one, other);
}

enum { EIGHT = sizeof(uint64_t) };

/* Whether the next eight of ``left`` flags are 0. */
static inline int32_t nothing_at(const uint8_t *flags, int32_t left)
{
    uint64_t eight;
    if (left < EIGHT) return 0;
    memcpy(&eight, flags, EIGHT);
    return !eight;
}

/* First pass of two-pass labelling: provisional labels from 1 on, whose equivalences are in ``parent``. Returns how
   many. No two cells that get a new label touch, so there is at most one label per four cells. */
static int32_t label_cells(const uint8_t *present, int32_t rows, int32_t columns, int32_t *label, int32_t *parent)
{
    int32_t count = 0;
    memset(label, 0, (size_t)rows * columns * sizeof *label);
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++) {
            int64_t at = (int64_t)row * columns + column;
            if (nothing_at(present + at, columns - column)) column += EIGHT - 1;
            if (!present[at]) continue;
            const int32_t *above = label + at - columns;
            int32_t west = column ? label[at - 1] : 0, north = row ? above[0] : 0;
            int32_t north_west = row && column ? above[-1] : 0, north_east = row && column + 1 < columns ? above[1] : 0;
            int32_t left = north_west ? north_west : west; /* these two touch */
            if (north) label[at] = north;                  /* touches all others */
            else if (north_east || left) label[at] = north_east ? north_east : left;
            else {
                label[at] = ++count;
                parent[count] = count;
            }
            if (!north && north_east && left) unite(parent, north_east, left);
        }
    return count;
}

/* Number the regions of one ``plane`` from ``first`` on in ``label`` (0: no region) and measure them. Returns the next
   free number. ``parent``: working memory for cells / 4 + 1 entries. */
static int32_t label_plane(const uint8_t *present, int32_t rows, int32_t columns, int32_t plane, int32_t first,
                           int32_t *label, int32_t *parent, Region *regions)
{
    int32_t count = label_cells(present, rows, columns, label, parent), next = first;
    for (int32_t k = 1; k <= count; k++) /* roots precede their members, and are replaced by their number, negated */
        parent[k] = parent[k] == k ? -next++ : parent[parent[k]];
    if (!count) return first;
    for (int32_t number = first; number < next; number++) regions[number] = (Region){0, columns, rows, 0, 0, plane};
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++) {
            int64_t at = (int64_t)row * columns + column;
            int32_t *mine = label + at;
            if (nothing_at(present + at, columns - column)) column += EIGHT - 1;
            if (!*mine) continue;
            *mine = -parent[*mine];
            Region *region = regions + *mine;
            region->cells++;
            region->left = least(region->left, column);
            region->right = greatest(region->right, column);
            region->top = least(region->top, row);
            region->bottom = row;
        }
    return next;
}

/* The regions where each of ``count`` shares, [grid] each, is at least ``enough`` ``inside`` the picture. ``label`` has
   room for [count][grid]; ``planes`` of them are used, as a share without regions takes none. ``regions`` has room for
   one per four labels and number 0, which stands for no region. Returns their number, including that. */
EXPORT int32_t label_regions(const float *const *shares, int32_t count, const uint8_t *inside, float enough,
                             int32_t rows, int32_t columns, int32_t *label, int32_t *planes, Region *regions,
                             int32_t *parent, uint8_t *present)
{
    int64_t cells = (int64_t)rows * columns;
    int32_t next = 1;
    *planes = 0;
    regions[0] = (Region){0, 0, 0, 0, 0, 0};
    for (int32_t k = 0; k < count; k++) {
        const float *share = shares[k];
        int32_t first = next;
        for (int64_t at = 0; at < cells; at++) present[at] = (uint8_t)(share[at] >= enough) & inside[at];
        next = label_plane(present, rows, columns, *planes, first, label + *planes * cells, parent, regions);
        *planes += next > first;
    }
    return next;
}

/* The smallest and the largest ``size`` of the regions that contain each cell; 1 and 0 if there is none. */
EXPORT void extreme_sizes(const int32_t *label, int32_t planes, int64_t cells, const float *size, float *smallest,
                          float *largest)
{
    for (int64_t at = 0; at < cells; at++) {
        smallest[at] = 1.0f;
        largest[at] = 0.0f;
    }
    for (int32_t plane = 0; plane < planes; plane++, label += cells)
        for (int64_t at = 0; at < cells; at++) {
            if (!label[at]) continue;
            float mine = size[label[at]];
            if (mine < smallest[at]) smallest[at] = mine;
            if (mine > largest[at]) largest[at] = mine;
        }
}

enum { WIDE = 6 }; /* length from which on outermost cells may show too little of an object to be detected */

/* When a whole region is taken to move. It must be small enough, and at least as many of its cells must move as its
   shorter side has. Then either is enough: cells that surely move are a certain share of it and span it; or cells that
   surely move or moved recently are most of it, and span it except for the outermost cells of a long side. */
typedef struct {
    float sure;    /* least motion of a cell that surely moves */
    double span;   /* least share of the region's height and width between the outermost moving cells */
    double share;  /* least share of cells that surely move */
    double widest; /* cells of the largest region that may be filled */
    double most;   /* least share of cells that surely move or moved recently */
} Filling;

/* The moving cells of a region. */
typedef struct {
    Region sure, recent; /* cells that surely move; those and cells that moved recently */
    int32_t any;         /* cells that move at all */
} Movement;

static int32_t spans(int32_t part, int32_t whole, double span, int32_t rim)
{
    return part + (whole >= WIDE ? 2 * rim : 0) >= span * whole;
}

/* Whether ``part`` spans the region; ``rim`` outermost cells of a long side may be missing at each end. */
static int32_t spanned(const Region *region, const Region *part, double span, int32_t rim)
{
    return spans(part->bottom - part->top + 1, region->bottom - region->top + 1, span, rim)
           && spans(part->right - part->left + 1, region->right - region->left + 1, span, rim);
}

static int32_t moves(const Region *region, const Movement *movement, const Filling *rule)
{
    int32_t front = least(region->bottom - region->top + 1, region->right - region->left + 1), cells = region->cells;
    if (cells > rule->widest || movement->any < front) return 0;
    const Region *sure = &movement->sure;
    if (sure->cells >= rule->share * cells && sure->cells >= front && spanned(region, sure, rule->span, 0)) return 1;
    return movement->recent.cells >= rule->most * cells && spanned(region, &movement->recent, rule->span, 1);
}

static void add(Region *region, int32_t row, int32_t column)
{
    region->cells++;
    region->left = least(region->left, column);
    region->right = greatest(region->right, column);
    region->top = least(region->top, row);
    region->bottom = row;
}

static void raise_region(const int32_t *label, int32_t columns, const Region *region, int32_t number, float *moving)
{
    for (int32_t row = region->top; row <= region->bottom; row++)
        for (int64_t at = (int64_t)row * columns + region->left; at <= (int64_t)row * columns + region->right; at++)
            if (label[at] == number) moving[at] = 1.0f;
}

/* Set ``moving`` [grid] to 1 in all cells of the regions that move. ``recent`` [grid]: cells that moved recently, 0
   or 1.
   ``movement``: working memory, one entry per region. */
EXPORT void fill_moving(const int32_t *label, int32_t planes, int32_t rows, int32_t columns, const Region *regions,
                        int32_t count, const Filling *rule, const uint8_t *recent, float *moving, Movement *movement)
{
    int64_t cells = (int64_t)rows * columns;
    Region none = {0, columns, rows, 0, 0, 0};
    for (int32_t number = 0; number < count; number++) movement[number] = (Movement){none, none, 0};
    for (int64_t at = 0; at < cells; at++) {
        int32_t row = (int32_t)(at / columns), column = (int32_t)(at % columns), surely = moving[at] >= rule->sure;
        if (!(moving[at] > 0.0f) && !recent[at]) continue;
        for (int32_t plane = 0; plane < planes; plane++) {
            Movement *here = movement + label[plane * cells + at];
            here->any += moving[at] > 0.0f;
            if (surely) add(&here->sure, row, column);
            if (surely || recent[at]) add(&here->recent, row, column);
        }
    }
    for (int32_t number = 1; number < count; number++)
        if (moves(regions + number, movement + number, rule))
            raise_region(label + regions[number].plane * cells, columns, regions + number, number, moving);
}

/* Scale ``moving`` by the sum over its connected region: to 0 up to ``none``, unchanged from ``full`` on, linearly
   between. The last arguments are working memory: [grid], then cells / 4 + 1 entries three times, then [grid]. */
EXPORT void weaken_small(float *moving, int32_t rows, int32_t columns, float none, float full, int32_t *label,
                         int32_t *parent, Region *regions, double *mass, uint8_t *present)
{
    int64_t cells = (int64_t)rows * columns;
    for (int64_t at = 0; at < cells; at++) present[at] = moving[at] > 0.0f;
    int32_t count = label_plane(present, rows, columns, 0, 1, label, parent, regions);
    memset(mass, 0, (size_t)count * sizeof *mass);
    for (int64_t at = 0; at < cells; at++)
        if (label[at]) mass[label[at]] += moving[at];
    for (int64_t at = 0; at < cells; at++) {
        if (!label[at]) continue;
        float part = ((float)mass[label[at]] - none) / (full - none);
        moving[at] *= part < 0.0f ? 0.0f : part > 1.0f ? 1.0f : part;
    }
}
