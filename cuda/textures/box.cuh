// Boxes of texels that kernels work on: as many as fit into a launch's parameters.
#pragma once

#include "state.cuh"

const int MOST_BOXES = 64;

struct Box {
    int top, left, rows, columns;
};
