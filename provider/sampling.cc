#include "provider/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"

namespace anemone {

absl::Status CheckSampling(const Sampling& sampling) {
  const auto bad = [](const char* name, double value, const char* want) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", value, ": want ", want));
  };
  if (!(sampling.temperature >= 0) || std::isinf(sampling.temperature)) {
    return bad("temperature", sampling.temperature, "0 (the likeliest token) or more");
  }
  if (sampling.top_k < 0) {
    return bad("top_k", static_cast<double>(sampling.top_k), "a number of tokens, or 0 for all");
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    return bad("top_p", sampling.top_p, "a share above 0 and up to 1");
  }
  if (!(sampling.repetition_penalty > 0) || std::isinf(sampling.repetition_penalty)) {
    return bad("repetition_penalty", sampling.repetition_penalty, "a number above 0; 1 is none");
  }
  return absl::OkStatus();
}

std::vector<double> TokenShares(absl::Span<const float> logits, const Sampling& sampling,
                                absl::Span<const int64_t> seen) {
  std::vector<double> scores;
  scores.reserve(logits.size());
  for (const float logit : logits) {
    scores.push_back(std::isnan(logit) ? -std::numeric_limits<double>::infinity() : logit);
  }
  if (sampling.repetition_penalty == 1) seen = {};
  for (const int64_t token : std::set<int64_t>(seen.begin(), seen.end())) {
    if (token < 0 || token >= static_cast<int64_t>(scores.size())) continue;
    double& score = scores[token];
    score = score > 0 ? score / sampling.repetition_penalty : score * sampling.repetition_penalty;
  }
  std::vector<double> shares(scores.size());
  if (scores.empty()) return shares;
  const auto likeliest = std::max_element(scores.begin(), scores.end());
  const double most = *likeliest;
  if (sampling.temperature == 0 || std::isinf(most)) {
    shares[likeliest - scores.begin()] = 1;
    return shares;
  }
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  if (sampling.top_k > 0 && sampling.top_k < static_cast<int64_t>(order.size())) {
    order.resize(sampling.top_k);
  }
  double sum = 0;
  for (const int64_t token : order) {
    shares[token] = std::exp((scores[token] - most) / sampling.temperature);
    sum += shares[token];
  }
  double kept = 0;
  for (const int64_t token : order) {  // as few as reach top_p
    if (kept >= sampling.top_p * sum) {
      shares[token] = 0;
    } else {
      kept += shares[token];
    }
  }
  for (double& share : shares) share /= kept;
  return shares;
}

int64_t ChooseToken(absl::Span<const double> shares, std::mt19937_64& random) {
  const double at = static_cast<double>(random() >> 11) * 0x1p-53;
  double below = 0;
  int64_t last = 0;
  for (int64_t token = 0; token < static_cast<int64_t>(shares.size()); ++token) {
    if (shares[token] <= 0) continue;
    last = token;
    below += shares[token];
    if (at < below) break;
  }
  return last;
}

}  // namespace anemone
