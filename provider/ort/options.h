// provider/ort/options.h: the plugin's provider options: the settings that it takes
// (provider/settings.h), and its own. They are read, listed in errors and documented in
// docs/plugin.md from one table.
#ifndef ANEMONE_PROVIDER_ORT_OPTIONS_H_
#define ANEMONE_PROVIDER_ORT_OPTIONS_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/numerics_mode.h"
#include "partitioner/plan.h"
#include "provider/settings.h"

namespace anemone {

struct PluginOptions {
  Settings settings;
  PlanOptions planning;       // of `settings`
  NumericsMode numerics;      // of `settings`
  bool names_target = false;  // the user names one; else a compiled model may choose
  int min_segment_nodes = 1;
  std::string cache_dir;     // "" for no cache
  std::string report_path;   // "" for no report
  std::string profile_path;  // "" for no profile
};

struct PluginOption {
  std::string name;
  std::string values;    // the valid values
  std::string fallback;  // the default
  std::string meaning;
  std::function<absl::Status(PluginOptions& options, const std::string& value)> store;
};

// All of them. docs/plugin.md has the plugin's own, docs/options.md the settings.
absl::Span<const PluginOption> PluginOptionTable();

// Errors: kInvalidArgument (no such option or value; lists the valid ones), kUnimplemented
// (device=apple).
absl::StatusOr<PluginOptions> ReadPluginOptions(const std::map<std::string, std::string>& given);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_OPTIONS_H_
