// Tells light that changes from things that move, as pipeline/native/light.h, bit for bit.
#pragma once

#include "spec/light.h"

// Sums over `count` samples of two pictures of a place: of the values, their squares and their product.
struct Pair {
    int count, now, now_squares, before, before_squares, product;
};

// Whether a gain and an offset, by least squares, turn either picture into the other, but for noise. All in units of
// variance times count^2; the sums of a window of 9 cells fit 32 bits.
__device__ inline bool is_light(const Pair& p)
{
    float now = (float)(p.count * p.now_squares - p.now * p.now);
    float before = (float)(p.count * p.before_squares - p.before * p.before);
    float both = (float)max(p.count * p.product - p.now * p.before, 0);
    float change = (float)(p.count * (p.now_squares - 2 * p.product + p.before_squares));
    float noise = LIGHT_NOISE * (float)(p.count * p.count), shared = both * both;
    float left_now = now * (before + noise) - shared, left_before = before * (now + noise) - shared;
    float may_now = UNEXPLAINED * (change < now ? change : now) + noise;
    float may_before = UNEXPLAINED * (change < before ? change : before) + noise;
    bool fits = left_now <= may_now * (before + noise) && left_before <= may_before * (now + noise);
    bool textured = now > PLAIN * noise && before > PLAIN * noise;
    float one = (float)p.now, other = (float)p.before;
    return fits && (textured || (one <= PLAIN_GAIN * other && other <= PLAIN_GAIN * one));
}
