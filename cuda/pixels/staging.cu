// Fetches tiles of a host frame: reads page-locked memory over the bus, and writes the frame staged on the device.
#include "state.cuh"

struct Fetch {
    const u8* host;  // planes, page-locked, laid out as on the device
    u8* device;
    const int* tiles;  // row * columns + column, page-locked
    int count;
    int tile_columns;
    int offsets[3];  // of each plane in bytes, multiples of 16
    int pitches[3];  // bytes between rows, multiples of 16
    int rows[3];
    int sides[3];  // samples along a tile: 32, or 16 where chroma is halved; 0 for a plane that is not there
};

const int THREADS = 128;

// A block per tile, four bytes per thread and turn; what lies between the plane's width and its pitch comes along.
extern "C" __global__ void __launch_bounds__(THREADS) fetch_tiles(Fetch p)
{
    const int tile = p.tiles[blockIdx.x], row = tile / p.tile_columns, column = tile % p.tile_columns;
#pragma unroll
    for (int plane = 0; plane < 3; plane++) {
        const int side = p.sides[plane], words = side / 4;
        for (int i = threadIdx.x; i < side * words; i += THREADS) {
            const int y = row * side + i / words, x = column * side + i % words * 4;
            if (y >= p.rows[plane] || x >= p.pitches[plane]) continue;
            const size_t at = p.offsets[plane] + (size_t)y * p.pitches[plane] + x;
            *(u32*)(p.device + at) = *(const u32*)(p.host + at);
        }
    }
}
