#include "provider/ort/options.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "base/threads.h"

namespace anemone {
namespace {

// So many nodes of a segment are asked for by nobody.
constexpr int kMostNodes = 1 << 20;

absl::Status StoreNumber(const std::string& value, int least, int most, int& to) {
  int number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= least && number <= most) {
    to = number;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("want a whole number, ", least, " to ", most));
}

absl::Status StoreTarget(const std::string& value, PluginOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(options.planning.target, FindTarget(value));
  return absl::OkStatus();
}

absl::Status StoreDevice(const std::string& value, PluginOptions&) {
  if (value == "auto" || value == "software") return absl::OkStatus();
  if (value == "apple") {
    return absl::UnimplementedError("not in this version; use auto or software");
  }
  return absl::InvalidArgumentError("want auto, software or apple");
}

absl::Status StoreNumerics(const std::string& value, PluginOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(options.numerics, NumericsMode::Parse(value));
  return absl::OkStatus();
}

absl::Status StorePolicy(const std::string& value, PluginOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(options.planning.policy, Policy::Parse(value));
  return absl::OkStatus();
}

absl::Status StoreRewrites(const std::string& value, PluginOptions& options) {
  // ONNX Runtime's own switches are 0 and 1; Python's str(True) is "True".
  const bool on = value == "true" || value == "True" || value == "1";
  const bool off = value == "false" || value == "False" || value == "0";
  if (!on && !off) return absl::InvalidArgumentError("want true or false");
  options.planning.rewrites = on;
  return absl::OkStatus();
}

constexpr PluginOption kOptions[] = {
    {"target", "a target or product: `h13`, `m1-pro`, `A15`", "h13",
     "which engine judges, and whose rules the software engine obeys; `anemone targets` lists them",
     StoreTarget},
    {"device", "`auto`, `software`, `apple`", "auto",
     "what runs the segments; `apple` is refused in this version", StoreDevice},
    {"numerics", "`fast`, `exact`, `exact,RULE=OPTION[,...]`", "fast",
     "fp16 storage with fp32 sums, or every known rule of the engine's arithmetic, with options "
     "for those that are open",
     StoreNumerics},
    {"policy", "`maximal`, `cpu`, `refuse:UNIT[,UNIT...]`", "maximal",
     "what is kept off the engine though the target would take it", StorePolicy},
    {"min_segment_nodes", "1 to 1048576", "1",
     "segments of fewer nodes stay with the other providers",
     [](const std::string& value, PluginOptions& options) {
       return StoreNumber(value, 1, kMostNodes, options.min_segment_nodes);
     }},
    {"cache_dir", "a folder", "",
     "where compiled segments are kept from one session to the next; at most 2 GiB of them",
     [](const std::string& value, PluginOptions& options) {
       options.cache_dir = value;
       return absl::OkStatus();
     }},
    {"report_path", "a file", "",
     "where every node went and why, as `anemone check --json` says it (docs/schemas/check.json)",
     [](const std::string& value, PluginOptions& options) {
       options.report_path = value;
       return absl::OkStatus();
     }},
    {"profile_path", "a file", "",
     "a Chrome trace of all runs, written when the session ends; it grows with every run",
     [](const std::string& value, PluginOptions& options) {
       options.profile_path = value;
       return absl::OkStatus();
     }},
    {"rewrites", "`true`, `false`", "true",
     "whether an operator may become other units than its own", StoreRewrites},
    {"threads", "0 to 1024", "0",
     "how many threads compute, the caller's included; 0: one for each core",
     [](const std::string& value, PluginOptions& options) {
       return StoreNumber(value, 0, kMostThreads, options.threads);
     }},
};

absl::Status Store(const std::string& name, const std::string& value, PluginOptions& options) {
  for (const PluginOption& option : kOptions) {
    if (name != option.name) continue;
    return Annotated(option.store(value, options),
                     absl::StrCat("provider option '", name, "' = '", value, "'"));
  }
  const std::string names = absl::StrJoin(kOptions, ", ", [](std::string* to, const auto& option) {
    absl::StrAppend(to, option.name);
  });
  return absl::InvalidArgumentError(
      absl::StrCat("provider option '", name, "': there is none of that name; there are ", names));
}

}  // namespace

absl::Span<const PluginOption> PluginOptionTable() { return kOptions; }

absl::StatusOr<PluginOptions> ReadPluginOptions(const std::map<std::string, std::string>& given) {
  PluginOptions options;
  for (const PluginOption& option : kOptions) {
    ANEMONE_RETURN_IF_ERROR(option.store(option.fallback, options));
  }
  options.names_target = given.count("target") > 0;
  for (const auto& [name, value] : given) {
    ANEMONE_RETURN_IF_ERROR(Store(name, value, options));
  }
  return options;
}

}  // namespace anemone
