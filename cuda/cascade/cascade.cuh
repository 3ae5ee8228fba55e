// What the Cascade's kernels share: quadtree places, warp sums, the record of a frame's tokens. Mirrors layout.py.
//
// Units are cells, or whole groups of merge x merge cells. A quadtree root spans 16 x 16 units. Nodes of a level are
// numbered in Morton order, root by root: the children of node n are 4n .. 4n + 3, in reading order. Where the budget
// is smaller than the number of roots there are levels above TOP_LEVEL, whose nodes are numbered row by row.
#pragma once

#include "spec/geometry.h"
#include "state.cuh"

#define EVERYONE 0xffffffffu

const int WARP = 32;
const int PAINTED = 0x80;  // bit of what the reader has seen of a cell: since the last comparison

// The Cascade's own memory between kernels and frames.
struct CascadeState {
    int low, step;   // the next round tries the prices low, low + step, ...
    int ticket;      // blocks of a round that have counted
    int turn;        // which half of the warped maps was written last
    int recomputed;  // cells inside the picture whose maps were not reused
    int price;       // index of the price that was chosen
};

struct Token {
    int lod, row, column;  // row and column in units of (16 * 2^lod) pixels
};

// What the host reads of each token: columns that follow the Header, one value for each token.
struct Columns {
    int* x;  // of the centre, in level-0 pixels
    int* y;
    int* age;  // frames since its pixels changed
    float* score;
    float* information;
    float* perspective;
    float* participation;  // 0 without a query
    u8* lod;
    u8* fresh;  // 1: changed or moved since last emitted there
};

// What the host reads of a frame; Columns follow.
struct Header {
    int count;
    int changed;     // tiles
    int keyframe;    // enum Keyframe
    int recomputed;  // cells
    int unchanged;   // 1: the last frame's tokens hold again
    int number;      // FrameState's
    int price;       // index of the one that was chosen
    int debt;        // tokens spent beyond the average, behind this frame; see pipeline/cascade/rate.py
    int turn;        // the half of the warped maps that is this frame's
};

// Which part of a grid holds the picture, and how its units make quadtrees.
struct Grid {
    int rows, columns;                // cells, the padding's included
    int inside_rows, inside_columns;  // cells that hold any pixel
    int merge;                        // cells along a unit: 1, 2 or 3
    int unit_rows, unit_columns;      // units with any cell inside
    int roots, root_rows, root_columns;
    int top;  // level of the coarsest tokens: TOP_LEVEL, or above
};

struct Place {
    int row, column;
};

// Every second bit of `code`, closed up.
__device__ inline int every_second_bit(int code)
{
    int bits = 0;
    for (int i = 0; i <= TOP_LEVEL; i++) bits |= ((code >> (2 * i)) & 1) << i;
    return bits;
}

// Row and column of a node, in nodes of its level.
__device__ inline Place place_of(int level, int node, int root_columns)
{
    int depth = TOP_LEVEL - level, root = node >> (2 * depth), code = node & ((1 << (2 * depth)) - 1);
    Place place;
    place.row = ((root / root_columns) << depth) + every_second_bit(code >> 1);
    place.column = ((root % root_columns) << depth) + every_second_bit(code);
    return place;
}

// The node of a level at a place: the inverse of place_of.
__device__ inline int node_at(int level, int row, int column, int root_columns)
{
    int depth = TOP_LEVEL - level, code = 0;
    for (int i = 0; i < depth; i++) code |= (((column >> i) & 1) << (2 * i)) | (((row >> i) & 1) << (2 * i + 1));
    return ((((row >> depth) * root_columns) + (column >> depth)) << (2 * depth)) + code;
}

// Where each cell has a thread, a unit has 1, 4 or 16 of them, rows of 1, 2 or 4. With merge = 3 seven of the 16 idle,
// so that no unit crosses warps.
__device__ inline int threads_of_unit(const Grid& grid) { return 1 << 2 * (grid.merge - 1); }

// Units inside the picture under the node of a level.
__device__ inline int units_under(const Grid& grid, int level, int node)
{
    Place place = place_of(level, node, grid.root_columns);
    int rows = min(max(grid.unit_rows - (place.row << level), 0), 1 << level);
    int columns = min(max(grid.unit_columns - (place.column << level), 0), 1 << level);
    return rows * columns;
}

// Rows and columns of a level above TOP_LEVEL, of samples or of nodes: each is half of the one below, rounded up.
__device__ inline int upper_length(int length, int level) { return ((length - 1) >> (level - TOP_LEVEL)) + 1; }

// Where a level above TOP_LEVEL begins in an array that holds all of them, from TOP_LEVEL + 1 on; `rows` and `columns`
// are TOP_LEVEL's.
__device__ inline int upper_start(int rows, int columns, int level)
{
    int start = 0;
    for (int l = TOP_LEVEL + 1; l < level; l++) start += upper_length(rows, l) * upper_length(columns, l);
    return start;
}

// Writes the unit at (row, column) of a level, the index-th: a token, or the tokens of a group row by row. What would
// lie wholly outside the picture repeats its neighbour in the group.
__device__ inline void write_unit(const Grid& grid, Token* tokens, int index, int level, int row, int column)
{
    int each = grid.merge * grid.merge;
#pragma unroll 1
    for (int i = 0; i < each; i++) {
        Token* token = tokens + index * each + i;
        token->lod = level;
        token->row = min(row * grid.merge + i / grid.merge, (grid.inside_rows - 1) >> level);
        token->column = min(column * grid.merge + i % grid.merge, (grid.inside_columns - 1) >> level);
    }
}

// Sum over four children, in their order.
__device__ inline float over_four(const float* values) { return ((values[0] + values[1]) + values[2]) + values[3]; }

template <typename T>
__device__ inline T warp_sum(T value)
{
    for (int lanes = WARP / 2; lanes; lanes /= 2) value += __shfl_xor_sync(EVERYONE, value, lanes);
    return value;
}

__device__ inline u64 warp_greatest(u64 value)
{
    for (int lanes = WARP / 2; lanes; lanes /= 2) {
        u64 other = __shfl_xor_sync(EVERYONE, value, lanes);
        value = other > value ? other : value;
    }
    return value;
}
