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

// What a thread of the block looks after where order matters: values [first, end) of `count`.
struct Stretch {
    int first, end, count;
};

__device__ inline Stretch own_stretch(int count)
{
    int length = (count + blockDim.x - 1) / blockDim.x, first = threadIdx.x * length;
    Stretch own = {first, min(first + length, count), count};
    return own;
}

// Counts the bins of a warp's lanes, -1 for none; those with the same one are added at once.
__device__ inline void count_bins(int* histogram, int bin)
{
    u32 same = __match_any_sync(EVERYONE, bin);
    if (bin >= 0 && threadIdx.x % WARP == __ffs(same) - 1) atomicAdd(&histogram[bin], __popc(same));
}

// The `keep` living ones with the greatest keys stay alive; of equal ones the first.
__device__ inline void keep_highest(const u32* keys, u8* alive, const Stretch& own, int keep, int* partial)
{
    __shared__ int histogram[BINS];
    __shared__ u32 prefix;
    __shared__ int needed;
    int living = 0, count = own.count;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) living += alive[i];
    if (block_sum(living, partial) <= keep) return;
    if (threadIdx.x == 0) {
        prefix = 0;
        needed = keep;
    }
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < BINS; i += blockDim.x) histogram[i] = 0;
        __syncthreads();
        u32 known = prefix, mask = shift == 24 ? 0 : 0xffffffffu << (shift + 8);
        for (int from = 0; from < count; from += blockDim.x) {
            int i = from + threadIdx.x, counts = i < count && alive[i] && (keys[i] & mask) == known;
            count_bins(histogram, counts ? (int)(keys[i] >> shift & (BINS - 1)) : -1);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int bin = BINS - 1;
            while (histogram[bin] < needed) needed -= histogram[bin--];
            prefix = known | (u32)bin << shift;
        }
        __syncthreads();
    }
    int equal = 0;
    for (int i = own.first; i < own.end; i++) equal += alive[i] && keys[i] == prefix;
    int rank = sum_before(equal, partial);
    for (int i = own.first; i < own.end; i++) {
        if (!alive[i]) continue;
        if (keys[i] < prefix) alive[i] = 0;
        if (keys[i] == prefix && rank++ >= needed) alive[i] = 0;
    }
    __syncthreads();
}
