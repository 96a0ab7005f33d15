// provider/setting_stores.h: how the table of provider/settings.cc reads and checks each setting.
// Only that file includes it.
#ifndef ANEMONE_PROVIDER_SETTING_STORES_H_
#define ANEMONE_PROVIDER_SETTING_STORES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "provider/settings.h"

namespace anemone {

inline constexpr int kMostPlans = 1 << 20;  // no session uses more sizes

// A parsed value; an error says of which setting.
template <class T>
absl::StatusOr<T> Named(const char* name, const std::string& value, absl::StatusOr<T> parsed) {
  if (parsed.ok()) return parsed;
  return Annotated(parsed.status(), absl::StrCat(name, " '", value, "'"));
}

// A switch of the command has no value: it turns the setting on, or off if it is on by default.
template <auto Field>
absl::Status StoreSwitch(Settings& settings, const std::string& value) {
  // ONNX Runtime's own options are 0 and 1; Python's str(True) is "True".
  const bool on = value == "true" || value == "True" || value == "1";
  const bool off = value == "false" || value == "False" || value == "0";
  if (!on && !off && !value.empty()) return absl::InvalidArgumentError("want true or false");
  settings.*Field = value.empty() ? !(Settings().*Field) : on;
  return absl::OkStatus();
}

// Choices, for completion.
std::vector<std::string> TargetNames();
std::vector<std::string> RouteNames();
std::vector<std::string> PolicyNames();
std::vector<std::string> LayerForms();
std::vector<std::string> DeviceNames();
std::vector<std::string> NumericsNames();
std::vector<std::string> LimitNames();

// As `Setting::store`.
absl::Status StoreTarget(Settings& settings, const std::string& value);
absl::Status StoreRoute(Settings& settings, const std::string& value);
absl::Status StoreLinearLayers(Settings& settings, const std::string& value);
absl::Status StorePolicy(Settings& settings, const std::string& value);
absl::Status StoreDevice(Settings& settings, const std::string& value);
absl::Status StoreNumerics(Settings& settings, const std::string& value);
absl::Status StoreThreads(Settings& settings, const std::string& value);
absl::Status StoreMaxPlans(Settings& settings, const std::string& value);
absl::Status StoreMemoryLimit(Settings& settings, const std::string& value);
absl::Status StoreTimeLimit(Settings& settings, const std::string& value);
absl::Status StoreLimits(Settings& settings, const std::string& value);
absl::Status StoreDim(Settings& settings, const std::string& value);
absl::Status StoreShape(Settings& settings, const std::string& value);
absl::Status StoreBucket(Settings& settings, const std::string& value);
absl::Status StoreOverridable(Settings& settings, const std::string& value);
absl::Status StoreAdapter(Settings& settings, const std::string& value);
absl::Status StoreState(Settings& settings, const std::string& value);

// kInvalidArgument: says what is wanted.
absl::Status CheckDevice(const std::string& text);
absl::Status CheckTimeLimit(double seconds);

// Whether chains of linear layers become convolutions in a plan that is run.
bool ConvolvesInRuns(const Settings& settings);

// As `Setting::key`.
std::string TargetKey(const Settings& settings);
std::string PolicyKey(const Settings& settings);
std::string OverridableKey(const Settings& settings);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SETTING_STORES_H_
