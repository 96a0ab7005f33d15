#include "provider/ort/factory.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "engine/apple/apple_device.h"
#include "provider/ort/context.h"
#include "provider/ort/options.h"
#include "provider/ort/provider.h"
#include "provider/ort/report.h"
#include "provider/ort_status.h"

namespace anemone {
namespace {

Factory& Of(OrtEpFactory* factory) { return *static_cast<Factory*>(factory); }

OrtStatus* GetSupportedDevices(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                               size_t count, OrtEpDevice** found, size_t most,
                               size_t* found_count) noexcept {
  *found_count = 0;
  return ToOrt(Of(self).api(), Guarded("find devices", [&]() -> absl::Status {
                 ANEMONE_ASSIGN_OR_RETURN(*found_count,
                                          Of(self).FindDevices({devices, count}, {found, most}));
                 return absl::OkStatus();
               }));
}

OrtStatus* CreateEp(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                    const OrtKeyValuePairs* const*, size_t count, const OrtSessionOptions* options,
                    const OrtLogger* logger, OrtEp** ep) noexcept {
  *ep = nullptr;
  return ToOrt(Of(self).api(), Guarded("make the provider", [&]() -> absl::Status {
                 ANEMONE_ASSIGN_OR_RETURN(*ep, Of(self).Create({devices, count}, options, logger));
                 return absl::OkStatus();
               }));
}

void ReleaseEp(OrtEpFactory* self, OrtEp* ep) noexcept {
  delete static_cast<Provider*>(ep);
  Of(self).Drop();
}

OrtOwned<OrtKeyValuePairs> NewPairs(const OrtApi& api) {
  OrtKeyValuePairs* pairs = nullptr;
  api.CreateKeyValuePairs(&pairs);
  return {pairs, api.ReleaseKeyValuePairs};
}

absl::StatusOr<std::map<std::string, std::string>> SessionEntries(
    const OrtApi& api, const OrtSessionOptions* options) {
  OrtKeyValuePairs* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetSessionOptionsConfigEntries(options, &raw)));
  const OrtOwned<OrtKeyValuePairs> owned(raw, api.ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api.GetKeyValuePairs(raw, &keys, &values, &count);
  std::map<std::string, std::string> entries;
  for (size_t i = 0; i < count; ++i) entries[keys[i]] = values[i];
  return entries;
}

// The options of this provider, without the prefix that ONNX Runtime adds to their names.
std::map<std::string, std::string> OwnEntries(const std::map<std::string, std::string>& entries) {
  const std::string prefix = absl::StrCat("ep.", absl::AsciiStrToLower(kProviderName), ".");
  std::map<std::string, std::string> own;
  for (const auto& [key, value] : entries) {
    if (absl::StartsWithIgnoreCase(key, prefix)) own[key.substr(prefix.size())] = value;
  }
  return own;
}

bool IsNpu(const OrtApi& api, const OrtHardwareDevice* device) {
  return api.HardwareDevice_Type(device) == OrtHardwareDeviceType_NPU;
}

OrtStatus* Validate(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char* info,
                    OrtCompiledModelCompatibility* answer) noexcept {
  const absl::string_view asked = info == nullptr ? "" : info;
  *answer = asked == CompatibilityInfo() ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
            : absl::StartsWith(asked, kProviderName)
                ? OrtCompiledModelCompatibility_EP_UNSUPPORTED  // of other rule tables
                : OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  return nullptr;
}

}  // namespace

Factory::Factory(const OrtApi& api, bool claims_once)
    : OrtEpFactory{}, api_(api), claims_once_(claims_once) {
  ort_version_supported = kOrtApiVersion;
  GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
  GetVendor = [](const OrtEpFactory*) noexcept { return "Anemone"; };
  GetVendorId = [](const OrtEpFactory*) noexcept {
    return uint32_t{0};
  };  // not the vendor of a PCI device
  GetVersion = [](const OrtEpFactory*) noexcept { return kVersion; };
  OrtEpFactory::GetSupportedDevices = anemone::GetSupportedDevices;
  OrtEpFactory::CreateEp = anemone::CreateEp;
  OrtEpFactory::ReleaseEp = anemone::ReleaseEp;
  // Tensors stay in the CPU's memory: no allocator, transfer or stream of ours would save a copy.
  // ONNX Runtime calls these functions without checking for null.
  CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                       OrtAllocator** allocator) noexcept {
    *allocator = nullptr;
    return static_cast<OrtStatus*>(nullptr);
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept {
    *transfer = nullptr;
    return static_cast<OrtStatus*>(nullptr);
  };
  ValidateCompiledModelCompatibilityInfo = Validate;
  IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
}

absl::StatusOr<size_t> Factory::FindDevices(absl::Span<const OrtHardwareDevice* const> devices,
                                            absl::Span<OrtEpDevice*> found) {
  size_t count = 0;
  const OrtOwned<OrtKeyValuePairs> software = NewPairs(api_), apple = NewPairs(api_);
  api_.AddKeyValuePair(software.get(), "engine", "software");
  api_.AddKeyValuePair(apple.get(), "engine", "apple");
  for (const OrtHardwareDevice* device : devices) {
    // The software engine is on every CPU; the engine of a Mac is an NPU.
    const bool is_npu = IsNpu(api_, device);
    if (is_npu && !AppleHostTarget().ok()) continue;
    if (!is_npu && api_.HardwareDevice_Type(device) != OrtHardwareDeviceType_CPU) continue;
    if (count == found.size()) break;
    const auto& metadata = is_npu ? apple : software;
    ANEMONE_RETURN_IF_ERROR(FromOrt(
        api_,
        api_.GetEpApi()->CreateEpDevice(this, device, metadata.get(), nullptr, &found[count])));
    ++count;
  }
  return count;
}

absl::StatusOr<OrtEp*> Factory::Create(absl::Span<const OrtHardwareDevice* const> devices,
                                       const OrtSessionOptions* options, const OrtLogger* logger) {
  ANEMONE_ASSIGN_OR_RETURN(const auto entries, SessionEntries(api_, options));
  ANEMONE_ASSIGN_OR_RETURN(PluginOptions read, ReadPluginOptions(OwnEntries(entries)));
  const bool has_npu = std::any_of(devices.begin(), devices.end(),
                                   [&](const auto* device) { return IsNpu(api_, device); });
  if (read.settings.device == "auto" && !has_npu) read.settings.device = "software";
  // Check the paths now, while errors can be reported.
  for (const auto& [name, path] : {std::pair("report_path", &read.report_path),
                                   std::pair("profile_path", &read.profile_path)}) {
    if (path->empty()) continue;
    // Absolute, because the profile is written at the end, when the working folder may be another.
    *path = std::filesystem::absolute(*path).string();
    const absl::Status status = CheckReplaceable(*path);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("provider option '", name, "': ", status.message()));
    }
  }
  if (!read.report_path.empty() && read.report_path == read.profile_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("provider option 'profile_path': '", read.profile_path,
                     "' is also the report_path; choose another file"));
  }
  auto provider = std::make_unique<Provider>(api_, logger, std::move(read),
                                             ContextOptions::Read(entries), claims_once_);
  ANEMONE_RETURN_IF_ERROR(provider->OpenDevice());
  ++holders_;
  return provider.release();
}

void Factory::Drop() {
  if (--holders_ == 0) delete this;
}

}  // namespace anemone
