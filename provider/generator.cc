#include "anemone/generator.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "base/status_macros.h"
#include "provider/decoder.h"
#include "provider/sampling.h"

namespace anemone {
namespace {

constexpr int64_t kLargestPart = 1024, kSmallestPart = 32;
constexpr int kPlans = 16;  // a program for each size of a part, at two capacities

Settings WithCache(Settings settings) {
  if (settings.state.empty()) settings.state[kUsualPairs] = "";
  settings.max_plans = std::max(settings.max_plans, kPlans);
  return settings;
}

}  // namespace

struct Generator::State {
  Session session;
  Names names;
  Sampling sampling;
  std::mt19937_64 random;
  std::vector<int64_t> tokens;
  int64_t past = 0;  // tokens in the cache
  std::vector<float> logits;

  absl::Status RunTo(int64_t end);
};

// Runs the model on the tokens before `end` that are not in the cache.
absl::Status Generator::State::RunTo(int64_t end) {
  while (past < end) {
    int64_t part = kLargestPart;
    while (part > end - past && part > kSmallestPart) part /= 2;
    if (part > end - past) part = 1;
    const absl::Span<const int64_t> known(tokens.data(), static_cast<size_t>(past + part));
    ANEMONE_ASSIGN_OR_RETURN(auto inputs, DecoderInputs(names, session.inputs(), known, past));
    ANEMONE_ASSIGN_OR_RETURN(const auto outputs, session.Run(inputs));
    ANEMONE_ASSIGN_OR_RETURN(logits, LastLogits(outputs.at(names.logits)));
    past += part;
  }
  return absl::OkStatus();
}

Generator::Generator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

absl::StatusOr<Generator> Generator::Of(absl::StatusOr<Session> session) {
  ANEMONE_RETURN_IF_ERROR(session.status());
  if (session->StatePairs().empty())
    return absl::InvalidArgumentError("generate: the model has no cache");
  ANEMONE_ASSIGN_OR_RETURN(Names names, DecoderNames(*session));
  return Generator(
      std::make_unique<State>(State{.session = *std::move(session), .names = std::move(names)}));
}

absl::StatusOr<Generator> Generator::Load(const std::string& path, const Settings& settings) {
  return Of(Session::Load(path, WithCache(settings)));
}

absl::StatusOr<Generator> Generator::LoadBytes(absl::string_view model, const Settings& settings) {
  return Of(Session::LoadBytes(model, WithCache(settings)));
}

absl::Status Generator::Start(absl::Span<const int64_t> prompt, const Sampling& sampling) {
  ANEMONE_RETURN_IF_ERROR(CheckSampling(sampling));
  if (prompt.empty()) {
    return absl::InvalidArgumentError("generate: the prompt has no token; give at least one");
  }
  for (const int64_t token : prompt) {
    if (token < 0 || token > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("generate: token ", token, " is not a number from 0 to 2147483647"));
    }
  }
  state_->session.ResetState();
  state_->sampling = sampling;
  state_->random.seed(sampling.seed);
  state_->tokens.assign(prompt.begin(), prompt.end());
  state_->past = 0;
  return state_->RunTo(static_cast<int64_t>(prompt.size()));
}

absl::StatusOr<std::vector<float>> Generator::Logits() {
  if (state_->tokens.empty()) {
    return absl::FailedPreconditionError("generate: there is no prompt; call Start() first");
  }
  ANEMONE_RETURN_IF_ERROR(state_->RunTo(static_cast<int64_t>(state_->tokens.size())));
  return state_->logits;
}

absl::StatusOr<int64_t> Generator::Next() {
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<float> logits, Logits());
  const std::vector<double> shares = TokenShares(logits, state_->sampling, state_->tokens);
  state_->tokens.push_back(ChooseToken(shares, state_->random));
  return state_->tokens.back();
}

const std::vector<int64_t>& Generator::tokens() const { return state_->tokens; }
const Session& Generator::session() const { return state_->session; }
const Generator::Names& Generator::names() const { return state_->names; }

}  // namespace anemone
