#include "provider/ort/range_watch.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/printable.h"

namespace anemone {
namespace {

// The magnitudes of a floating-point type, as integers of its bits: they have the same order.
struct Magnitudes {
  uint32_t clipped;   // the least that fp16 rounds to infinity
  uint32_t infinity;  // larger ones are NaN
};
constexpr Magnitudes kFloat = {0x477ff000, 0x7f800000};  // 65520
constexpr Magnitudes kBFloat16 = {0x4780, 0x7f80};       // 65536; the next below is 65280
constexpr Magnitudes kFloat16 = {0x7c00, 0x7c00};        // it has no larger ones

// Elements whose magnitude is at least `low` and below `high`. Without branches, because this reads
// every element of every run.
template <class Bits>
int64_t Count(const std::byte* data, int64_t elements, uint32_t low, uint32_t high) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  int64_t count = 0;
  for (int64_t i = 0; i < elements; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    const uint32_t magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    count += magnitude - low < high - low ? 1 : 0;
  }
  return count;
}

std::string Advice(absl::string_view unit) {
  if (unit.empty()) return "";
  return absl::StrCat("; to keep ", unit, " off the engine, give the option policy=refuse:", unit);
}

}  // namespace

int64_t CountClipped(DataType type, const std::byte* data, int64_t elements) {
  switch (type) {
    case DataType::kFloat:
      return Count<uint32_t>(data, elements, kFloat.clipped, kFloat.infinity);
    case DataType::kBFloat16:
      return Count<uint16_t>(data, elements, kBFloat16.clipped, kBFloat16.infinity);
    default:
      return 0;
  }
}

int64_t CountNotFinite(DataType type, const std::byte* data, int64_t elements) {
  switch (type) {
    case DataType::kFloat:
      return Count<uint32_t>(data, elements, kFloat.infinity, uint32_t{1} << 31);
    case DataType::kBFloat16:
      return Count<uint16_t>(data, elements, kBFloat16.infinity, uint32_t{1} << 15);
    case DataType::kFloat16:
      return Count<uint16_t>(data, elements, kFloat16.infinity, uint32_t{1} << 15);
    default:
      return 0;
  }
}

void RangeWatch::Input(const Tensor& tensor, const std::string& name, absl::string_view unit) {
  if (input_told_.load(std::memory_order_relaxed) || tensor.is_fill()) return;
  const int64_t count = CountClipped(tensor.type(), tensor.bytes().data(), tensor.elements());
  if (count == 0 || input_told_.exchange(true)) return;
  warn_(absl::StrCat("ANE: ", count, " of ", tensor.elements(), " values of '", Printable(name),
                     "' are above ", fp16::kLargest,
                     ", the largest number of fp16, and are infinite on the engine", Advice(unit)));
}

void RangeWatch::Output(DataType type, const std::byte* data, int64_t elements,
                        const std::string& name, absl::string_view unit) {
  if (output_told_.load(std::memory_order_relaxed)) return;
  const int64_t count = CountNotFinite(type, data, elements);
  if (count == 0 || output_told_.exchange(true)) return;
  warn_(absl::StrCat("ANE: ", count, " of ", elements, " values of '", Printable(name),
                     "' are not finite, because the engine computes in fp16 or because an input is "
                     "not; `anemone run --hazards` says where it starts",
                     Advice(unit)));
}

}  // namespace anemone
