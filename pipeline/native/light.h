/* Tells light that changes from things that move. Light multiplies the luma of a place by a gain and adds an offset;
   so the texture of the place stays. A thing that comes or goes brings its own. A cell is lit if this holds in the 3x3
   cells around it or, beside things that move, in one of the four 2x2 that it is a corner of and that have a texture.
 */

#ifndef FOVEATE_LIGHT_H
#define FOVEATE_LIGHT_H

#include "native.h"
#include "spec/light.h"

/* Whether a gain and an offset, by least squares, turn either of two pictures of a place into the other, but for noise.
   Given are sums over ``count`` samples: of the lumas, their squares and their product. The share ``unexplained`` of
   the change, and of the texture, may be left, besides noise. Places without a texture count
   if ``plain``. Everything is in units of variance times count^2; the sums of a window of 9 cells fit 32 bits. */
INLINE int32_t is_light(int32_t count, int32_t now, int32_t now_squares, int32_t before, int32_t before_squares,
                        int32_t product, float unexplained, int32_t plain)
{
    float v = (float)(count * now_squares - now * now), w = (float)(count * before_squares - before * before);
    float both = (float)greatest(count * product - now * before, 0);
    float change = (float)(count * (now_squares - 2 * product + before_squares));
    float noise = LIGHT_NOISE * (float)(count * count), shared = both * both;
    float may_v = unexplained * (change < v ? change : v) + noise,
          may_w = unexplained * (change < w ? change : w) + noise;
    int32_t fits =
        (v * (w + noise) - shared <= may_v * (w + noise)) & (w * (v + noise) - shared <= may_w * (v + noise));
    int32_t textured = (v > PLAIN * noise) & (w > PLAIN * noise);
    float one = (float)now, other = (float)before;
    int32_t alike = (one <= PLAIN_GAIN * other) & (other <= PLAIN_GAIN * one);
    return fits & (textured | (plain & alike));
}

#endif
