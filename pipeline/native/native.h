/* Shared by the compiled kernels, which are called through ctypes. Their Python siblings check all arguments. */

#ifndef FOVEATE_NATIVE_H
#define FOVEATE_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "spec/geometry.h"

/* Compiled twice where the loader can choose by processor, without fused multiply-adds, so that both agree. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#define HAS_AVX2 /* to be checked for at run time */
#else
#define FOR_EACH_PROCESSOR
#endif

#define EXPORT __attribute__((visibility("default")))

/* A plane of a frame: ``width`` x ``height`` samples, ``stride`` bytes from row to row. */
typedef struct {
    const uint8_t *samples;
    int64_t stride;
    int32_t width, height;
} Plane;

/* One plane at all its levels. ``pixels`` is the base, uint8; ``coarse[k]`` is the k-th level above it, float32. All
   are contiguous and padded to whole tiles; ``stride`` and ``rows`` are the base's width and height. */
typedef struct {
    uint8_t *pixels;
    float *coarse[TOP_LEVEL];
    int64_t stride;
    int32_t base; /* 0, or 1 for a plane at half resolution */
    int32_t rows;
} Pyramid;

/* What leaf_errors() needs. */
typedef struct {
    double weights[3];        /* of squared differences in each plane */
    float *errors[TOP_LEVEL]; /* [grid], by level, from 1 */
    const uint8_t *written;   /* [tiles] */
    uint8_t *near;            /* [columns]: working memory */
    int32_t rows, columns;    /* of cells */
} LeafErrors;

/* Most cells of a row that are processed together. */
enum { MOST_CELLS = 16 };

/* Find the errors of 2, 4, 8 or MOST_CELLS cells of a row, from ``column`` on. */
typedef void FindErrors(const Pyramid planes[3], const LeafErrors *e, int32_t row, int32_t column, int32_t cells);
FindErrors find_errors, find_errors_avx2;

/* Update the errors of the cells of a row that lie in a written tile or touch one. Tiles around them are up to date. */
void leaf_errors(const Pyramid planes[3], const LeafErrors *e, int32_t row);

static inline int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t greatest(int32_t a, int32_t b) { return a > b ? a : b; }

/* Inlined with constant sizes, so that loops become vector instructions without remainders. */
#define INLINE static inline __attribute__((always_inline))

/* out[factor * count]: ``count`` samples enlarged bilinearly by ``factor`` (2, 4, 8, 16), sample centres aligned.
   ``row`` has an extra sample at each end: row[x + 1] is sample x. */
INLINE void enlarge_row(const float *restrict row, int32_t count, int32_t factor, float *restrict out)
{
    for (int32_t x = 0; x < count; x++)
        for (int32_t phase = 0; phase < factor; phase++) {
            int32_t from = phase < factor / 2 ? -1 : 0;
            float part = ((float)phase + 0.5f) / (float)factor - 0.5f - (float)from;
            out[x * factor + phase] = row[x + 1 + from] * (1.0f - part) + row[x + 2 + from] * part;
        }
}

#endif
