// A C++ program that uses the plugin, for sanitizers, which an unmodified Python cannot be used
// with. Sessions must not use the CPU provider, so all results come from the plugin.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace anemone {
namespace {

constexpr int64_t kDims[] = {1, 8, 4, 4};
constexpr size_t kElements = 128;
using Numbers = std::array<float, kElements>;

// y = max(x + w, 0), where w is 1. Given as bytes, because the plugin contains ONNX's classes, and
// two copies of them cannot share a libprotobuf in one process.
//   <ir_version: 10, opset_import: ["" : 21]> t (float[1,8,4,4] x) => (float[1,8,4,4] y)
//   <float[1] w = {1}> { s = Add(x, w) y = Relu(s) }
constexpr unsigned char kModel[] = {
    8,   10, 58, 110, 10, 16, 10,  1,  120, 10,  1,  119, 18, 1,   115, 34,  3,  65, 100, 100,
    58,  0,  10, 14,  10, 1,  115, 18, 1,   121, 34, 4,   82, 101, 108, 117, 58, 0,  18,  1,
    116, 42, 13, 8,   1,  16, 1,   34, 4,   0,   0,  128, 63, 66,  1,   119, 90, 27, 10,  1,
    120, 18, 22, 10,  20, 8,  1,   18, 16,  10,  2,  8,   1,  10,  2,   8,   8,  10, 2,   8,
    4,   10, 2,  8,   4,  98, 27,  10, 1,   121, 18, 22,  10, 20,  8,   1,   18, 16, 10,  2,
    8,   1,  10, 2,   8,  8,  10,  2,  8,   4,   10, 2,   8,  4,   66,  4,   10, 0,  16,  21,
};

std::string AddRelu() { return {std::begin(kModel), std::end(kModel)}; }

class Host : public testing::Test {
 protected:
  void SetUp() override {
    void* library = dlopen(ANEMONE_ORT_LIBRARY_PATH, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) GTEST_SKIP() << "no ONNX Runtime: " << dlerror();
    const auto base =
        reinterpret_cast<const OrtApiBase* (*)() noexcept>(dlsym(library, "OrtGetApiBase"));
    ASSERT_NE(base, nullptr);
    api_ = base()->GetApi(ORT_API_VERSION);
    ASSERT_NE(api_, nullptr);
    Check(Api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "host", &env_));
    Check(Api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory_));
    Check(Api().RegisterExecutionProviderLibrary(Env(), "ane", ANEMONE_PLUGIN));
  }
  void TearDown() override {
    if (api_ == nullptr) return;
    Check(Api().UnregisterExecutionProviderLibrary(Env(), "ane"));
    Api().ReleaseMemoryInfo(memory_);
    Api().ReleaseEnv(env_);
  }

  const OrtApi& Api() const { return *api_; }
  OrtEnv* Env() const { return env_; }
  void Check(OrtStatus* status) const {
    if (status == nullptr) return;
    ADD_FAILURE() << Api().GetErrorMessage(status);
    Api().ReleaseStatus(status);
  }

  template <class T>
  using OrtPtr = std::unique_ptr<T, void (*)(T*)>;
  using Session = OrtPtr<OrtSession>;
  Session Make(const std::string& model) const {
    OrtSessionOptions* raw = nullptr;
    Check(Api().CreateSessionOptions(&raw));
    const OrtPtr<OrtSessionOptions> options(raw, Api().ReleaseSessionOptions);
    Check(Api().AddSessionConfigEntry(raw, "session.disable_cpu_ep_fallback", "1"));
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    Check(Api().GetEpDevices(Env(), &devices, &count));
    std::vector<const OrtEpDevice*> own;
    for (size_t i = 0; i < count; ++i) {
      if (std::string(Api().EpDevice_EpName(devices[i])) == "ANEExecutionProvider") {
        own.push_back(devices[i]);
      }
    }
    const char* const keys[] = {"threads"};
    const char* const values[] = {"2"};
    Check(Api().SessionOptionsAppendExecutionProvider_V2(raw, Env(), own.data(), own.size(), keys,
                                                         values, 1));
    OrtSession* session = nullptr;
    Check(Api().CreateSessionFromArray(Env(), model.data(), model.size(), raw, &session));
    return {session, Api().ReleaseSession};
  }

  Numbers Run(OrtSession* session, Numbers x) const {
    OrtValue* in = nullptr;
    Check(Api().CreateTensorWithDataAsOrtValue(memory_, x.data(), sizeof(x), kDims,
                                               std::size(kDims),
                                               ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in));
    const OrtPtr<OrtValue> input(in, Api().ReleaseValue);
    const char* const inputs[] = {"x"};
    const char* const outputs[] = {"y"};
    OrtValue* out = nullptr;
    Check(Api().Run(session, nullptr, inputs, &in, 1, outputs, 1, &out));
    const OrtPtr<OrtValue> output(out, Api().ReleaseValue);
    Numbers y{};
    void* data = nullptr;
    if (out == nullptr) return y;
    Check(Api().GetTensorMutableData(out, &data));
    std::copy_n(static_cast<const float*>(data), kElements, y.begin());
    return y;
  }

  static Numbers Filled(float number) {
    Numbers numbers;
    numbers.fill(number);
    return numbers;
  }

  const OrtApi* api_ = nullptr;
  OrtEnv* env_ = nullptr;
  OrtMemoryInfo* memory_ = nullptr;
};

TEST_F(Host, RunsOnTheEngineAlone) {
  const Session session = Make(AddRelu());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(Run(session.get(), Filled(2.5f)), Filled(3.5f));
  EXPECT_EQ(Run(session.get(), Filled(-2.5f)), Filled(0));
}

TEST_F(Host, ManySessionsLeaveNothing) {
  const std::string model = AddRelu();
  for (int i = 0; i < 50; ++i) {
    const Session session = Make(model);
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(Run(session.get(), Filled(1)), Filled(2));
  }
}

TEST_F(Host, ManyThreadsShareOneSession) {
  const Session session = Make(AddRelu());
  ASSERT_NE(session, nullptr);
  std::atomic<int> wrong{0};
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto number = static_cast<float>(8 * i + t);
        if (Run(session.get(), Filled(number)) != Filled(number + 1)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace anemone
