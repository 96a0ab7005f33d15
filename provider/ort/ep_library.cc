// libonnxruntime_ane_ep: the three symbols by which ONNX Runtime finds the provider, and the
// operators of ai.anemone.
#include <onnxruntime_c_api.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "provider/custom_ops.h"
#include "provider/ort/factory.h"
#include "provider/ort_status.h"

namespace {

// Null if ONNX Runtime is older than our API. `status` then has an error, created with the newest
// API that it has.
const OrtApi* ApiOf(const OrtApiBase* base, OrtStatus** status) {
  const OrtApi* api = base->GetApi(anemone::kOrtApiVersion);
  if (api != nullptr) return api;
  for (uint32_t version = anemone::kOrtApiVersion - 1; version > 0; --version) {
    const OrtApi* older = base->GetApi(version);
    if (older == nullptr) continue;
    const char* name = base->GetVersionString();
    const std::string message =
        absl::StrCat("libonnxruntime_ane_ep: want ONNX Runtime 1.23 or newer, this is ",
                     name == nullptr ? "an older one" : name, "; upgrade the package onnxruntime");
    *status = older->CreateStatus(ORT_FAIL, message.c_str());
    return nullptr;
  }
  *status = nullptr;  // without any API no status can be created
  return nullptr;
}

}  // namespace

#define ANEMONE_EXPORTED extern "C" __attribute__((visibility("default")))

ANEMONE_EXPORTED OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*,
                                              OrtEpFactory** factories, size_t most,
                                              size_t* count) noexcept {
  *count = 0;
  OrtStatus* status = nullptr;
  const OrtApi* api = ApiOf(base, &status);
  if (api == nullptr) return status;
  return anemone::ToOrt(*api, anemone::Guarded("make the factory", [&]() -> absl::Status {
    if (most == 0) return absl::InvalidArgumentError("want room for one factory, got none");
    const char* version = base->GetVersionString();  // asking for a newer API would be logged
    const bool claims_once = version != nullptr && absl::StartsWith(version, "1.23.");
    factories[0] = std::make_unique<anemone::Factory>(*api, claims_once).release();
    *count = 1;
    return absl::OkStatus();
  }));
}

ANEMONE_EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  static_cast<anemone::Factory*>(factory)->Drop();
  return nullptr;
}

ANEMONE_EXPORTED OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                              const OrtApiBase* base) noexcept {
  OrtStatus* status = nullptr;
  const OrtApi* api = ApiOf(base, &status);
  return api == nullptr ? status : anemone::AddCustomOps(*api, options);
}
