#include "kernels/shared/window.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/shared/bounds.h"

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
  auto inside = [](int64_t least, std::initializer_list<int64_t> values) {
    return std::min(values) >= least && std::max(values) <= kAttributeBound;
  };
  if (inside(1, {a.kernel, a.stride, a.dilation}) &&
      inside(0, {a.pad_before, a.pad_after, a.output_padding})) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("window: want kernel, stride and dilation in 1..",
                                                 kAttributeBound, " and pads in 0..",
                                                 kAttributeBound));
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

void SettlePads(PadType type, int64_t in, int64_t out, bool transposed, Along& a) {
  if (type == PadType::kCustom) return;
  a.pad_before = a.pad_after = 0;
  if (type == PadType::kValid) return;
  const int64_t missing = transposed ? (in - 1) * a.stride + a.extent() + a.output_padding - out
                                     : (out - 1) * a.stride + a.extent() - in;
  const int64_t total = std::max<int64_t>(missing, 0);
  a.pad_before = type == PadType::kSameLower ? (total + 1) / 2 : total / 2;
  a.pad_after = total - a.pad_before;
}

void SettlePads(PadType type, int64_t in, bool transposed, Along& a) {
  if (transposed) return SettlePads(type, 1, a.stride, transposed, a);  // `in` does not matter here
  const int64_t out = in / a.stride + (in % a.stride != 0 ? 1 : 0);
  SettlePads(type, in, out, transposed, a);
}

absl::StatusOr<std::vector<Along>> ReadNodeWindow(Attributes& a, absl::Span<const int64_t> kernel) {
  const size_t spatial = kernel.size();
  ANEMONE_ASSIGN_OR_RETURN(auto strides, a.Ints("strides", std::vector<int64_t>(spatial, 1)));
  ANEMONE_ASSIGN_OR_RETURN(auto dilations, a.Ints("dilations", std::vector<int64_t>(spatial, 1)));
  ANEMONE_ASSIGN_OR_RETURN(auto pads, a.Ints("pads", std::vector<int64_t>(2 * spatial, 0)));
  if (strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial) {
    return absl::InvalidArgumentError(
        absl::StrCat("strides, dilations and pads: want values for ", spatial,
                     " spatial axes; run the ONNX checker on the model"));
  }
  std::vector<Along> window(spatial);
  for (size_t i = 0; i < spatial; ++i) {
    window[i] = {.kernel = kernel[i],
                 .stride = strides[i],
                 .dilation = dilations[i],
                 .pad_before = pads[i],
                 .pad_after = pads[spatial + i]};
    ANEMONE_RETURN_IF_ERROR(CheckAlong(window[i]));
  }
  return window;
}

absl::StatusOr<PadType> ReadAutoPad(Attributes& a) {
  static constexpr std::pair<const char*, PadType> kNames[] = {{"NOTSET", PadType::kCustom},
                                                               {"VALID", PadType::kValid},
                                                               {"SAME_UPPER", PadType::kSame},
                                                               {"SAME_LOWER", PadType::kSameLower}};
  ANEMONE_ASSIGN_OR_RETURN(std::string name, a.String("auto_pad", "NOTSET"));
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("attribute 'auto_pad': want NOTSET, VALID, SAME_UPPER or SAME_LOWER, got '",
                   name, "'; run the ONNX checker on the model"));
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
        c.call().op, ": want strides, dilations and pad for ", spatial, " spatial axes"));
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
