// Data that the kernels of one frame share, in device memory.
#pragma once

#include "spec/keyframes.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Written by frame_input.py for every frame; its copy is the first node of the frame's graph.
struct FrameInput {
    const void* planes[3];  // Y, Cb, Cr: first sample of each, in device memory; null chroma: grey
    int pitches[3];         // bytes between rows
    int steps[3];           // bytes between samples of a row
    int wide;               // 1: samples are 16 bits, the value in the upper ones (P016)
    int number;             // frames of this size before this one
    int keyframe;           // FIRST or SIZE on frame 0, else NONE
    int discontinuity;      // 1: the times or the connection jumped just before this frame
    int feedback;           // 1: feedback was received since the last frame
    int budget;             // tokens, instead of the settings'; 0: theirs
    int interval;           // frames between periodic keyframes, instead of the settings'; 0: theirs
};

// Written by the device. `changed` tiles differ from what the texture held; `dirty` ones are written.
struct FrameState {
    int number;          // the input's
    int changed_count;   // tiles
    int dirty_count;     // tiles: the changed ones, or all of them on a keyframe
    int keyframe;        // enum Keyframe
    int new_scene;       // 1 on every keyframe but the periodic kind: nothing of an earlier scene may be reused
    int since_keyframe;  // frames since the last one on which a periodic keyframe falls: by number, whatever happens
    int moving;          // 1: the motion channel holds anything other than zero
    int unchanged;       // 1: nothing written, no feedback, and `settled`: the last Selection holds again
    int budget;          // the input's
    int noise;    // eighths of a grey value that the quietest quarter differs by from frame to frame; see change.cu
    int settled;  // written by the Cascade's last kernel: an unchanged next frame gets the same Selection
};
