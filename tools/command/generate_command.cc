// `anemone generate`: continues tokens with a decoder, and compares with ONNX Runtime.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "anemone/generator.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "engine/formats/json.h"
#include "provider/decoder.h"
#include "provider/devices.h"
#include "provider/sampling.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/compare/child_process.h"
#include "tools/compare/contestants.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

// How the tokens compare with those of ONNX Runtime for the same prefix.
struct TokenComparison {
  int qualified = 0;          // steps whose first two logits differ by more than fp16 may change
  int equal = 0;              // of all steps
  int first_difference = -1;  // of the qualified steps
};

// The part of the largest logit by which fp16 may move one: a rounding is 2^-11 of a value, and a
// logit is the end of many.
constexpr float kBound = 1.0f / 128;

class Run {
 public:
  explicit Run(const Options& options) : options_(options) {}

  absl::Status Make();
  // `made` is what Make() returned.
  Json ToJson(const absl::Status& made) const;
  std::string ToText() const;
  bool has_tokens() const { return !tokens_.empty(); }
  const TokenComparison& compared() const { return compared_; }

 private:
  absl::Status Start(Generator& generator);
  absl::Status Continue(Generator& generator);
  absl::Status Compare(const Generator& generator);

  const Options& options_;
  std::vector<int64_t> tokens_;      // that were generated
  double prefill_ = 0, decode_ = 0;  // tokens in a second; 0: not known
  int64_t peak_memory_ = 0;          // before ONNX Runtime ran
  TokenComparison compared_;
};

double PerSecond(int64_t tokens, absl::Duration took) {
  const double seconds = absl::ToDoubleSeconds(took);
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

Sampling SamplingOf(const Options& options) {
  return {.temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .repetition_penalty = options.repetition_penalty,
          .seed = options.seed};
}

absl::Status Run::Start(Generator& generator) {
  const absl::Time begun = SteadyNow();
  ANEMONE_RETURN_IF_ERROR(generator.Start(options_.tokens, SamplingOf(options_)));
  prefill_ = PerSecond(static_cast<int64_t>(options_.tokens.size()), SteadyNow() - begun);
  return absl::OkStatus();
}

absl::Status Run::Continue(Generator& generator) {
  const absl::Time begun = SteadyNow();
  for (int64_t i = 0; i < options_.max_new; ++i) {
    const absl::StatusOr<int64_t> token = generator.Next();
    if (!token.ok()) {
      if (!options_.json && !tokens_.empty()) std::printf("\n");
      return token.status();
    }
    tokens_.push_back(*token);
    if (!options_.json) {
      std::printf(i == 0 ? "%lld" : ",%lld", static_cast<long long>(*token));
      std::fflush(stdout);
    }
    const auto& stops = options_.stops;
    if (std::find(stops.begin(), stops.end(), *token) != stops.end()) break;
  }
  if (!options_.json) std::printf("\n");
  // The first token comes from the prompt's logits, and the last one is not run.
  if (tokens_.size() > 1)
    decode_ = PerSecond(static_cast<int64_t>(tokens_.size()) - 1, SteadyNow() - begun);
  return absl::OkStatus();
}

// Runs the file on ONNX Runtime with the same tokens before each step.
absl::Status Run::Compare(const Generator& generator) {
  const std::vector<PortInfo>& ports = generator.session().inputs();
  const std::vector<int64_t>& all = generator.tokens();
  const std::vector<std::vector<int64_t>> rows = {all};
  OrtContestant model(options_.settings.threads, options_.settings.memory_limit);
  const auto prompt = static_cast<int64_t>(options_.tokens.size());
  int64_t past = 0;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const int64_t end = prompt + static_cast<int64_t>(i);
    ANEMONE_ASSIGN_OR_RETURN(Arrays inputs,
                             DecoderInputs(generator.names(), ports, rows, past, end));
    if (i == 0) {
      for (const PortInfo& port : ports) {  // an empty cache
        if (!generator.session().StatePairs().contains(port.name)) continue;
        ANEMONE_ASSIGN_OR_RETURN(const Tensor full, generator.session().ReadState(port.name));
        std::vector<int64_t> dims = full.dims();
        const auto cached = static_cast<int64_t>(all.size()) - 1;  // the last token was not run
        const auto rows = std::find(dims.begin() + 1, dims.end(), cached);
        if (rows != dims.end()) *rows = 0;
        inputs[port.name] = Tensor::Zeros(port.type, dims);
      }
      ANEMONE_RETURN_IF_ERROR(model.Load(options_.arguments[0], inputs));
    } else {
      ANEMONE_ASSIGN_OR_RETURN(const Arrays outputs, model.Outputs());
      for (const auto& [input, output] : generator.session().StatePairs()) {
        inputs[input] = outputs.at(output);
      }
      ANEMONE_RETURN_IF_ERROR(model.SetInputs(inputs));
    }
    ANEMONE_RETURN_IF_ERROR(model.Run());
    past = end;
    ANEMONE_ASSIGN_OR_RETURN(const Arrays outputs, model.Outputs());
    ANEMONE_ASSIGN_OR_RETURN(const auto all_logits,
                             LastLogits(outputs.at(generator.names().logits), 1));
    const std::vector<float>& logits = all_logits[0];
    const auto best = std::max_element(logits.begin(), logits.end());
    float second = -HUGE_VALF, largest = 0;
    for (auto at = logits.begin(); at != logits.end(); ++at) {
      if (at != best) second = std::max(second, *at);
      largest = std::max(largest, std::abs(*at));
    }
    const bool is_equal = best - logits.begin() == tokens_[i];
    const bool is_qualified = *best - second > kBound * largest;
    compared_.equal += is_equal;
    compared_.qualified += is_qualified;
    if (is_qualified && !is_equal && compared_.first_difference < 0) {
      compared_.first_difference = static_cast<int>(i);
    }
  }
  return absl::OkStatus();
}

absl::Status Run::Make() {
  std::optional<Progress> progress(std::in_place, options_.quiet);
  progress->Step(absl::StrCat("loading ", options_.arguments[0]));
  ANEMONE_ASSIGN_OR_RETURN(Generator generator,
                           Generator::Load(options_.arguments[0], SettingsOf(options_)));
  progress->Step("running the prompt");
  ANEMONE_RETURN_IF_ERROR(Start(generator));
  progress.reset();
  const absl::Status continued = Continue(generator);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  peak_memory_ = static_cast<int64_t>(PeakMemoryOf(usage));
  ANEMONE_RETURN_IF_ERROR(continued);
  if (options_.verbose && !options_.json) {
    std::fputs(generator.session().PlanText(/*every_node=*/false).c_str(), stdout);
  }
  for (const std::string& text : generator.session().RunWarnings()) {
    Note(absl::StrCat("warning: ", text));
  }
  return options_.compare ? Compare(generator) : absl::OkStatus();
}

Json Run::ToJson(const absl::Status& made) const {
  Json json = {{"schema", 1},
               {"prompt", options_.tokens},
               {"tokens", tokens_},
               {"text", nullptr},
               {"prefill_tokens_per_second", prefill_},
               {"decode_tokens_per_second", decode_ > 0 ? Json(decode_) : Json(nullptr)},
               {"device", DeviceText(SettingsOf(options_))},
               {"peak_memory_bytes", peak_memory_},
               {"compare", nullptr},
               {"error", made.ok() ? Json(nullptr) : Json(Printable(made.message()))}};
  if (options_.compare && made.ok()) {
    json["compare"] = {
        {"tokens_equal", compared_.equal},
        {"qualified", compared_.qualified},
        {"first_difference",
         compared_.first_difference < 0 ? Json(nullptr) : Json(compared_.first_difference)}};
  }
  return json;
}

std::string Run::ToText() const {
  std::string text;
  if (options_.compare) {
    absl::StrAppendFormat(&text,
                          "ONNX Runtime chooses the same token in %d of %d steps; in %d steps its "
                          "first two logits differ by more than fp16 may change, %s\n",
                          compared_.equal, tokens_.size(), compared_.qualified,
                          compared_.first_difference < 0
                              ? "and there the tokens are equal"
                              : absl::StrCat("and step ", compared_.first_difference,
                                             " is the first of them with another token"));
  }
  if (!options_.quiet) {
    absl::StrAppendFormat(&text, "%.1f tokens/s of the prompt, %.1f tokens/s after it (%s)\n",
                          prefill_, decode_, DeviceText(SettingsOf(options_)));
  }
  return text;
}

}  // namespace

int GenerateCommand(const Options& options) {
  if (options.tokens.empty()) {
    return FailUsage("--tokens: give the prompt as token ids, as in --tokens 1,15043,29892");
  }
  if (options.compare && (options.temperature != 0 || options.repetition_penalty != 1)) {
    return FailUsage(
        "--compare: needs the likeliest tokens; leave --temperature and --repetition-penalty out");
  }
  if (options.compare && !options.settings.adapters.empty())
    return FailUsage(kAdapterIsNotCompared);
  const absl::Status sampling = CheckSampling(SamplingOf(options));
  if (!sampling.ok()) return FailUsage(sampling.message());
  Run run(options);
  const absl::Status made = OfModel(run.Make(), options.arguments[0]);
  if (!made.ok()) {
    if (options.json && run.has_tokens()) PrintJson(run.ToJson(made));
    return Fail(made);
  }
  if (options.json) {
    PrintJson(run.ToJson(made));
  } else {
    std::fputs(run.ToText().c_str(), stdout);
  }
  return run.compared().first_difference < 0 ? kExitDone : kExitThreshold;
}

}  // namespace anemone
