// Sums over a block of up to 1024 threads, and how a frame's allocation ends.
#pragma once

#include "cascade.cuh"

const int MOST_THREADS = 1024;

// Sum over the block, known to all of its threads; the order of the additions is always the same. `partial` is shared,
// one place per warp.
template <typename T>
__device__ inline T block_sum(T value, T* partial)
{
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    value = warp_sum(value);
    __syncthreads();
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    return warp_sum(lane < warps ? partial[lane] : T());
}

// Sum over the threads before this one, in the block.
__device__ inline int sum_before(int value, int* partial)
{
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, sum = value;
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        int other = __shfl_up_sync(EVERYONE, sum, lanes);
        if (lane >= lanes) sum += other;
    }
    __syncthreads();
    if (lane == WARP - 1) partial[warp] = sum;
    __syncthreads();
    return warp_sum(lane < warp ? partial[lane] : 0) + sum - value;
}

// What ends a frame's allocation, whatever the strategy.
struct Conclusion {
    FrameState* frame;
    CascadeState* cascade;
    Header* header;
    const int* feedback;  // 1: some was received since the last frame
    int settles;  // an unchanged frame gets the same Selection again: 0 never, 1 always, 2 where there are no tokens
};

// By one thread, when nothing of this frame reads the CascadeState any more. `in_debt`: tokens were too expensive for
// this frame, so that the next one may get some even where it is unchanged.
__device__ inline void conclude(const Conclusion& p, int count, int price, int debt, int in_debt)
{
    const FrameState& frame = *p.frame;
    int turn = 1 - p.cascade->turn;
    Header header = {count, frame.changed_count, frame.keyframe, p.cascade->recomputed, 0, frame.number, price, debt,
                     turn};
    *p.header = header;
    p.cascade->recomputed = 0;
    p.cascade->price = price;
    p.cascade->turn = turn;
    int quiet = !frame.dirty_count && !*p.feedback && !in_debt;
    p.frame->settled = quiet && (p.settles == 1 || (p.settles == 2 && count == 0));
}
