// provider/settings.h: the one table of settings. The command's flags, the plugin's provider
// options, Python's keywords, docs/options.md and the key of the program cache are made from it. A
// new setting is a field of anemone/settings.h, a row here, and the place that uses it.
#ifndef ANEMONE_PROVIDER_SETTINGS_H_
#define ANEMONE_PROVIDER_SETTINGS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/settings.h"
#include "partitioner/plan.h"

namespace anemone {

// Where settings are given: a set of bits.
enum EntryPoint : unsigned {
  kCheck = 1,  // commands
  kRun = 2,
  kBench = 4,
  kConfirm = 8,
  kConvert = 16,
  kCompile = 32,
  kPlugin = 64,
  kPythonCheck = 128,
  kPythonSession = 256,
  kDiff = 512,
  kZoo = 1024,
  kReport = 2048,
  kTrain = 1 << 13,
  kGenerate = 1 << 14,
  kPatch = 1 << 15,
};
inline constexpr unsigned kReadsModel =
    kCheck | kRun | kBench | kConvert | kCompile | kDiff | kZoo | kReport | kTrain | kGenerate;
inline constexpr unsigned kPython = kPythonCheck | kPythonSession;

struct Setting {
  const char* name;   // of the field, the provider option and the keyword
  const char* flag;   // of the command, without dashes
  const char* value;  // as usage shows it; null for a setting that is on or off
  const char* type;   // of the keyword, as Python writes it
  unsigned entries;   // where it can be given
  const char* fallback;
  const char* brief;  // one sentence
  const char* help;   // more sentences, or ""
  // For the plugin and Python, if `brief` describes a switch that turns the setting off.
  const char* brief_of_value = nullptr;
  std::vector<std::string> (*choices)() = nullptr;  // for completion
  // Reads a value. Errors say what is wanted; the caller adds the name of the setting.
  absl::Status (*store)(Settings& settings, const std::string& value);
  // The value in one form, which `store` reads, for the key of the program cache and for compiled
  // models; null if the setting does not change a program. tests/provider/ort/options_test.cc lists
  // the settings of the plugin that do not.
  std::string (*key)(const Settings& settings) = nullptr;
};

absl::Span<const Setting> AllSettings();
// Null if there is no such setting.
const Setting* FindSetting(absl::string_view name);

// As documents of the plugin and of Python show them: "`true` or `false`"; brief and help.
std::string ValuesText(const Setting& setting);
std::string MeaningText(const Setting& setting);

inline constexpr int64_t kLargestSize = std::numeric_limits<int32_t>::max();  // of a dimension

// Reads a whole number. kInvalidArgument: `text` is not one, or is out of the range.
absl::Status StoreInteger(const std::string& text, int64_t low, int64_t high, int64_t& to);
// Reads one of `choices`. kInvalidArgument: lists them.
absl::Status StoreChoice(const std::string& text, absl::Span<const std::string> choices,
                         std::string& to);
// "1x3x8x8" or "1,3,8,8", or "scalar"; `?`, read as -1, for a dimension without a size.
absl::Status ReadShape(const std::string& text, std::vector<int64_t>& dims);
// Splits "NAME=VALUE" at the last '=', since a name may hold one.
absl::Status SplitPair(const std::string& text, std::string& name, std::string& value);
// A new entry of a map that options fill. kInvalidArgument: it is given twice.
template <class T>
absl::StatusOr<T*> NewEntry(std::map<std::string, T>& of, const std::string& name) {
  const auto [place, is_new] = of.try_emplace(name);
  if (is_new) return &place->second;
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is given twice, want it once"));
}

// The targets of `settings.target`: names separated by commas, "all" replaced by every name, each
// target once. Names that are not targets are kept.
std::vector<std::string> TargetsOf(const Settings& settings);

// `ort_library` becomes `path`, unless the environment names a library. (In Python, to ask the
// environment takes 3 % of the time to load a small model.)
void UseInstalledLibrary(Settings& settings, const std::string& path);

// "nodes=1000,tensor-bytes=4096", for the keys of caches; "" without limits.
std::string LimitsText(const Settings& settings);

// UsageError: a size that no dimension can have, or a dimension has a range of sizes, which only a
// Core ML package can have.
absl::Status RequireSizes(const Settings& settings);

// Settings of one target as the partitioner takes them. Errors: kNotFound (no such target, with
// near names), kInvalidArgument (route, policy).
absl::StatusOr<PlanOptions> PlanOptionsOf(const Settings& settings);
// The same for a plan that is run: `linear_layers` = "auto" depends on the numerics.
absl::StatusOr<PlanOptions> RunPlanOptionsOf(const Settings& settings);

// Checks the settings that planning does not look at. kInvalidArgument, kUnimplemented.
absl::Status CheckRunSettings(const Settings& settings);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SETTINGS_H_
