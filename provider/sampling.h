// provider/sampling.h: how a token is chosen from a model's logits.
#ifndef ANEMONE_PROVIDER_SAMPLING_H_
#define ANEMONE_PROVIDER_SAMPLING_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "anemone/generator.h"

namespace anemone {

// kInvalidArgument, naming the field.
absl::Status CheckSampling(const Sampling& sampling);

// The share of each token, in this order: repetition penalty for the tokens of `seen`, temperature,
// top-k, softmax, top-p. Tokens with equal logits are ordered by their ids. The shares sum to 1.
// Temperature 0: the token with the largest logit has share 1. A NaN counts as minus infinity.
std::vector<double> TokenShares(absl::Span<const float> logits, const Sampling& sampling,
                                absl::Span<const int64_t> seen);

// A token by the shares, with 53 random bits: the same with every standard library.
int64_t ChooseToken(absl::Span<const double> shares, std::mt19937_64& random);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SAMPLING_H_
