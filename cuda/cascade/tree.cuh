// The nodes of a grid's quadtrees, and where the state of each lies in memory.
#pragma once

#include "cascade.cuh"

// Rows, columns and nodes of any level.
__device__ inline int rows_of(const Grid& grid, int level)
{
    return grid.top > TOP_LEVEL && level > TOP_LEVEL ? upper_length(grid.root_rows, level)
                                                     : grid.root_rows << (TOP_LEVEL - level);
}

__device__ inline int columns_of(const Grid& grid, int level)
{
    return grid.top > TOP_LEVEL && level > TOP_LEVEL ? upper_length(grid.root_columns, level)
                                                     : grid.root_columns << (TOP_LEVEL - level);
}

__device__ inline int nodes_of(const Grid& grid, int level) { return rows_of(grid, level) * columns_of(grid, level); }

// Whether any unit under the node lies inside the picture.
__device__ inline int is_inside(const Grid& grid, int level, int row, int column)
{
    return row << level < grid.unit_rows && column << level < grid.unit_columns;
}

const int STATES = 4;  // that lie in a word

// The level's first place in the order of tokens. Levels below TOP_LEVEL begin with a word; before them up to three
// places may stand empty.
__device__ inline int level_start(const Grid& grid, int level)
{
    int start = 0;
    for (int l = grid.top; l > level; l--) {
        start += nodes_of(grid, l);
        if (l == TOP_LEVEL) start = (start + STATES - 1) / STATES * STATES;
    }
    return start;
}

struct Node {
    int level, row, column;
};

// The node whose state lies at `place`.
__device__ inline Node node_of(const Grid& grid, int place)
{
    int level = grid.top;
    while (level > 0 && place >= level_start(grid, level - 1)) level--;
    int within = place - level_start(grid, level), columns = columns_of(grid, level);
    Node node = {level, within / columns, within % columns};
    return node;
}

// The node of a level by its number there: in Morton order up to TOP_LEVEL, row by row above it.
__device__ inline Node numbered(const Grid& grid, int level, int number)
{
    Place at;
    if (grid.top > TOP_LEVEL && level > TOP_LEVEL) {
        int columns = columns_of(grid, level);
        at = {number / columns, number % columns};
    } else {
        at = place_of(level, number, grid.root_columns);
    }
    Node node = {level, at.row, at.column};
    return node;
}

__device__ inline Node child_of(const Node& node, int i)
{
    Node child = {node.level - 1, 2 * node.row + i / 2, 2 * node.column + i % 2};
    return child;
}

__device__ inline int number_of(const Grid& grid, const Node& node)
{
    if (grid.top > TOP_LEVEL && node.level > TOP_LEVEL) return node.row * columns_of(grid, node.level) + node.column;
    return node_at(node.level, node.row, node.column, grid.root_columns);
}
