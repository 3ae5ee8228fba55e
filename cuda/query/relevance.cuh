// A Program of pipeline/query/program.py on the device: linear terms over what is known of a place, and what they mean.
#pragma once

#include "spec/query.h"
#include "state.cuh"

struct Terms {
    const float* weights;  // [terms][INPUTS]
    const float* biases;   // [terms]
    const int* query;      // [terms]: which query a term belongs to, ascending; each has at least one
    const float* wish;     // [queries]: how much its relevance counts, below zero where it is not wanted
    int terms, queries;
    int sigmoid;           // 1: of the terms' sums; 0: they are clipped to [0, 1]
    int only_unwanted;     // 1: no query is wanted
};

// The value of one term in [0, 1].
__device__ inline float term_value(const Terms& p, int term, const float* inputs)
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < INPUTS; i++) sum += p.weights[term * INPUTS + i] * inputs[i];
    sum += p.biases[term];
    if (!p.sigmoid) return fminf(fmaxf(sum, 0.0f), 1.0f);
    return 1.0f / (1.0f + expf(-fminf(fmaxf(sum, -STEEPEST), STEEPEST)));
}

// How much the place takes part. Its relevance to query q is told to `tell(q, relevance)`.
template <typename Tell>
__device__ inline float participation(const Terms& p, const float* inputs, Tell tell)
{
    float taking = p.only_unwanted ? 1.0f : 0.0f, spared = 1.0f;
    for (int term = 0; term < p.terms;) {
        int query = p.query[term];
        float least = 1.0f;
        for (; term < p.terms && p.query[term] == query; term++) least = fminf(least, term_value(p, term, inputs));
        float wish = p.wish[query], share = fminf(fabsf(wish) * least, 1.0f);
        if (wish > 0.0f) taking = fmaxf(taking, share);
        else spared *= 1.0f - share;
        tell(query, least);
    }
    return taking * spared;
}
