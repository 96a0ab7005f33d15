// tests/faults/ort_table.cc: a library in the place of ONNX Runtime (ANEMONE_ORT_LIBRARY) or of the
// plugin (ANEMONE_PLUGIN), between the two. Its table of functions is ONNX Runtime's, but each
// function that Anemone calls and that can fail is counted, and fails when counter.h says so. It
// finds the counter in the preloaded library.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdlib>

#include "tests/faults/counter.h"

namespace {

const OrtApi* real = nullptr;
const OrtEpApi* real_plugins = nullptr;

const OrtApi& RealTable(const OrtApi*) { return *real; }
const OrtEpApi& RealTable(const OrtEpApi*) { return *real_plugins; }

// A function of a table that returns a status.
template <auto kMember, class F>
struct Wrapped;

template <auto kMember, class Table, class... A>
struct Wrapped<kMember, OrtStatus*(Table, A...)> {
  static OrtStatus* ORT_API_CALL Call(A... arguments) noexcept {
    if (faults::Next("runtime", "OrtApi") != faults::Action::kNone) {
      return real->CreateStatus(ORT_FAIL, "a fault");
    }
    return (RealTable(static_cast<const Table*>(nullptr)).*kMember)(arguments...);
  }
};

template <auto kMember, class Table, class... A>
void Wrap(Table& api, OrtStatus* (ORT_API_CALL* Table::*member)(A...) noexcept) {
  api.*member = Wrapped<kMember, OrtStatus*(Table, A...)>::Call;
}

void* Library(const char* variable) {
  const char* const path = std::getenv(variable);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) std::abort();
  return library;
}

const OrtApiBase& RealBase() {
  static const OrtApiBase& base = *[] {
    void* const library = Library("FAULT_ORT_LIBRARY");
    return reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"))();
  }();
  return base;
}

const OrtEpApi* ORT_API_CALL PluginsApi() noexcept {
  static OrtEpApi api;
  real_plugins = real->GetEpApi();
  api = *real_plugins;
#define WRAP(name) Wrap<&OrtEpApi::name>(api, &OrtEpApi::name)
  WRAP(CreateEpDevice);
  WRAP(EpGraphSupportInfo_AddNodesToFuse);
#undef WRAP
  return &api;
}

const OrtApi* ORT_API_CALL ApiOf(uint32_t version) noexcept {
  static OrtApi api;
  real = RealBase().GetApi(version);
  if (real == nullptr) return nullptr;
  api = *real;
  api.GetEpApi = PluginsApi;
#define WRAP(name) Wrap<&OrtApi::name>(api, &OrtApi::name)
  // Of sessions.
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
  // Of the plugin.
  WRAP(CastTypeInfoToTensorInfo);
  WRAP(GetOnnxTypeFromTypeInfo);
  WRAP(GetSessionOptionsConfigEntries);
  WRAP(GetSymbolicDimensions);
  WRAP(GetTensorData);
  WRAP(GetValueInfoName);
  WRAP(GetValueInfoTypeInfo);
  WRAP(Graph_GetInitializers);
  WRAP(Graph_GetInputs);
  WRAP(Graph_GetModelPath);
  WRAP(Graph_GetName);
  WRAP(Graph_GetNodes);
  WRAP(Graph_GetNumInitializers);
  WRAP(Graph_GetNumInputs);
  WRAP(Graph_GetNumNodes);
  WRAP(Graph_GetNumOperatorSets);
  WRAP(Graph_GetNumOutputs);
  WRAP(Graph_GetOnnxIRVersion);
  WRAP(Graph_GetOperatorSets);
  WRAP(Graph_GetOutputs);
  WRAP(Graph_GetParentNode);
  WRAP(KernelContext_GetInput);
  WRAP(KernelContext_GetInputCount);
  WRAP(KernelContext_GetOutput);
  WRAP(KernelContext_GetOutputCount);
  WRAP(Node_GetAttributes);
  WRAP(Node_GetDomain);
  WRAP(Node_GetImplicitInputs);
  WRAP(Node_GetInputs);
  WRAP(Node_GetName);
  WRAP(Node_GetNumAttributes);
  WRAP(Node_GetNumImplicitInputs);
  WRAP(Node_GetNumInputs);
  WRAP(Node_GetNumOutputs);
  WRAP(Node_GetNumSubgraphs);
  WRAP(Node_GetOperatorType);
  WRAP(Node_GetOutputs);
  WRAP(Node_GetSinceVersion);
  WRAP(Node_GetSubgraphs);
  WRAP(OpAttr_GetName);
  WRAP(OpAttr_GetTensorAttributeAsOrtValue);
  WRAP(OpAttr_GetType);
  WRAP(ReadOpAttr);
  WRAP(ValueInfo_GetInitializerValue);
  WRAP(ValueInfo_IsConstantInitializer);
  WRAP(ValueInfo_IsFromOuterScope);
#undef WRAP
  return &api;
}

const char* ORT_API_CALL VersionOf() noexcept { return RealBase().GetVersionString(); }

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const OrtApiBase* OrtGetApiBase() noexcept {
  static const OrtApiBase base = {ApiOf, VersionOf};
  return &base;
}

EXPORTED OrtStatus* CreateEpFactories(const char* name, const OrtApiBase*, const OrtLogger* logger,
                                      OrtEpFactory** factories, size_t most, size_t* count) {
  const auto create =
      reinterpret_cast<CreateEpApiFactoriesFn>(dlsym(Library("FAULT_PLUGIN"), "CreateEpFactories"));
  return create(name, OrtGetApiBase(), logger, factories, most, count);
}

EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  return reinterpret_cast<ReleaseEpApiFactoryFn>(
      dlsym(Library("FAULT_PLUGIN"), "ReleaseEpFactory"))(factory);
}
