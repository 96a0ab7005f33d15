// provider/ort/range_watch.h: warns once in a session's log of values that fp16 cannot hold: inputs
// of a segment that become infinite when they are converted, and outputs that are not finite.
//
// `anemone run --hazards` finds the unit in which it starts. This looks only at the tensors that
// the plugin converts anyway.
#ifndef ANEMONE_PROVIDER_ORT_RANGE_WATCH_H_
#define ANEMONE_PROVIDER_ORT_RANGE_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "anemone/tensor.h"

namespace anemone {

// Finite elements that are infinite in fp16. 0 if the elements are not floating-point numbers.
int64_t CountClipped(DataType type, const std::byte* data, int64_t elements);
// Infinities and NaNs. 0 if the elements are not floating-point numbers.
int64_t CountNotFinite(DataType type, const std::byte* data, int64_t elements);

// Thread-safe.
class RangeWatch {
 public:
  explicit RangeWatch(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  // `unit` is the type of the unit that reads the input, or computes the output; "" if there is
  // none.
  void Input(const Tensor& tensor, const std::string& name, absl::string_view unit);
  void Output(DataType type, const std::byte* data, int64_t elements, const std::string& name,
              absl::string_view unit);

 private:
  const std::function<void(const std::string&)> warn_;
  std::atomic<bool> input_told_{false}, output_told_{false};
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_RANGE_WATCH_H_
