// kernels/shared/window.h: the sliding window that convolution and pooling share: kernel, stride,
// dilation and padding along height, width and depth, and the attributes and netplist keys for
// them.
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
  // The number of windows in `in` elements plus the padding.
  int64_t WindowsIn(int64_t in) const {
    const int64_t span = in + pads() - extent();
    return span < 0 ? 0 : span / stride + 1;
  }
};

// The window along height and width in the form that math/ takes.
math::Window WindowOf(const Along& h, const Along& w);

// kInvalidArgument unless kernel, stride and dilation are at least 1, the paddings are at least 0,
// and all are at most 2^28, so that sums and products of a few of them do not overflow.
absl::Status CheckAlong(const Along& along);

// Names: enums.json ZinIrPaddingMode. Positive comes from a compiler text about minimum pooling.
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

// MIL's pad_type and ONNX's auto_pad. kSame and kSameLower: there are ceil(inputs / stride)
// outputs. If the total padding is odd, kSame adds the extra element at the end, kSameLower at the
// start.
enum class PadType : uint8_t { kCustom, kValid, kSame, kSameLower };
absl::Span<const char* const> NamesOf(PadType);

// Sets the paddings for `type`, so that `in` elements have `out` windows; kCustom leaves them
// unchanged. The paddings of a deconvolution are cropped from its output, so that `out` elements
// remain.
void SettlePads(PadType type, int64_t in, int64_t out, bool transposed, Along& along);
// The same for the number of outputs that kSame defines: ceil(in / stride), or in * stride for a
// deconvolution.
void SettlePads(PadType type, int64_t in, bool transposed, Along& along);

// Reads strides, dilations and pads of an ONNX node. `kernel` has the kernel's extents along the
// node's last axes; the result has one window for each, in the same order.
absl::StatusOr<std::vector<Along>> ReadNodeWindow(Attributes& a, absl::Span<const int64_t> kernel);
absl::StatusOr<PadType> ReadAutoPad(Attributes& a);

// Reads strides, dilations, pad_type and pad of a MIL call. `kernel` has the kernel's extents along
// the last axes of argument 0; the result has one window for each, in the same order.
absl::StatusOr<std::vector<Along>> ReadWindow(MilContext& c, absl::Span<const int64_t> kernel,
                                              bool transposed = false);

// A netplist key that is one number of one axis.
template <class P, Along P::*kAxis, int64_t Along::*kMember>
constexpr Field<P> AlongKey(const char* key, bool required = false) {
  return {key, [](const P& p) -> Json { return (p.*kAxis).*kMember; },
          [](P& p, const Json& from) { return Plain::Read(from, (p.*kAxis).*kMember); }, required};
}

// Reads one to three numbers into a member of P's windows `w`, `h` and `d`: in this order if
// `width_first`, else with the width last. Axes that are not listed keep their values.
template <class P>
absl::Status ReadByAxis(const Json& from, int64_t Along::*member, bool width_first, P& p) {
  std::vector<int64_t> values;
  if (absl::Status status = Plain::Read(from, values); !status.ok()) return status;
  Along* axes[] = {&p.w, &p.h, &p.d};
  if (values.empty() || values.size() > 3) {
    return absl::InvalidArgumentError("want one to three numbers, one for each spatial axis");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    axes[i]->*member = values[width_first ? i : values.size() - 1 - i];
  }
  return absl::OkStatus();
}

// The netplist key Step: [x, y, z], the strides along width, height and depth.
template <class P>
constexpr Field<P> StepKey() {
  return {"Step",
          [](const P& p) -> Json {
            return Json::array({p.w.stride, p.h.stride, p.d.stride});
          },
          [](P& p, const Json& from) { return ReadByAxis(from, &Along::stride, true, p); }};
}

// An alias with MIL's name and order (width last). It is only read, never written.
template <class P, int64_t Along::*kMember>
constexpr Field<P> ByAxisAlias(const char* key) {
  return {key, [](const P&) -> Json { return nullptr; },
          [](P& p, const Json& from) { return ReadByAxis(from, kMember, false, p); }};
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_WINDOW_H_
