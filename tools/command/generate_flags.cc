// The flags of `anemone generate`.
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/command/flag_values.h"
#include "tools/command/flags.h"

namespace anemone {
namespace {

// Adds token ids, which are separated by commas.
absl::Status StoreTokens(const std::string& text, std::vector<int64_t>& to) {
  for (absl::string_view token : absl::StrSplit(text, ',')) {
    ANEMONE_RETURN_IF_ERROR(StoreInteger(std::string(token), 0, std::numeric_limits<int32_t>::max(),
                                         to.emplace_back()));
  }
  return absl::OkStatus();
}

const Flag kGenerateFlags[] = {
    {.name = "tokens",
     .value = "N[,N...]",
     .commands = kGenerate,
     .brief = "The prompt, as token ids.",
     .help = "",
     .store = [](Options& o, const std::string& v) { return StoreTokens(v, o.tokens); }},
    {.name = "max-new",
     .value = "N",
     .commands = kGenerate,
     .fallback = "32",
     .brief = "How many tokens to generate.",
     .help = "",
     .store = [](Options& o,
                 const std::string& v) { return StoreInteger(v, 1, 1 << 20, o.max_new); }},
    {.name = "temperature",
     .value = "T",
     .commands = kGenerate,
     .fallback = "0",
     .brief = "Divide the logits by T; with 0 the likeliest token is chosen.",
     .help = "",
     .store = [](Options& o, const std::string& v) { return StoreNumber(v, o.temperature); }},
    {.name = "top-k",
     .value = "K",
     .commands = kGenerate,
     .fallback = "0",
     .brief = "Choose among the K likeliest tokens; 0: all.",
     .help = "",
     .store =
         [](Options& o, const std::string& v) {
           return StoreInteger(v, 0, std::numeric_limits<int32_t>::max(), o.top_k);
         }},
    {.name = "top-p",
     .value = "P",
     .commands = kGenerate,
     .fallback = "1",
     .brief = "Choose among as many of the likeliest tokens as have this share together.",
     .help = "",
     .store = [](Options& o, const std::string& v) { return StoreNumber(v, o.top_p); }},
    {.name = "repetition-penalty",
     .value = "R",
     .commands = kGenerate,
     .fallback = "1",
     .brief = "Make tokens that were used less likely.",
     .help = "Their logits are divided by R if they are positive, and multiplied by R if not.",
     .store = [](Options& o,
                 const std::string& v) { return StoreNumber(v, o.repetition_penalty); }},
    {.name = "stop",
     .value = "ID",
     .commands = kGenerate,
     .brief = "Stop after this token.",
     .help = "Can be given several times.",
     .store = [](Options& o, const std::string& v) { return StoreTokens(v, o.stops); }},
    {.name = "seed",
     .value = "N",
     .commands = kGenerate,
     .fallback = "0",
     .brief = "Seed of the choice of tokens.",
     .help = "",
     .store = StoreSeed},
    {.name = "compare",
     .value = nullptr,
     .commands = kGenerate,
     .brief = "Compare each token with ONNX Runtime's for the same tokens before it.",
     .help =
         "The exit code is 3 if a token differs although ONNX Runtime's first two logits differ "
         "by more than 1/128 of its largest logit.",
     .store = Set<&Options::compare, true>},
};

}  // namespace

absl::Span<const Flag> GenerateFlags() { return kGenerateFlags; }

}  // namespace anemone
