#include "kernels/window.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"

namespace anemone {

math::Window WindowOf(const Along& h, const Along& w) {
  return {.kernel_h = h.kernel,
          .kernel_w = w.kernel,
          .stride_h = h.stride,
          .stride_w = w.stride,
          .dilation_h = h.dilation,
          .dilation_w = w.dilation,
          .pad_top = h.pad_before,
          .pad_left = w.pad_before,
          .pad_bottom = h.pad_after,
          .pad_right = w.pad_after};
}

absl::Status CheckAlong(const Along& a) {
  constexpr int64_t kMost = 1 << 28;
  auto inside = [](int64_t least, std::initializer_list<int64_t> values) {
    return std::min(values) >= least && std::max(values) <= kMost;
  };
  if (inside(1, {a.kernel, a.stride, a.dilation}) &&
      inside(0, {a.pad_before, a.pad_after, a.output_padding})) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "window: want kernel, stride and dilation of at least 1, pads of at least 0, and none above ",
      kMost));
}

absl::Span<const char* const> NamesOf(PaddingMode) {
  static constexpr const char* kNames[] = {"Zero",      "Negative",   "Positive",   "Replication",
                                           "Symmetric", "Reflective", "Background", "DontCare"};
  return kNames;
}

absl::Span<const char* const> NamesOf(PadType) {
  static constexpr const char* kNames[] = {"custom", "valid", "same", "same_lower"};
  return kNames;
}

void SettlePads(PadType type, int64_t in, bool transposed, Along& a) {
  if (type == PadType::kCustom) return;
  a.pad_before = a.pad_after = 0;
  if (type == PadType::kValid) return;
  const int64_t out = in / a.stride + (in % a.stride != 0 ? 1 : 0);
  const int64_t covered = transposed ? 0 : (out - 1) * a.stride - (in - a.stride);
  const int64_t total = std::max<int64_t>(covered + a.extent() - a.stride, 0);
  a.pad_before = type == PadType::kSameLower ? (total + 1) / 2 : total / 2;
  a.pad_after = total - a.pad_before;
}

absl::StatusOr<std::vector<Along>> ReadWindow(MilContext& c, absl::Span<const int64_t> kernel,
                                              bool transposed) {
  const size_t spatial = kernel.size();
  ANEMONE_ASSIGN_OR_RETURN(auto strides, c.Ints("strides", std::vector<int64_t>(spatial, 1)));
  ANEMONE_ASSIGN_OR_RETURN(auto dilations, c.Ints("dilations", std::vector<int64_t>(spatial, 1)));
  ANEMONE_ASSIGN_OR_RETURN(auto pad, c.Ints("pad", std::vector<int64_t>(2 * spatial, 0)));
  ANEMONE_ASSIGN_OR_RETURN(std::string type_name,
                           c.Text("pad_type", c.Has("pad") ? "custom" : "valid"));
  PadType type = PadType::kValid;
  ANEMONE_RETURN_IF_ERROR(Plain::Read(Json(type_name), type));
  const std::vector<int64_t>& shape = c.ShapeOf(0);
  if (strides.size() != spatial || dilations.size() != spatial || pad.size() != 2 * spatial ||
      spatial > shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        c.call().op, ": strides, dilations and pad must fit a kernel with ", spatial, " axes"));
  }
  std::vector<Along> window;
  for (size_t i = 0; i < spatial; ++i) {
    Along along{.kernel = kernel[i],
                .stride = strides[i],
                .dilation = dilations[i],
                .pad_before = pad[2 * i],
                .pad_after = pad[2 * i + 1]};
    ANEMONE_RETURN_IF_ERROR(CheckAlong(along));
    SettlePads(type, shape[shape.size() - spatial + i], transposed, along);
    window.push_back(along);
  }
  return window;
}

}  // namespace anemone
