// Tells light that changes from things that move, as pipeline/native/light.h, bit for bit.
#pragma once

#include "spec/light.h"

// Whether a gain and an offset, by least squares, turn either of two pictures of a place into the other, but for noise.
// Given are sums over `count` samples: of the lumas, their squares and their product. Places without a texture count if
// `plain`. Everything is in units of variance times count^2; the sums of a window of 9 cells fit 32 bits.
__device__ inline bool is_light(int count, int now, int now_squares, int before, int before_squares, int product,
                                bool plain)
{
    float v = (float)(count * now_squares - now * now), w = (float)(count * before_squares - before * before);
    float both = (float)max(count * product - now * before, 0);
    float change = (float)(count * (now_squares - 2 * product + before_squares));
    float noise = LIGHT_NOISE * (float)(count * count), shared = both * both;
    float may_v = UNEXPLAINED * (change < v ? change : v) + noise,
          may_w = UNEXPLAINED * (change < w ? change : w) + noise;
    bool fits = v * (w + noise) - shared <= may_v * (w + noise) && w * (v + noise) - shared <= may_w * (v + noise);
    bool textured = v > PLAIN * noise && w > PLAIN * noise;
    float one = (float)now, other = (float)before;
    return fits && (textured || (plain && one <= PLAIN_GAIN * other && other <= PLAIN_GAIN * one));
}
