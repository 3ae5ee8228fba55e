// The parameters of carry.cu, its cells, and how their errors are weighted.
#pragma once

#include "cascade.cuh"
#include "spec/errors.h"
#include "spec/query_prior.h"
#include "spec/tokens.h"
#include "spec/warped_maps.h"

const int MAPS = SINCE + 1;
const int LINEAR_MAPS = CLUSTER_ID;  // the maps before this one are averaged; the others hold identities and counts

const int THREADS = 256;
const int SUM_THREADS = 1024;

// Where the linear scorer finds a channel: a warped map, by its number, or one of these.
const int IN_MEMORY = 16;
const int NEW_ATTENTION = 17;
const int NEW_GAZE = 18;

struct Term {
    const float* map;  // [cells], if it is IN_MEMORY
    int source;
    float weight;
};

struct Linear {
    const Term* terms;
    int count;
    float bias;
};

struct Carry {
    const FrameState* frame;
    CascadeState* cascade;
    const u8* changed;    // [tiles]
    const float* fine;    // luma of the flow level, now
    const float* coarse;  // luma of level 4, now
    float* fine_before;   // for the next frame's search
    float* coarse_before;
    float* flow;                   // [3][cells]: dx, dy and confidence
    float* maps;                   // [MAPS][turns][cells]; SINCE holds whole numbers
    const float* channels;         // [7][cells]
    const float* eccentricity;     // [cells]
    const float* gaze_input;       // [cells]: a new gaze, else zeros
    const float* attention_input;  // [cells]: new attention, else zeros
    const int* has_gaze;           // other than 0 where there is a gaze
    float* gaze;                   // [cells]
    float* attention_before;       // [cells]
    int* age;                      // [cells]: frames since the cell's pixels changed
    u8* pending;                   // [cells]: no token was emitted there since
    float* scores;                 // [3][cells]: final score, information, perspective
    const float* errors;           // [4][cells], of levels 1..4
    const float* reader_error;     // [cells]: of what the reader holds; null: it holds nothing
    const u8* seen;                // [cells]: 1 + the LOD at which the reader saw the cell last; 0: never
    const float* residual;         // [levels][cells]: error after a token of LOD 1, 2 ... was shown; null: no reader
    float* peak;                   // [cells]: the greatest participation since the reader saw the cell last
    const float* participation;    // [cells]; null: there is no query
    float* kept;                   // [units]: weighted error of no token
    float* leaf1;                  // [nodes of level 1]: weighted error of one token
    float* leaf2;                  // [nodes of level 2]
    float* leaf3;                  // [nodes of level 2]: their share of a level-3 leaf's error
    float* leaf4;                  // the same for level 4
    const float* cells[3];         // Y, Cb, Cr of level TOP_LEVEL; these and all below are for the levels above it
    const float* samples[3];       // of those levels, see upper.cu
    float* shares;                 // [levels][blocks]: weighted error of one token, over the block's cells
    float* sums;                   // [roots and nodes above TOP_LEVEL]
    float* upper;                  // [nodes above TOP_LEVEL]: weighted error of one token
    Grid grid;
    int dense_flow;     // 1: `flow` holds for all cells; 0: for those that changed
    int side;           // samples of the flow level along a cell
    int cache_enabled;  // 0: every frame is scored alone
    int weighting;      // the score makes a cell's weight: 0 never, 1 always, 2 where there is a gaze; else it is 1
    int max_age;
    int query_changed;  // 1: the previous scores answer another query
    float confidence, blend, floor;
    Linear linear;  // of carry_linear
};

struct Cell {
    int row, column, index, count;  // count: of all cells
    int exists;                     // on the grid
    int inside;                     // holds any pixel of the picture
    int changed;
};

// How a cell's errors are weighted, see pipeline/cascade/query_prior.py. Without a query `hidden` and `ignored` are 0,
// and `stale` is 1.
struct ErrorWeights {
    float weight, hidden, ignored, stale;
};

__device__ inline Cell cell_of(const Carry& p, int thread)
{
    const Grid& grid = p.grid;
    int bits = grid.merge - 1, part = thread & (threads_of_unit(grid) - 1);
    int down = part >> bits, across = part & ((1 << bits) - 1);
    int idle = down >= grid.merge || across >= grid.merge;
    Place unit = place_of(0, thread >> 2 * bits, grid.root_columns);
    Cell cell;
    cell.row = unit.row * grid.merge + down;
    cell.column = unit.column * grid.merge + across;
    cell.index = cell.row * grid.columns + cell.column;
    cell.count = grid.rows * grid.columns;
    cell.exists = !idle && cell.row < grid.rows && cell.column < grid.columns;
    cell.inside = !idle && cell.row < grid.inside_rows && cell.column < grid.inside_columns;
    cell.changed = cell.exists && p.changed[(cell.row / 2) * (grid.columns / 2) + cell.column / 2];
    return cell;
}

__device__ inline float weight_of(const Carry& p, const Cell& cell, float score)
{
    int scored = p.weighting == 1 || (p.weighting == 2 && *p.has_gaze);
    return !cell.inside ? 0.0f : scored ? p.floor + score : 1.0f;
}

// How far a cell matches the query.
__device__ inline float match_of(float participation) { return fminf(participation / FULL_MATCH, 1.0f); }

// Weight of an error by the cell's participation.
__device__ inline float error_weight(float participation)
{
    return OUTSIDE_WEIGHT + (1.0f - OUTSIDE_WEIGHT) * match_of(participation);
}

// Further weight of the finest detail, that of LOD 0 against LOD 1.
__device__ inline float detail_weight(float participation)
{
    return OUTSIDE_DETAIL_WEIGHT + (DETAIL_WEIGHT - OUTSIDE_DETAIL_WEIGHT) * match_of(participation);
}

// Factor for the error where the reader may still see a matching object that has left.
__device__ inline float stale_weight(const Carry& p, const Cell& cell, float participation)
{
    float peak = fmaxf(p.peak[cell.index], participation);
    p.peak[cell.index] = peak;
    if (!p.pending[cell.index]) peak = 0.0f;
    return fmaxf(error_weight(peak) / error_weight(participation), 1.0f);
}

// The weights of a cell's errors; `weight` is the one that follows from its score.
__device__ inline ErrorWeights error_weights_of(const Carry& p, const Cell& cell, float weight)
{
    ErrorWeights weights = {weight, 0.0f, 0.0f, 1.0f};
    if (!p.participation) return weights;
    float participation = p.participation[cell.index];
    weights.weight = weight * error_weight(participation);
    weights.hidden = ((HIDDEN_ERROR * participation) * participation) / fmaxf(weights.weight, LEAST_WEIGHT);
    weights.ignored = p.errors[cell.index] * (1.0f - detail_weight(participation));
    return weights;
}

// Error assumed hidden at a LOD, in units of HIDDEN_ERROR.
__device__ inline float hidden_share(int lod)
{
    return (float)(lod <= 2 ? lod : lod == 3 ? HIDDEN_AT_LOD_3 : HIDDEN_AT_LOD_4 + HIDDEN_PER_LOD * (lod - TOP_LEVEL));
}

// The cell's error at a level above 0 with the query prior; it is at least `residual`, see pipeline/cpu/reader.py.
__device__ inline float error_with_prior(const Carry& p, float error, float residual, int level,
                                         const ErrorWeights& weights)
{
    error = fmaxf(error, residual);
    return p.participation ? fmaxf(error - weights.ignored, 0.0f) + weights.hidden * hidden_share(level) : error;
}

// The greatest residual error of tokens of a level or a finer one; `finer`: that of the finer ones.
__device__ inline float residual_at(const Carry& p, const Cell& cell, int level, float finer)
{
    return p.residual && level ? fmaxf(finer, p.residual[(level - 1) * cell.count + cell.index]) : finer;
}

// The cell's error at a level; at level 0, that of what the reader holds.
__device__ inline float error_of(const Carry& p, const Cell& cell, int level, float residual,
                                 const ErrorWeights& weights)
{
    if (level) return error_with_prior(p, p.errors[(level - 1) * cell.count + cell.index], residual, level, weights);
    if (!p.reader_error) return UNSEEN;
    float error = p.reader_error[cell.index];
    if (!p.participation) return error;
    int lod = p.seen[cell.index] ? p.seen[cell.index] - 1 : NEVER_SEEN;
    float ignored = lod ? weights.ignored : 0.0f;  // seen at LOD 0, it lacks no detail: its error has come since
    return fmaxf(error - ignored, 0.0f) * weights.stale + weights.hidden * hidden_share(lod);
}
