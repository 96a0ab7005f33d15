// tests/faults/plugin_host.cc: a program that uses the plugin. Arguments: a model with the input x
// of 3 x 16 x 16 numbers and the output y, which the engine takes whole, and the .npy file of x.
// ANEMONE_ORT_LIBRARY and ANEMONE_PLUGIN are the libraries.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "tests/faults/host.h"

namespace {

constexpr int64_t kDims[] = {1, 3, 16, 16};
constexpr size_t kNumbers = 3 * 16 * 16, kOutputs = 8 * 16 * 16;

struct Failed : std::exception {
  explicit Failed(std::string why) : message(std::move(why)) {}
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
};

class Host {
 public:
  explicit Host(const OrtApi& api) : api_(api) {
    OrtEnv* env = nullptr;
    Check(api.CreateEnv(ORT_LOGGING_LEVEL_FATAL, "host", &env));
    env_ = {env, api.ReleaseEnv};
    Check(api.RegisterExecutionProviderLibrary(env, "ane", std::getenv("ANEMONE_PLUGIN")));
  }
  ~Host() {
    OrtStatus* status = api_.UnregisterExecutionProviderLibrary(env_.get(), "ane");
    if (status != nullptr) api_.ReleaseStatus(status);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::string Run(const char* model, std::string x) {
    OrtSession* made = nullptr;
    Check(api_.CreateSession(env_.get(), model, Options().get(), &made));
    const Owned<OrtSession> session(made, api_.ReleaseSession);
    OrtMemoryInfo* memory = nullptr;
    Check(api_.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    const Owned<OrtMemoryInfo> owned_memory(memory, api_.ReleaseMemoryInfo);
    OrtValue* in = nullptr;
    Check(api_.CreateTensorWithDataAsOrtValue(memory, x.data(), x.size(), kDims, std::size(kDims),
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in));
    const Owned<OrtValue> input(in, api_.ReleaseValue);
    const char* const inputs[] = {"x"};
    const char* const outputs[] = {"y"};
    OrtValue* out = nullptr;
    Check(api_.Run(made, nullptr, inputs, &in, 1, outputs, 1, &out));
    const Owned<OrtValue> output(out, api_.ReleaseValue);
    void* data = nullptr;
    Check(api_.GetTensorMutableData(out, &data));
    return {static_cast<const char*>(data), kOutputs * sizeof(float)};
  }

 private:
  template <class T>
  using Owned = std::unique_ptr<T, void (*)(T*)>;

  void Check(OrtStatus* status) const {
    if (status == nullptr) return;
    const Owned<OrtStatus> owned(status, api_.ReleaseStatus);
    throw Failed(api_.GetErrorMessage(status));
  }

  Owned<OrtSessionOptions> Options() const {
    OrtSessionOptions* made = nullptr;
    Check(api_.CreateSessionOptions(&made));
    Owned<OrtSessionOptions> options(made, api_.ReleaseSessionOptions);
    Check(api_.SetIntraOpNumThreads(made, 1));
    // Otherwise ONNX Runtime runs what an error of the plugin leaves unclaimed.
    Check(api_.AddSessionConfigEntry(made, "session.disable_cpu_ep_fallback", "1"));
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    Check(api_.GetEpDevices(env_.get(), &devices, &count));
    std::vector<const OrtEpDevice*> own;
    for (size_t i = 0; i < count; ++i) {
      if (std::string(api_.EpDevice_EpName(devices[i])) == "ANEExecutionProvider") {
        own.push_back(devices[i]);
      }
    }
    const char* const keys[] = {"threads"};
    const char* const values[] = {"1"};
    Check(api_.SessionOptionsAppendExecutionProvider_V2(made, env_.get(), own.data(), own.size(),
                                                        keys, values, 1));
    return options;
  }

  const OrtApi& api_;
  Owned<OrtEnv> env_{nullptr, nullptr};
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  return faults::RunTwice([&](std::string& output) {
    void* const library = dlopen(std::getenv("ANEMONE_ORT_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::string("ONNX Runtime cannot be loaded");
    const auto base =
        reinterpret_cast<const OrtApiBase* (*)() noexcept>(dlsym(library, "OrtGetApiBase"));
    const std::string x = faults::EndOfFile(words[2], kNumbers * sizeof(float));
    if (x.empty()) return std::string("x cannot be read");
    output = Host(*base()->GetApi(ORT_API_VERSION)).Run(words[1], x);
    return std::string();
  });
}
