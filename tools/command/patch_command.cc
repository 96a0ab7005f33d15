// `anemone compile` without --compress, and `anemone patch`: compiled models as folders.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/memory_limit.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "provider/compiled/compile.h"
#include "provider/compiled/compiled_model.h"
#include "provider/compiled/patch.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/compare/inputs.h"
#include "tools/compare/weights_file.h"

namespace anemone {
namespace {

absl::Status Compile(const Options& options) {
  const std::string& model = options.arguments[0];
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("planning ", model));
  ANEMONE_ASSIGN_OR_RETURN(const Compiled made,
                           CompileModel(model, SettingsOf(options), options.output));
  if (options.json) {
    PrintJson({{"schema", 1},
               {"model", model},
               {"output", options.output},
               {"plan", made.line},
               {"weights_version", made.weights_version}});
    return absl::OkStatus();
  }
  PrintWrapped(absl::StrCat(Printable(model), " -> ", Printable(options.output)), 2);
  PrintWrapped(made.line, 2);
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Tensor>> ReadLimitedWeights(const Options& options) {
  const MemoryLimit memory(options.settings.memory_limit, "reading weights");
  const WorkPlace place([&] { return options.weights; });
  return Guarded("read the weights", [&] { return ReadWeights(options.weights); });
}

absl::Status Patch(const Options& options) {
  const std::string& folder = options.arguments[0];
  const std::string& output = options.output.empty() ? folder : options.output;
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("reading ", options.weights));
  if (!CompiledModel::Is(folder)) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder,
                     ": not a compiled model; write one with `anemone compile MODEL -o "
                     "DIR`, without --compress"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const auto weights, ReadLimitedWeights(options));
  progress.Step(absl::StrCat("patching ", folder));
  ANEMONE_ASSIGN_OR_RETURN(const Patched patched,
                           PatchModel(folder, weights, output, SettingsOf(options)));
  if (options.json) {
    PrintJson({{"schema", 1},
               {"package", folder},
               {"weights", options.weights},
               {"output", output},
               {"changed", patched.changed},
               {"planned_again", patched.planned_again},
               {"weights_version", patched.compiled.weights_version}});
    return absl::OkStatus();
  }
  const size_t count = patched.changed.size();
  PrintWrapped(absl::StrCat(Printable(folder), " -> ", Printable(output), ": ", count,
                            count == 1 ? " weight changed" : " weights changed",
                            patched.planned_again ? ", and what follows from them" : ""),
               2);
  if (options.verbose) {
    for (const std::string& name : patched.changed) PrintWrapped(Printable(name), 2);
  }
  return absl::OkStatus();
}

}  // namespace

int CompileFolder(const Options& options) {
  const absl::Status status = Compile(options);
  return status.ok() ? kExitDone : Fail(OfModel(status, options.arguments[0]));
}

int PatchCommand(const Options& options) {
  if (options.weights.empty()) {
    return FailUsage("patch: no weights are given; give --weights FILE");
  }
  const absl::Status status = Patch(options);
  return status.ok() ? kExitDone : Fail(OfModel(status, options.arguments[0]));
}

}  // namespace anemone
