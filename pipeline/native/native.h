/* What the compiled kernels share. They are called through ctypes; their Python siblings check all arguments. */

#ifndef FOVEATE_NATIVE_H
#define FOVEATE_NATIVE_H

#include <stddef.h>
#include <stdint.h>

/* Compiled twice where the loader can choose by processor. Without fused multiply-adds, so both give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define EXPORT __attribute__((visibility("default")))

enum { TILE = 32, CELL = 16, CELLS_PER_TILE = 2, TOP_LEVEL = 4 };

/* A plane of a frame: ``width`` x ``height`` samples, ``stride`` bytes from row to row. */
typedef struct {
    const uint8_t *samples;
    int64_t stride;
    int32_t width, height;
} Plane;

static inline int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t greatest(int32_t a, int32_t b) { return a > b ? a : b; }

#endif
