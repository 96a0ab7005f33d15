#include "provider/ort/options.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

constexpr int kMostNodes = 1 << 20;  // no larger segment is worth asking for

template <auto Option>
absl::Status Keep(PluginOptions& options, const std::string& value) {
  options.*Option = value;
  return absl::OkStatus();
}

const PluginOption kOwnOptions[] = {
    {"min_segment_nodes", "1 to 1048576", "1", "Leave smaller segments to the other providers.",
     [](PluginOptions& options, const std::string& value) {
       int64_t nodes = 0;
       ANEMONE_RETURN_IF_ERROR(StoreInteger(value, 1, kMostNodes, nodes));
       options.min_segment_nodes = static_cast<int>(nodes);
       return absl::OkStatus();
     }},
    {"cache_dir", "a folder", "",
     "Keep compiled segments here for later sessions, at most 2 GiB of them.",
     Keep<&PluginOptions::cache_dir>},
    {"report_path", "a file", "",
     "Write where every node runs and why, as `anemone check --json` does "
     "(docs/schemas/check.json).",
     Keep<&PluginOptions::report_path>},
    {"profile_path", "a file", "",
     "Write a Chrome trace of all runs when the session ends; it grows with every run.",
     Keep<&PluginOptions::profile_path>},
};

std::vector<PluginOption> MakeTable() {
  std::vector<PluginOption> table;
  for (const Setting& setting : AllSettings()) {
    if ((setting.entries & kPlugin) == 0) continue;
    table.push_back({setting.name, ValuesText(setting), setting.fallback, MeaningText(setting),
                     [&setting](PluginOptions& options, const std::string& value) {
                       return setting.store(options.settings, value);
                     }});
  }
  table.insert(table.end(), std::begin(kOwnOptions), std::end(kOwnOptions));
  return table;
}

absl::Status Store(const std::string& name, const std::string& value, PluginOptions& options) {
  for (const PluginOption& option : PluginOptionTable()) {
    if (name != option.name) continue;
    absl::Status status = option.store(options, value);
    // ONNX Runtime would call it a missing file.
    if (absl::IsNotFound(status)) status = absl::InvalidArgumentError(status.message());
    return Annotated(status, absl::StrCat("provider option '", name, "' = '", value, "'"));
  }
  const std::string names = absl::StrJoin(
      PluginOptionTable(), ", ",
      [](std::string* to, const PluginOption& option) { absl::StrAppend(to, option.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("provider option '", name, "': unknown option; valid: ", names));
}

}  // namespace

absl::Span<const PluginOption> PluginOptionTable() {
  static const std::vector<PluginOption>* const table = new std::vector<PluginOption>(MakeTable());
  return *table;
}

absl::StatusOr<PluginOptions> ReadPluginOptions(const std::map<std::string, std::string>& given) {
  PluginOptions options;
  options.names_target = given.count("target") > 0;
  for (const auto& [name, value] : given) {
    ANEMONE_RETURN_IF_ERROR(Store(name, value, options));
  }
  ANEMONE_ASSIGN_OR_RETURN(options.planning, RunPlanOptionsOf(options.settings));
  ANEMONE_ASSIGN_OR_RETURN(options.numerics, NumericsMode::Parse(options.settings.numerics));
  return options;
}

}  // namespace anemone
