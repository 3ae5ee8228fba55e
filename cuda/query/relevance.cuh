// QueryTerms of pipeline/query/terms.py on the device, and their evaluation at one place.
#pragma once

#include "spec/query.h"
#include "state.cuh"

struct Terms {
    const float* weights;        // [terms][INPUTS]
    const float* biases;         // [terms]
    const int* query;            // [terms]: index of the query of a term, ascending; each has at least one
    const float* signed_weight;  // [queries]: below zero for a negative query
    int terms, queries;
    int sigmoid;        // activation: 1 for the sigmoid, 0 for clipping to [0, 1]
    int only_negative;  // 1: all queries are negative
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

// Relevance to all queries together; `store(q, relevance)` receives that to query q.
template <typename Store>
__device__ inline float combined_relevance(const Terms& p, const float* inputs, Store store)
{
    float positive = p.only_negative ? 1.0f : 0.0f, remaining = 1.0f;
    for (int term = 0; term < p.terms;) {
        int query = p.query[term];
        float least = 1.0f;
        for (; term < p.terms && p.query[term] == query; term++) least = fminf(least, term_value(p, term, inputs));
        float weight = p.signed_weight[query], weighted = fminf(fabsf(weight) * least, 1.0f);
        if (weight > 0.0f) positive = fmaxf(positive, weighted);
        else remaining *= 1.0f - weighted;
        store(query, least);
    }
    return positive * remaining;
}
