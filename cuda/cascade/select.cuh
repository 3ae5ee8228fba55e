// Choosing the highest of many values, by a block of up to 1024 threads.
#pragma once

#include "block.cuh"

const int BINS = 256;

// A number that is greater where the float is greater.
__device__ inline u32 key_of(float value)
{
    u32 bits = __float_as_uint(value + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The float of a key, where that is not negative.
__device__ inline double value_of(u32 key) { return (double)__uint_as_float(key & 0x7fffffffu); }

// The `keep` living ones with the greatest keys stay alive; of equal ones the first. Every thread of the block looks
// after its own stretch, [first, end).
__device__ inline void keep_highest(const u32* keys, u8* alive, int first, int end, int keep, int* partial)
{
    __shared__ int histogram[BINS];
    __shared__ u32 prefix;
    __shared__ int needed;
    int living = 0;
    for (int i = first; i < end; i++) living += alive[i];
    if (block_sum(living, partial) <= keep) return;
    if (threadIdx.x == 0) {
        prefix = 0;
        needed = keep;
    }
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < BINS; i += blockDim.x) histogram[i] = 0;
        __syncthreads();
        u32 known = prefix, mask = shift == 24 ? 0 : 0xffffffffu << (shift + 8);
        for (int i = first; i < end; i++)
            if (alive[i] && (keys[i] & mask) == known) atomicAdd(&histogram[(keys[i] >> shift) & (BINS - 1)], 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            int bin = BINS - 1;
            while (histogram[bin] < needed) needed -= histogram[bin--];
            prefix = known | (u32)bin << shift;
        }
        __syncthreads();
    }
    int equal = 0;
    for (int i = first; i < end; i++) equal += alive[i] && keys[i] == prefix;
    int rank = sum_before(equal, partial);
    for (int i = first; i < end; i++) {
        if (!alive[i]) continue;
        if (keys[i] < prefix) alive[i] = 0;
        if (keys[i] == prefix && rank++ >= needed) alive[i] = 0;
    }
    __syncthreads();
}
