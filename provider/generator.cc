#include "anemone/generator.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/refused_sizes.h"
#include "provider/compiled/compiled_model.h"
#include "provider/decoder.h"
#include "provider/ports.h"
#include "provider/sampling.h"

namespace anemone {
namespace {

constexpr int64_t kLargestPart = 1024, kSmallestPart = 32;
constexpr int kPlans = 16;  // a program for each size of a part, at two capacities

Settings WithCache(Settings settings) {
  if (settings.state.empty()) settings.state[kUsualPairs] = "";
  settings.max_plans = std::max(settings.max_plans, kPlans);
  // Not of prompts that are padded to a bucket, whose last row is no token.
  settings.last_logits = settings.buckets.empty();
  return settings;
}

// No run of a generator names an adapter.
absl::Status CheckAdapters(const Settings& settings) {
  for (const auto& [name, file] : settings.adapters) {
    if (name.empty()) continue;
    return UsageError(absl::StrCat("adapter '", Printable(name),
                                   "': all tokens are generated with the adapter whose name is "
                                   "empty; give it the name \"\""));
  }
  return absl::OkStatus();
}

// The rows of caches of a fixed size; the largest number if they have no fixed size.
int64_t MostRows(const Session& session) {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const auto& [input, output] : session.StatePairs()) {
    const std::vector<int64_t>& dims = FindPort(session.inputs(), input)->dims;
    if (dims.size() == 4 && dims[2] >= 0) most = std::min(most, dims[2]);
  }
  return most;
}

// The index that ONNX Runtime's Gather refuses: "... idx=99 must be within ...".
std::optional<int64_t> RefusedIndex(absl::string_view message) {
  constexpr absl::string_view kBefore = "out of data bounds, idx=";
  const size_t at = message.find(kBefore);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = message.substr(at + kBefore.size());
  int64_t index = 0;
  if (!absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &index)) return std::nullopt;
  return index;
}

}  // namespace

struct Generator::State {
  Session session;
  Names names;
  Sampling sampling;
  std::vector<std::mt19937_64> random;  // by row of the batch
  // By row; empty before Start().
  std::vector<std::vector<int64_t>> tokens = std::vector<std::vector<int64_t>>(1);
  int64_t past = 0;                        // tokens of each row in the cache
  int64_t most_rows = 0;                   // of the cache
  std::vector<std::vector<float>> logits;  // by row

  absl::Status RunTo(int64_t end);
  absl::Status RunAll();
  absl::Status Explained(const absl::Status& status, int64_t end) const;
};

// Runs the model on the tokens before `end` that are not in the cache.
absl::Status Generator::State::RunTo(int64_t end) {
  while (past < end) {
    const std::vector<int64_t>& ids = FindPort(session.inputs(), names.ids)->dims;
    int64_t part = ids.size() == 2 && ids[1] == 1 ? 1 : kLargestPart;
    while (part > end - past && part > kSmallestPart) part /= 2;
    if (part > end - past) part = 1;
    if (past + part > most_rows) {
      return absl::InvalidArgumentError(absl::StrCat("generate: a context of ", past + part,
                                                     " tokens is longer than the model's cache of ",
                                                     most_rows, "; give or generate fewer tokens"));
    }
    ANEMONE_ASSIGN_OR_RETURN(auto inputs,
                             DecoderInputs(names, session.inputs(), tokens, past, past + part));
    const auto outputs = session.Run(inputs);
    if (!outputs.ok()) return Explained(outputs.status(), past + part);
    ANEMONE_ASSIGN_OR_RETURN(
        logits, LastLogits(outputs->at(names.logits), static_cast<int64_t>(tokens.size())));
    past += part;
  }
  return absl::OkStatus();
}

// The error of running the tokens from `past` to `end`, with what may be the reason. If the model
// could have the sizes until now, it cannot have more tokens. An index that a Gather refuses is a
// position behind the end of the model's table, or a token that it does not know.
absl::Status Generator::State::Explained(const absl::Status& status, int64_t end) const {
  const std::string context = absl::StrCat("generate: a context of ", end, " tokens");
  if (absl::IsResourceExhausted(status) && end > kSmallestPart) return Annotated(status, context);
  const auto refusal = status.GetPayload(kRefusalPayload);
  if (refusal && past > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, " is longer than the model can have: ", std::string(*refusal),
                     "; give or generate fewer tokens"));
  }
  const std::optional<int64_t> index = RefusedIndex(status.message());
  if (!index) return status;
  const bool is_token = std::any_of(tokens.begin(), tokens.end(), [&](const auto& row) {
    return std::find(row.begin() + past, row.begin() + end, *index) != row.begin() + end;
  });
  if (is_token && (*index < past || *index >= end)) {
    return UsageError(absl::StrCat("generate: the model has no token ", *index,
                                   "; give tokens of its vocabulary"));
  }
  return absl::Status(status.code(),
                      absl::StrCat(context, " is longer than the positions of the model (index ",
                                   *index, "); give or generate fewer tokens"));
}

Generator::Generator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

absl::StatusOr<Generator> Generator::Of(absl::StatusOr<Session> session) {
  ANEMONE_RETURN_IF_ERROR(session.status());
  if (session->StatePairs().empty()) {
    return absl::InvalidArgumentError(
        "generate: the model has no cache; export it with past and present values, or name them "
        "with --state");
  }
  ANEMONE_ASSIGN_OR_RETURN(Names names, DecoderNames(*session));
  const int64_t most_rows = MostRows(*session);
  return Generator(std::make_unique<State>(
      State{.session = *std::move(session), .names = std::move(names), .most_rows = most_rows}));
}

absl::StatusOr<Generator> Generator::Load(const std::string& path, const Settings& settings) {
  ANEMONE_RETURN_IF_ERROR(CheckAdapters(settings));
  Settings with = WithCache(settings);
  if (CompiledModel::Is(path)) with.last_logits = settings.last_logits;  // as it was compiled
  return Of(Session::Load(path, with));
}

absl::StatusOr<Generator> Generator::LoadBytes(absl::string_view model, const Settings& settings) {
  ANEMONE_RETURN_IF_ERROR(CheckAdapters(settings));
  return Of(Session::LoadBytes(model, WithCache(settings)));
}

bool Generator::TakesBatches() const {
  const auto is_free = [&](const std::string& input) {
    const PortInfo* port = FindPort(state_->session.inputs(), input);
    return port != nullptr && !port->dims.empty() && port->dims[0] < 0;
  };
  const auto pairs = state_->session.StatePairs();
  return is_free(state_->names.ids) &&
         std::all_of(pairs.begin(), pairs.end(),
                     [&](const auto& pair) { return is_free(pair.first); });
}

absl::Status Generator::Start(absl::Span<const int64_t> prompt, const Sampling& sampling) {
  const std::vector<int64_t> row(prompt.begin(), prompt.end());
  return StartBatch({&row, 1}, sampling);
}

absl::Status Generator::StartBatch(absl::Span<const std::vector<int64_t>> prompts,
                                   const Sampling& sampling) {
  ANEMONE_RETURN_IF_ERROR(CheckSampling(sampling));
  if (prompts.empty()) {
    return absl::InvalidArgumentError("generate: there is no prompt; give at least one");
  }
  for (const std::vector<int64_t>& prompt : prompts) {
    if (prompt.empty()) {
      return absl::InvalidArgumentError("generate: the prompt has no token; give at least one");
    }
    if (prompt.size() != prompts[0].size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("generate: prompts of ", prompts[0].size(), " and ", prompt.size(),
                       " tokens; the prompts of a batch have one length"));
    }
    for (const int64_t token : prompt) {
      if (token >= 0 && token <= std::numeric_limits<int32_t>::max()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("generate: token ", token,
                       " is not a number from 0 to 2147483647; give tokens of the vocabulary"));
    }
  }
  if (prompts.size() > 1 && !TakesBatches()) {
    return absl::FailedPreconditionError(
        "generate: the model takes one prompt at a time; export it with a free batch");
  }
  state_->session.ResetState();
  state_->sampling = sampling;
  state_->random.assign(prompts.size(), std::mt19937_64(sampling.seed));
  state_->tokens.assign(prompts.begin(), prompts.end());
  state_->past = 0;
  return state_->RunTo(static_cast<int64_t>(prompts[0].size()));
}

// Runs the model on tokens that it did not run on.
absl::Status Generator::State::RunAll() {
  if (tokens[0].empty()) {
    return absl::FailedPreconditionError("generate: there is no prompt; call Start() first");
  }
  return RunTo(static_cast<int64_t>(tokens[0].size()));
}

absl::StatusOr<std::vector<float>> Generator::Logits() {
  ANEMONE_RETURN_IF_ERROR(state_->RunAll());
  return state_->logits[0];
}

absl::StatusOr<std::vector<int64_t>> Generator::NextBatch() {
  ANEMONE_RETURN_IF_ERROR(state_->RunAll());
  std::vector<int64_t> next;
  for (size_t row = 0; row < state_->tokens.size(); ++row) {
    std::vector<int64_t>& tokens = state_->tokens[row];
    const std::vector<float>& logits = state_->logits[row];
    if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); })) {
      return absl::OutOfRangeError(absl::StrCat(
          "generate: the logits after ", tokens.size(),
          " tokens have NaN: a value before them is above 65504, the largest of fp16; run the "
          "model to see which (Session, `anemone run`), and keep its node on the CPU (policy "
          "refuse:node:NODE)"));
    }
    const std::vector<double> shares = TokenShares(logits, state_->sampling, tokens);
    tokens.push_back(ChooseToken(shares, state_->random[row]));
    next.push_back(tokens.back());
  }
  return next;
}

absl::StatusOr<int64_t> Generator::Next() {
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<int64_t> next, NextBatch());
  return next[0];
}

Generator Generator::Fork() const {
  return Generator(std::make_unique<State>(State{
      .session = state_->session.Fork(), .names = state_->names, .most_rows = state_->most_rows}));
}

const std::vector<int64_t>& Generator::tokens() const { return state_->tokens[0]; }
const Session& Generator::session() const { return state_->session; }
const Generator::Names& Generator::names() const { return state_->names; }

}  // namespace anemone
