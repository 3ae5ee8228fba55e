/* The tokens of the quadtree with the least weighted squared error for a budget.

   For a price t per token the best tree is found bottom-up, J(n) = min(leaf, split, keep) (Chou, Lookabaugh and Gray,
   1989); of equal costs the one with fewer tokens wins. The price is the lowest one, of a given ascending list, whose
   tree fits the budget. Tokens left over are then spent one step at a time, on the step with the highest gain per
   token.

   Nodes below TOP_LEVEL are stored child-major: the first children of all nodes of the level above, then the second
   ones, and so on, so that a sum over children is a sum of four contiguous quarters. Coarser nodes, which only small
   budgets for large pictures need, are stored row by row. All arithmetic is float32; sums run in the order of the
   children. */

#include "native.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS = MOST_LOD + 1 };

typedef struct {
    const int32_t *source;                       /* [level-0 nodes]: index of the unit; -1 outside the grid of units */
    const uint8_t *inside;                       /* [level-0 nodes] */
    const int32_t *units[LEVELS];                /* [level][nodes]: units inside the picture */
    const int32_t *row[LEVELS], *column[LEVELS]; /* [level][nodes]: place in units of 2^level */
    int32_t nodes[LEVELS];
    int32_t rows[LEVELS], columns[LEVELS]; /* of nodes, from TOP_LEVEL on */
    int32_t cell_rows, cell_columns;       /* of the grid of cells */
    int32_t merge;                         /* a unit is merge x merge cells; the last ones may extend beyond the grid */
} Quadtree;

typedef struct {
    const float *weight;           /* [grid of cells] */
    const float *errors[MOST_LOD]; /* [grid]: squared error when shown at level 1..top */
    const float *kept;             /* [grid]: squared error without a token; null: each unit needs a token */
    const float *prices;           /* ascending */
    int32_t least, most;           /* first and last price that may be chosen */
    int32_t guess;                 /* price to try first */
    int32_t budget;                /* in units */
    int32_t top;                   /* level of the coarsest tokens, at least TOP_LEVEL */
    float min_gain;                /* gain per token that a step must exceed */
} Task;

typedef struct {
    float *leaf[LEVELS]; /* cost of one token, without its price */
    float *kept;         /* level 0 */
    float *cost;
    int32_t *tokens;
    uint8_t *better[LEVELS]; /* one token is better than a split */
    uint8_t *active;
    uint8_t *leaves[LEVELS]; /* of the chosen tree */
    uint8_t *skipped;        /* level 0: inside the picture and without a token */
} Memory;

typedef struct {
    float rate; /* gain per token */
    int32_t level, node, extra;
} Step;

/* out[n] of in[4n]; may be done in place. */
FOR_EACH_PROCESSOR
static void sum_children(const float *in, int32_t n, float *out)
{
    for (int32_t i = 0; i < n; i++) out[i] = ((in[i] + in[n + i]) + in[2 * n + i]) + in[3 * n + i];
}

/* Index, in the level below, of the i-th child of a node; -1 outside the grid. */
static int32_t child_of(const Quadtree *q, int32_t level, int32_t node, int32_t i)
{
    if (level <= TOP_LEVEL) return i * q->nodes[level] + node;
    int32_t row = 2 * (node / q->columns[level]) + i / 2, column = 2 * (node % q->columns[level]) + i % 2;
    if (row >= q->rows[level - 1] || column >= q->columns[level - 1]) return -1;
    return row * q->columns[level - 1] + column;
}

/* Replace ``values`` of the level below by their sums over the children of each node of ``level``. */
static void sum_up(const Quadtree *q, int32_t level, float *values)
{
    if (level <= TOP_LEVEL) {
        sum_children(values, q->nodes[level], values);
        return;
    }
    for (int32_t i = 0; i < q->nodes[level];
         i++) { /* no child precedes its parent: none is overwritten before it is read */
        float parts[4];
        for (int32_t k = 0; k < 4; k++) {
            int32_t child = child_of(q, level, i, k);
            parts[k] = child < 0 ? 0.0f : values[child];
        }
        values[i] = ((parts[0] + parts[1]) + parts[2]) + parts[3];
    }
}

/* Weighted error of a unit: columns are summed first, then from left to right. */
static float over_unit(const Quadtree *q, int32_t row, int32_t column, const float *weight, const float *error)
{
    int32_t rows = least(q->merge, q->cell_rows - row), columns = least(q->merge, q->cell_columns - column);
    int64_t first = (int64_t)row * q->cell_columns + column;
    float sum = 0.0f;
    for (int32_t x = 0; x < columns; x++) {
        float down = 0.0f;
        for (int32_t y = 0; y < rows; y++) {
            int64_t at = first + (int64_t)y * q->cell_columns + x;
            down += error[at] * weight[at];
        }
        sum += down;
    }
    return sum;
}

static void weigh(const Quadtree *q, const float *weight, const float *error, float *out)
{
    int32_t across = (q->cell_columns + q->merge - 1) / q->merge; /* units */
    for (int32_t i = 0; i < q->nodes[0]; i++) {
        int32_t unit = q->source[i];
        if (unit < 0) out[i] = 0.0f;
        else if (q->merge == 1) out[i] = error[unit] * weight[unit];
        else out[i] = over_unit(q, unit / across * q->merge, unit % across * q->merge, weight, error);
    }
}

static void find_costs(const Quadtree *q, const Task *task, Memory *m)
{
    memset(m->leaf[0], 0, sizeof(float) * (size_t)q->nodes[0]);
    for (int32_t level = 1; level <= task->top; level++) {
        weigh(q, task->weight, task->errors[level - 1], m->cost);
        for (int32_t k = 1; k <= level; k++) sum_up(q, k, m->cost);
        memcpy(m->leaf[level], m->cost, sizeof(float) * (size_t)q->nodes[level]);
    }
    if (task->kept) weigh(q, task->weight, task->kept, m->kept);
}

/* Costs and tokens of the level-1 nodes when split. */
FOR_EACH_PROCESSOR
static void split_bottom(const Quadtree *q, const float *kept, float price, float *restrict cost,
                         int32_t *restrict tokens)
{
    int32_t n = q->nodes[1];
    if (!kept) {
        for (int32_t i = 0; i < n; i++) {
            tokens[i] = q->units[1][i];
            cost[i] = price * (float)q->units[1][i];
        }
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        float sum = 0.0f;
        int32_t count = 0;
        for (int32_t child = 0; child < 4; child++) {
            float value = kept[child * n + i];
            sum += value < price ? value : price;
            count += price < value;
        }
        cost[i] = sum;
        tokens[i] = count;
    }
}

FOR_EACH_PROCESSOR
static void take_better(const float *restrict leaf, float price, int32_t n, float *restrict cost,
                        int32_t *restrict tokens, uint8_t *restrict better)
{
    for (int32_t i = 0; i < n; i++) {
        float alone = leaf[i] + price;
        int32_t take = (alone < cost[i]) | ((alone == cost[i]) & (tokens[i] > 1));
        cost[i] = take ? alone : cost[i];
        tokens[i] = take ? 1 : tokens[i];
        better[i] = (uint8_t)take;
    }
}

FOR_EACH_PROCESSOR
static void count_quarters(int32_t *tokens, int32_t n)
{
    for (int32_t i = 0; i < n; i++) tokens[i] = tokens[i] + tokens[n + i] + tokens[2 * n + i] + tokens[3 * n + i];
}

static void count_up(const Quadtree *q, int32_t level, int32_t *tokens)
{
    if (level <= TOP_LEVEL) {
        count_quarters(tokens, q->nodes[level]);
        return;
    }
    for (int32_t i = 0; i < q->nodes[level]; i++) {
        int32_t count = 0;
        for (int32_t k = 0; k < 4; k++) {
            int32_t child = child_of(q, level, i, k);
            count += child < 0 ? 0 : tokens[child];
        }
        tokens[i] = count;
    }
}

/* Find the best tree for a price: sets ``better``, returns its number of tokens. */
static int32_t prune(const Quadtree *q, const Task *task, Memory *m, float price)
{
    split_bottom(q, task->kept ? m->kept : NULL, price, m->cost, m->tokens);
    for (int32_t level = 1; level <= task->top; level++) {
        if (level > 1) {
            sum_up(q, level, m->cost);
            count_up(q, level, m->tokens);
        }
        take_better(m->leaf[level], price, q->nodes[level], m->cost, m->tokens, m->better[level]);
    }
    int32_t count = 0;
    for (int32_t i = 0; i < q->nodes[task->top]; i++) count += m->tokens[i];
    return count;
}

/* The lowest price in [least, most] whose tree fits. Token counts never grow with the price, and the last one fits. */
static int32_t find_price(const Quadtree *q, const Task *task, Memory *m)
{
    int32_t dear = task->most, cheap = task->least - 1; /* fits, does not fit */
    int32_t at = least(greatest(task->guess, task->least), task->most), stride = 2;
    while (dear - cheap > 1) {
        int fits = prune(q, task, m, task->prices[at]) <= task->budget;
        if (fits) dear = at;
        else cheap = at;
        if (dear == task->most || cheap == task->least - 1) {
            at = fits ? greatest(at - stride, cheap + 1) : least(at + stride, dear - 1);
            stride *= 8;
        } else {
            at = cheap + (dear - cheap) / 2;
        }
    }
    return dear;
}

/* Copy the flags of the nodes of ``level`` to their children. */
static void pass_down(const Quadtree *q, int32_t level, uint8_t *active)
{
    int32_t n = q->nodes[level];
    for (int32_t k = 1; level <= TOP_LEVEL && k < 4; k++) memcpy(active + k * n, active, (size_t)n);
    for (int32_t i = n - 1; level > TOP_LEVEL && i >= 0; i--) { /* children follow all parents still to be read */
        uint8_t mine = active[i];
        for (int32_t k = 0; k < 4; k++) {
            int32_t child = child_of(q, level, i, k);
            if (child >= 0) active[child] = mine;
        }
    }
}

/* Leaves per level of the tree found by the last ``prune``; returns its number of tokens. */
static int32_t take_tree(const Quadtree *q, const Task *task, Memory *m, float price)
{
    int32_t count = 0;
    memset(m->active, 1, (size_t)q->nodes[task->top]);
    for (int32_t level = task->top; level > 0; level--) {
        int32_t n = q->nodes[level];
        for (int32_t i = 0; i < n; i++) {
            m->leaves[level][i] = m->active[i] & m->better[level][i];
            m->active[i] &= (uint8_t)!m->better[level][i];
            count += m->leaves[level][i];
        }
        pass_down(q, level, m->active);
    }
    for (int32_t i = 0; i < q->nodes[0]; i++) {
        uint8_t token = m->active[i] & (uint8_t)(task->kept ? price < m->kept[i] : q->inside[i]);
        m->leaves[0][i] = token;
        m->skipped[i] = m->active[i] & q->inside[i] & (uint8_t)!token;
        count += token;
    }
    return count;
}

/* Whether step ``a`` ranks before step ``b``. */
static int ranks_before(const Step *a, const Step *b)
{
    if (a->rate != b->rate) return a->rate > b->rate;
    if (a->level != b->level) return a->level < b->level;
    return a->node < b->node;
}

static void push(Step *heap, int32_t *size, Step step)
{
    int32_t at = (*size)++;
    while (at > 0 && ranks_before(&step, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = step;
}

static Step pop(Step *heap, int32_t *size)
{
    Step first = heap[0], last = heap[--(*size)];
    int32_t at = 0;
    for (int32_t child = 1; child < *size; child = 2 * at + 1) {
        if (child + 1 < *size && ranks_before(&heap[child + 1], &heap[child])) child++;
        if (!ranks_before(&heap[child], &last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* Push the step that gives a skipped unit a token (level 0), or splits a leaf, if it fits and gains enough. */
static void push_step(const Quadtree *q, const Task *task, const Memory *m, int32_t level, int32_t node, int32_t room,
                      Step *heap, int32_t *size)
{
    float gain;
    int32_t extra = 1;
    if (level == 0) {
        gain = m->kept[node];
    } else {
        float below[4];
        extra = -1;
        for (int32_t i = 0; i < 4; i++) {
            int32_t child = child_of(q, level, node, i);
            below[i] = child < 0 ? 0.0f : m->leaf[level - 1][child];
            extra += child >= 0 && q->units[level - 1][child] > 0;
        }
        gain = m->leaf[level][node] - (((below[0] + below[1]) + below[2]) + below[3]);
    }
    if (extra >= 1 && extra <= room && gain > (float)extra * task->min_gain)
        push(heap, size, (Step){gain / (float)extra, level, node, extra});
}

/* Spend ``room`` more tokens, always on the best step. */
static void fill(const Quadtree *q, const Task *task, Memory *m, int32_t room, Step *heap)
{
    int32_t size = 0;
    for (int32_t i = 0; task->kept && i < q->nodes[0]; i++)
        if (m->skipped[i]) push_step(q, task, m, 0, i, room, heap, &size);
    for (int32_t level = 1; level <= task->top; level++)
        for (int32_t i = 0; i < q->nodes[level]; i++)
            if (m->leaves[level][i]) push_step(q, task, m, level, i, room, heap, &size);
    while (room > 0 && size > 0) {
        Step step = pop(heap, &size);
        if (step.extra > room) continue;
        room -= step.extra;
        if (step.level == 0) {
            m->leaves[0][step.node] = 1;
            continue;
        }
        m->leaves[step.level][step.node] = 0;
        for (int32_t i = 0; i < 4; i++) {
            int32_t node = child_of(q, step.level, step.node, i);
            if (node < 0 || !q->units[step.level - 1][node]) continue;
            m->leaves[step.level - 1][node] = 1;
            if (step.level > 1) push_step(q, task, m, step.level - 1, node, room, heap, &size);
        }
    }
}

static int ascending(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

/* List the leaves from coarse to fine, then row by row. Returns their number. */
static int32_t list_leaves(const Quadtree *q, const Memory *m, int32_t top, uint32_t *places, uint8_t *lod,
                           int32_t *row, int32_t *column)
{
    int32_t count = 0;
    for (int32_t level = top; level >= 0; level--) {
        int32_t start = count;
        for (int32_t i = 0; i < q->nodes[level]; i++)
            if (m->leaves[level][i]) places[count++] = (uint32_t)q->row[level][i] << 16 | (uint32_t)q->column[level][i];
        qsort(places + start, (size_t)(count - start), sizeof *places, ascending);
        for (int32_t i = start; i < count; i++) {
            lod[i] = (uint8_t)level;
            row[i] = (int32_t)(places[i] >> 16);
            column[i] = (int32_t)(places[i] & 0xffff);
        }
    }
    return count;
}

static void *carve(uint8_t **memory, int32_t count, size_t size)
{
    void *part = *memory;
    *memory += ((size_t)count * size + 63) / 64 * 64;
    return part;
}

/* Bytes of working memory that ``allocate_tokens`` needs for a quadtree. */
EXPORT int64_t allocation_memory(const Quadtree *q)
{
    return 64 * (4 * LEVELS) + (int64_t)q->nodes[0] * 64; /* parts are rounded up to 64 bytes */
}

/* Choose the nodes that get tokens. ``lod``, ``row`` and ``column`` hold ``budget`` entries each, but at most one per
   level-0 node. ``price`` becomes the index of the chosen price. Returns the number of nodes. */
EXPORT int32_t allocate_tokens(const Quadtree *q, const Task *task, uint8_t *memory, uint8_t *lod, int32_t *row,
                               int32_t *column, int32_t *price)
{
    Memory m;
    for (int32_t level = 0; level <= task->top; level++) {
        m.leaf[level] = carve(&memory, q->nodes[level], sizeof(float));
        m.better[level] = carve(&memory, q->nodes[level], 1);
        m.leaves[level] = carve(&memory, q->nodes[level], 1);
    }
    m.kept = carve(&memory, q->nodes[0], sizeof(float));
    m.cost = carve(&memory, q->nodes[0], sizeof(float));
    m.tokens = carve(&memory, q->nodes[1], sizeof(int32_t));
    m.active = carve(&memory, q->nodes[0], 1);
    m.skipped = carve(&memory, q->nodes[0], 1);
    Step *heap = carve(&memory, 2 * q->nodes[0], sizeof(Step));
    find_costs(q, task, &m);
    *price = find_price(q, task, &m);
    prune(q, task, &m, task->prices[*price]);
    int32_t room = task->budget - take_tree(q, task, &m, task->prices[*price]);
    if (*price > task->least && room > 0) fill(q, task, &m, room, heap);
    return list_leaves(q, &m, task->top, (uint32_t *)heap, lod, row, column);
}
