// provider/ort/options.h: the plugin's provider options, in one table from which they are read,
// listed in errors and told in docs/plugin.md.
#ifndef ANEMONE_PROVIDER_ORT_OPTIONS_H_
#define ANEMONE_PROVIDER_ORT_OPTIONS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/numerics_mode.h"
#include "partitioner/plan.h"

namespace anemone {

struct PluginOptions {
  PlanOptions planning;
  bool names_target = false;  // the user has; else a compiled model may choose
  NumericsMode numerics;
  int min_segment_nodes = 1;
  std::string cache_dir;     // "": no cache
  std::string report_path;   // "": no report
  std::string profile_path;  // "": no profile
  int threads = 0;           // 0: one for each core
};

struct PluginOption {
  const char* name;
  const char* values;    // what may be given
  const char* fallback;  // what holds if it is not
  const char* meaning;
  absl::Status (*store)(const std::string& value, PluginOptions& options);
};

absl::Span<const PluginOption> PluginOptionTable();

// Errors: kInvalidArgument (no such option, or value; lists those that there are), kNotFound (no
// such target), kUnimplemented (device=apple).
absl::StatusOr<PluginOptions> ReadPluginOptions(const std::map<std::string, std::string>& given);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_OPTIONS_H_
