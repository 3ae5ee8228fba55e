// Pictures and maps read at any place, also outside and between their samples.
#pragma once

#include "cascade.cuh"

struct Picture {
    const float* samples;
    int rows, columns;
};

// The sample at a place; the edge is repeated.
__device__ inline float sample(const Picture& picture, int row, int column)
{
    row = min(max(row, 0), picture.rows - 1);
    column = min(max(column, 0), picture.columns - 1);
    return picture.samples[row * picture.columns + column];
}

// Bilinear, the edge repeated.
__device__ inline float between(const Picture& picture, float row, float column)
{
    row = fminf(fmaxf(row, 0.0f), (float)(picture.rows - 1));
    column = fminf(fmaxf(column, 0.0f), (float)(picture.columns - 1));
    int top = (int)row, left = (int)column;
    float down = row - (float)top, across = column - (float)left;
    float upper = sample(picture, top, left), lower = sample(picture, top + 1, left);
    upper += across * (sample(picture, top, left + 1) - upper);
    lower += across * (sample(picture, top + 1, left + 1) - lower);
    return upper + down * (lower - upper);
}
