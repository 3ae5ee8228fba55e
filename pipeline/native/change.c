/* Change detection: tiles with a block whose mean absolute difference from the reference frame exceeds a threshold.

   A block covers 8x8 pixels of level 0: 8x8 samples, or 4x4 of a plane at half resolution. Where a picture ends inside
   a block, its edge is repeated. Sums are whole numbers, so the answer is exact. */

#include "native.h"
#include "spec/change.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { BLOCKS_PER_TILE = TILE / BLOCK };

/* One row of blocks of one plane, and what it is compared with. */
typedef struct {
    const uint8_t *now, *reference;
    int64_t now_stride, reference_stride;
} Band;

/* Rows are read sequentially, CHUNK tiles at a time, which is fastest. */
enum { CHUNK = 64 };

#if defined(__SSE2__)

typedef __m128i Sums[CHUNK][2]; /* of a tile's columns, eight per half register */

/* Not inlined into the loop over rows: reading two rows at once halves the speed. */
__attribute__((noinline)) static void add_row(const uint8_t *now, const uint8_t *reference, int32_t tiles, int32_t side,
                                              const uint8_t *mask, Sums sums)
{
    for (int32_t tile = 0; tile < tiles; tile++) {
        if (mask[tile]) continue;
        for (int32_t half = 0; half < side / 4; half++) {
            int32_t at = tile * side * BLOCKS_PER_TILE + 16 * half;
            __m128i a = _mm_loadu_si128((const __m128i *)(now + at)),
                    b = _mm_loadu_si128((const __m128i *)(reference + at));
            sums[tile][half] = _mm_add_epi32(sums[tile][half], _mm_sad_epu8(a, b));
        }
    }
}

static inline int exceeds(const __m128i sums[2], uint32_t limit)
{
    const __m128i most = _mm_set1_epi32((int32_t)limit);
    return _mm_movemask_epi8(_mm_or_si128(_mm_cmpgt_epi32(sums[0], most), _mm_cmpgt_epi32(sums[1], most))) != 0;
}

/* The same for a plane at half resolution, where eight columns are two blocks, summed separately. */
static int any_quarter_over(const Band *band, int32_t left, uint32_t limit)
{
    const __m128i lefts = _mm_set1_epi64x(0xffffffffLL), zero = _mm_setzero_si128();
    __m128i sums[2] = {zero, zero};
    for (int32_t y = 0; y < 4; y++) {
        __m128i a = _mm_loadu_si128((const __m128i *)(band->now + y * band->now_stride + left));
        __m128i b = _mm_loadu_si128((const __m128i *)(band->reference + y * band->reference_stride + left));
        __m128i apart = _mm_or_si128(_mm_subs_epu8(a, b), _mm_subs_epu8(b, a));
        sums[0] = _mm_add_epi32(sums[0], _mm_sad_epu8(_mm_and_si128(apart, lefts), zero));
        sums[1] = _mm_add_epi32(sums[1], _mm_sad_epu8(_mm_srli_epi64(apart, 32), zero));
    }
    return exceeds(sums, limit);
}

/* Mark those of ``tiles`` <= CHUNK tiles in which a block of ``side`` x ``side`` samples exceeds ``limit``. */
static inline void mark_chunk(const Band *band, int32_t tiles, int32_t side, uint32_t limit, uint8_t *mask)
{
    Sums sums;
    memset(sums, 0, sizeof *sums * (size_t)tiles);
    for (int32_t y = 0; y < side; y++)
        add_row(band->now + y * band->now_stride, band->reference + y * band->reference_stride, tiles, side, mask,
                sums);
    for (int32_t tile = 0; tile < tiles; tile++)
        if (!mask[tile] && exceeds(sums[tile], limit))
            mask[tile] = side == 8 || any_quarter_over(band, tile * side * BLOCKS_PER_TILE, limit);
}

#else

static inline void mark_chunk(const Band *band, int32_t tiles, int32_t side, uint32_t limit, uint8_t *mask)
{
    for (int32_t block = 0; block < tiles * BLOCKS_PER_TILE; block++) {
        uint32_t sum = 0;
        for (int32_t y = 0; y < side; y++)
            for (int32_t x = block * side; x < (block + 1) * side; x++)
                sum += (uint32_t)abs((int)band->now[y * band->now_stride + x]
                                     - (int)band->reference[y * band->reference_stride + x]);
        if (sum > limit) mask[block / BLOCKS_PER_TILE] = 1;
    }
}

#endif

/* The same for any number of tiles that lie wholly in the plane. */
static void mark_whole(const Band *band, int32_t tiles, int32_t side, uint32_t limit, uint8_t *mask)
{
    for (int32_t first = 0; first < tiles; first += CHUNK) {
        int32_t count = least(tiles - first, CHUNK), left = first * side * BLOCKS_PER_TILE;
        Band part = {band->now + left, band->reference + left, band->now_stride, band->reference_stride};
        if (side == 8) mark_chunk(&part, count, 8, limit, mask + first);
        else mark_chunk(&part, count, 4, limit, mask + first);
    }
}

/* Sum over the block at (top, left), which may extend beyond the plane: edge samples are repeated. */
static uint32_t edge_block(const Plane *now, const Plane *reference, int32_t top, int32_t left, int32_t side)
{
    uint32_t sum = 0;
    for (int32_t y = top; y < top + side; y++) {
        const uint8_t *a = now->samples + least(y, now->height - 1) * now->stride;
        const uint8_t *b = reference->samples + least(y, now->height - 1) * reference->stride;
        for (int32_t x = left; x < left + side; x++) {
            int32_t at = least(x, now->width - 1);
            sum += (uint32_t)abs((int)a[at] - (int)b[at]);
        }
    }
    return sum;
}

/* Set ``mask`` uint8[rows, columns], one per tile. ``sides`` are the samples along a block of each plane, 8 or 4. */
EXPORT void changed_tiles(const Plane now[3], const Plane reference[3], const int32_t sides[3], double threshold,
                          int32_t rows, int32_t columns, uint8_t *mask)
{
    memset(mask, 0, (size_t)rows * (size_t)columns);
    for (int32_t plane = 0; plane < 3; plane++) {
        int32_t side = sides[plane], tile = side * BLOCKS_PER_TILE;
        uint32_t limit = (uint32_t)(threshold * side * side); /* rounded down: equivalent for whole numbers */
        for (int32_t top = 0; top < now[plane].height; top += side) {
            uint8_t *row = mask + (ptrdiff_t)(top / tile) * columns;
            Band band = {now[plane].samples + top * now[plane].stride,
                         reference[plane].samples + top * reference[plane].stride, now[plane].stride,
                         reference[plane].stride};
            int32_t whole = top + side <= now[plane].height ? now[plane].width / tile : 0;
            mark_whole(&band, whole, side, limit, row);
            for (int32_t left = whole * tile; left < now[plane].width; left += side)
                if (!row[left / tile])
                    row[left / tile] = edge_block(&now[plane], &reference[plane], top, left, side) > limit;
        }
    }
}

enum { PER_LEVEL = BLOCK * BLOCK / NOISE_PER_GREY /* of a block's sum of differences */ };

/* Sums over a block of 8x8 samples: absolute differences from the previous frame, samples now, samples before. */
typedef struct {
    int32_t apart, now, before;
} Difference;

#if defined(__SSE2__)

static inline int32_t both_halves(__m128i sums)
{
    return _mm_cvtsi128_si32(sums) + _mm_cvtsi128_si32(_mm_srli_si128(sums, 8));
}

static inline Difference differ(const uint8_t *samples, int64_t stride, uint8_t *before)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i apart = zero, now = zero, then = zero;
    for (int32_t y = 0; y < 8; y += 2) {
        __m128i *kept = (__m128i *)(before + 8 * y), old = _mm_loadu_si128(kept);
        __m128i rows = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(samples + y * stride)),
                                          _mm_loadl_epi64((const __m128i *)(samples + (y + 1) * stride)));
        _mm_storeu_si128(kept, rows);
        apart = _mm_add_epi32(apart, _mm_sad_epu8(rows, old));
        now = _mm_add_epi32(now, _mm_sad_epu8(rows, zero));
        then = _mm_add_epi32(then, _mm_sad_epu8(old, zero));
    }
    return (Difference){both_halves(apart), both_halves(now), both_halves(then)};
}

#else

static inline Difference differ(const uint8_t *samples, int64_t stride, uint8_t *before)
{
    Difference sums = {0, 0, 0};
    for (int32_t y = 0; y < 8; y++)
        for (int32_t x = 0; x < 8; x++) {
            uint8_t now = samples[y * stride + x], then = before[8 * y + x];
            sums.apart += abs(now - then);
            sums.now += now;
            sums.before += then;
            before[8 * y + x] = now;
        }
    return sums;
}

#endif

/* Sum of absolute differences of the top left block of a tile from ``before``, which is then updated; 0 where most
   differences have one sign, because then the content changed. */
static uint32_t noise_of(const Plane *luma, int32_t top, int32_t left, uint8_t *before)
{
    Difference sums = differ(luma->samples + top * luma->stride + left, luma->stride, before);
    return 2 * abs(sums.now - sums.before) > sums.apart ? 0 : (uint32_t)sums.apart;
}

/* The lower quartile of the blocks' noise, in eighths of a grey value, at most 255. ``before`` uint8[rows, columns, 64]
   holds the blocks of the frame before, which become this one's. A tile counts if its block lies in the picture. */
EXPORT int32_t noise_level(const Plane *luma, int32_t rows, int32_t columns, uint8_t *before)
{
    uint32_t bins[NOISE_LEVELS] = {0}, count = 0, found = 0;
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++, before += 64) {
            if (row * TILE + 8 > luma->height || column * TILE + 8 > luma->width) continue;
            bins[least((int32_t)noise_of(luma, row * TILE, column * TILE, before) / PER_LEVEL, NOISE_LEVELS - 1)]++;
            count++;
        }
    for (int32_t bin = 0; bin < NOISE_LEVELS; bin++) {
        found += bins[bin];
        if (4 * found >= count) return bin;
    }
    return 0;
}

/* Copy the tiles of ``mask`` from one plane to another of its size. Widths are in bytes: a tile has ``side`` rows of
   ``bytes``. */
EXPORT void copy_tiles(const Plane *source, const Plane *target, int32_t side, int32_t bytes, int32_t rows,
                       int32_t columns, const uint8_t *mask)
{
    for (int32_t row = 0; row < rows; row++)
        for (int32_t column = 0; column < columns; column++) {
            int32_t end = column;
            while (end < columns && mask[row * columns + end]) end++;
            if (end == column) continue;
            int32_t left = column * bytes, width = least(end * bytes, source->width) - left;
            for (int32_t y = row * side; width > 0 && y < least((row + 1) * side, source->height); y++)
                memcpy((uint8_t *)target->samples + y * target->stride + left,
                       source->samples + y * source->stride + left, (size_t)width);
            column = end;
        }
}
