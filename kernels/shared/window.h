// kernels/shared/window.h: what convolution and pooling have in common: a window that moves along
// height, width and depth, how it is padded, and its keys.
#ifndef ANEMONE_KERNELS_SHARED_WINDOW_H_
#define ANEMONE_KERNELS_SHARED_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/field.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "math/conv/window.h"

namespace anemone {

// The window along one axis.
struct Along {
  int64_t kernel = 1, stride = 1, dilation = 1, pad_before = 0, pad_after = 0;
  int64_t output_padding = 0;  // of a deconvolution
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  int64_t pads() const { return pad_before + pad_after; }
  // How many windows lie in `in` elements and the pads.
  int64_t WindowsIn(int64_t in) const {
    const int64_t span = in + pads() - extent();
    return span < 0 ? 0 : span / stride + 1;
  }
};

// A window along height and width, as math takes it.
math::Window WindowOf(const Along& h, const Along& w);

// kInvalidArgument unless kernel, stride and dilation are at least 1, and the rest at least 0; and
// nothing so large that sums and products of a few could overflow.
absl::Status CheckAlong(const Along& along);

// enums.json ZinIrPaddingMode; Positive is named by the text of a minimum's pool.
enum class PaddingMode : uint8_t {
  kZero,
  kNegative,
  kPositive,
  kReplication,
  kSymmetric,
  kReflective,
  kBackground,
  kDontCare,
};
absl::Span<const char* const> NamesOf(PaddingMode);

// MIL's pad_type, ONNX's auto_pad. kSame: as many outputs as ceil(inputs / stride), an odd pad
// behind; kSameLower: in front.
enum class PadType : uint8_t { kCustom, kValid, kSame, kSameLower };
absl::Span<const char* const> NamesOf(PadType);

// The pads that `type` says, so that `in` elements have `out` windows; those that are there for
// kCustom. A deconvolution's are cut off its output, of which they leave `out` elements.
void SettlePads(PadType type, int64_t in, int64_t out, bool transposed, Along& along);
// The same for as many outputs as the type says: ceil(in / stride), or in * stride of a
// deconvolution.
void SettlePads(PadType type, int64_t in, bool transposed, Along& along);

// strides, dilations and pads of an ONNX node, whose last axes `kernel` moves along; in their
// order.
absl::StatusOr<std::vector<Along>> ReadNodeWindow(Attributes& a, absl::Span<const int64_t> kernel);
absl::StatusOr<PadType> ReadAutoPad(Attributes& a);

// strides, dilations, pad_type and pad of a call on argument 0, whose last axes `kernel` moves
// along; in their order.
absl::StatusOr<std::vector<Along>> ReadWindow(MilContext& c, absl::Span<const int64_t> kernel,
                                              bool transposed = false);

// A key that is one number of one axis.
template <class P, Along P::*kAxis, int64_t Along::*kMember>
constexpr Field<P> AlongKey(const char* key, bool required = false) {
  return {key, [](const P& p) -> Json { return (p.*kAxis).*kMember; },
          [](P& p, const Json& from) { return Plain::Read(from, (p.*kAxis).*kMember); }, required};
}

// Numbers for P's w, h and d, in this order, or backwards; those left out stay.
template <class P>
absl::Status ReadByAxis(const Json& from, int64_t Along::*member, bool width_first, P& p) {
  std::vector<int64_t> values;
  if (absl::Status status = Plain::Read(from, values); !status.ok()) return status;
  Along* axes[] = {&p.w, &p.h, &p.d};
  if (values.empty() || values.size() > 3) {
    return absl::InvalidArgumentError("want one number for every spatial axis");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    axes[i]->*member = values[width_first ? i : values.size() - 1 - i];
  }
  return absl::OkStatus();
}

// Step: [x, y, z].
template <class P>
constexpr Field<P> StepKey() {
  return {"Step",
          [](const P& p) -> Json {
            return Json::array({p.w.stride, p.h.stride, p.d.stride});
          },
          [](P& p, const Json& from) { return ReadByAxis(from, &Along::stride, true, p); }};
}

// MIL's spelling, width last; read only.
template <class P, int64_t Along::*kMember>
constexpr Field<P> ByAxisAlias(const char* key) {
  return {key, [](const P&) -> Json { return nullptr; },
          [](P& p, const Json& from) { return ReadByAxis(from, kMember, false, p); }};
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_WINDOW_H_
