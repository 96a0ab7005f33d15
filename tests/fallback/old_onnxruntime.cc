// A library that reports to be ONNX Runtime 1.22.1, for ort_runtime_test.cc.
#include <onnxruntime_c_api.h>

namespace {

const char* Version() noexcept { return "1.22.1"; }
const OrtApi* Api(uint32_t) noexcept { return nullptr; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase() noexcept {
  static const OrtApiBase base{Api, Version};
  return &base;
}
