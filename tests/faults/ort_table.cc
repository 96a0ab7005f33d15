// tests/faults/ort_table.cc: a library in the place of ONNX Runtime (ANEMONE_ORT_LIBRARY). Its
// table of functions is ONNX Runtime's, but each function that Anemone calls and that can fail is
// counted, and fails when counter.h says so. It finds the counter in the preloaded library.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdlib>

#include "tests/faults/counter.h"

namespace {

const OrtApi* real = nullptr;

template <auto kMember, class F>
struct Wrapped;

// A function of the table that returns a status.
template <auto kMember, class... A>
struct Wrapped<kMember, OrtStatus*(A...)> {
  static OrtStatus* ORT_API_CALL Call(A... arguments) noexcept {
    if (faults::Next("runtime", "OrtApi") != faults::Action::kNone) {
      return real->CreateStatus(ORT_FAIL, "a fault");
    }
    return (real->*kMember)(arguments...);
  }
};

template <auto kMember, class... A>
void Wrap(OrtApi& api, OrtStatus* (ORT_API_CALL* OrtApi::*member)(A...) noexcept) {
  api.*member = Wrapped<kMember, OrtStatus*(A...)>::Call;
}

const OrtApi* ORT_API_CALL ApiOf(uint32_t version) noexcept;

const OrtApiBase& RealBase() {
  static const OrtApiBase& base = *[] {
    void* const library = dlopen(std::getenv("FAULT_ORT"), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) std::abort();
    return reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"))();
  }();
  return base;
}

const OrtApi* ORT_API_CALL ApiOf(uint32_t version) noexcept {
  static OrtApi api;
  real = RealBase().GetApi(version);
  if (real == nullptr) return nullptr;
  api = *real;
#define WRAP(name) Wrap<&OrtApi::name>(api, &OrtApi::name)
  WRAP(CreateThreadingOptions);
  WRAP(SetGlobalIntraOpNumThreads);
  WRAP(SetGlobalInterOpNumThreads);
  WRAP(SetGlobalSpinControl);
  WRAP(CreateEnvWithCustomLoggerAndGlobalThreadPools);
  WRAP(CreateCpuMemoryInfo);
  WRAP(CreateSessionOptions);
  WRAP(DisablePerSessionThreads);
  WRAP(SetIntraOpNumThreads);
  WRAP(SetInterOpNumThreads);
  WRAP(AddSessionConfigEntry);
  WRAP(SetSessionGraphOptimizationLevel);
  WRAP(DisableCpuMemArena);
  WRAP(DisableMemPattern);
  WRAP(AddFreeDimensionOverrideByName);
  WRAP(AddExternalInitializers);
  WRAP(AddInitializer);
  WRAP(AddCustomOpDomain);
  WRAP(CreateSession);
  WRAP(CreateSessionFromArray);
  WRAP(CreateTensorWithDataAsOrtValue);
  WRAP(CreateTensorAsOrtValue);
  WRAP(CreateValue);
  WRAP(GetAllocatorWithDefaultOptions);
  WRAP(GetDimensions);
  WRAP(GetDimensionsCount);
  WRAP(GetTensorElementType);
  WRAP(GetTensorTypeAndShape);
  WRAP(GetTensorMutableData);
  WRAP(GetValue);
  WRAP(GetValueCount);
  WRAP(GetValueType);
  WRAP(HasValue);
  WRAP(Run);
#undef WRAP
  return &api;
}

const char* ORT_API_CALL VersionOf() noexcept { return RealBase().GetVersionString(); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase() noexcept {
  static const OrtApiBase base = {ApiOf, VersionOf};
  return &base;
}
