#include "importer/infer/infer_checks.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/operators/operators.h"
#include "onnx/defs/schema.h"

namespace anemone {
namespace {

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

// Some inference functions truncate the number to 32 bits and then use it as an index.
absl::Status CheckAxis(const Node& node) {
  const int64_t axis = IntOr(node, "axis", 0);
  if (-onnx::kMaxMaterializedRank <= axis && axis <= onnx::kMaxMaterializedRank) {
    return absl::OkStatus();
  }
  return Invalid(absl::StrCat("attribute 'axis' is ", axis, ", which is out of range"));
}

absl::Status CheckBias(const Graph& graph, const Node& node, const Dim& filters, int64_t group) {
  if (!HasInput(node, 2) || !filters.known()) return absl::OkStatus();
  const Value& bias = graph.values[node.inputs[2]];
  if (!bias.shape.has_value()) return absl::OkStatus();
  const Shape& shape = *bias.shape;
  const bool fits =
      shape.size() == 1 &&
      (!shape[0].known() || (shape[0].size % group == 0 && shape[0].size / group == filters.size));
  if (fits) return absl::OkStatus();
  return Invalid(absl::StrCat("bias '", bias.name, "': want one value for each of the ",
                              filters.size, " filters",
                              group == 1 ? "" : absl::StrCat(" in each of ", group, " groups")));
}

}  // namespace

// Inference accepts a permutation shorter than the rank, and kernels would read past its end.
absl::Status CheckPermutation(const Graph& graph, const Node& node) {
  const std::optional<std::vector<int64_t>> perm = IntsOf(node, "perm");
  const Value& x = graph.values[node.inputs[0]];
  if (!perm.has_value() || !x.shape.has_value()) return absl::OkStatus();
  std::vector<int64_t> axes(x.shape->size()), sorted = *perm;
  std::iota(axes.begin(), axes.end(), int64_t{0});
  std::sort(sorted.begin(), sorted.end());
  if (sorted == axes) return absl::OkStatus();
  return Invalid(absl::StrCat("attribute 'perm': want each of the ", axes.size(), " axes of '",
                              x.name, "' once"));
}

// ONNX's equation parser loops endlessly on a dot that is not part of an ellipsis.
absl::Status CheckEquation(const Graph&, const Node& node) {
  const std::string equation = StringOr(node, "equation", "");
  const std::string terms = absl::StrReplaceAll(equation, {{"->", ","}});
  for (absl::string_view term : absl::StrSplit(terms, ',')) {
    bool seen = false;
    for (size_t i = 0; i < term.size(); ++i) {
      if (absl::ascii_isalpha(term[i]) || term[i] == ' ') continue;
      if (!seen && term.substr(i, 3) == "...") {
        seen = true;
        i += 2;
        continue;
      }
      return Invalid(absl::StrCat("attribute 'equation' is '", equation,
                                  "': want terms of letters, each with at most one '...'"));
    }
  }
  return absl::OkStatus();
}

// Inference allocates as many outputs as the attribute says.
absl::Status CheckOutputCount(const Graph&, const Node& node) {
  const auto count = static_cast<int64_t>(node.outputs.size());
  const int64_t said = IntOr(node, "num_outputs", count);
  if (said == count) return absl::OkStatus();
  return Invalid(
      absl::StrCat("attribute 'num_outputs' is ", said, ", but the node has ", count, " outputs"));
}

absl::Status CheckConvolution(const Graph& graph, const Node& node) {
  const bool transposed = node.op_type == "ConvTranspose";
  const Value& x = graph.values[node.inputs[0]];
  const Value& w = graph.values[node.inputs[1]];
  const int64_t group = IntOr(node, "group", 1);
  if (group <= 0) return Invalid(absl::StrCat("attribute 'group': want at least 1, got ", group));
  if (!x.shape.has_value() || !w.shape.has_value()) return absl::OkStatus();
  if (w.shape->size() != x.shape->size()) {
    return Invalid(absl::StrCat("weight '", w.name, "' has rank ", w.shape->size(), ", input 0 '",
                                x.name, "' rank ", x.shape->size()));
  }
  if (x.shape->size() < 2) return absl::OkStatus();
  const Dim& channels = (*x.shape)[1];
  const Dim& first = (*w.shape)[0];
  const Dim& second = (*w.shape)[1];
  // Uses divisions, since the sizes come from the file and a product could overflow.
  if (transposed) {
    if (channels.known() && first.known() && channels.size != first.size) {
      return Invalid(absl::StrCat("input 0 '", x.name, "' has ", channels.size,
                                  " channels, but weight '", w.name, "' takes ", first.size));
    }
  } else if (channels.known() && second.known() &&
             (channels.size % group != 0 || channels.size / group != second.size)) {
    return Invalid(absl::StrCat("input 0 '", x.name, "' has ", channels.size,
                                " channels, but weight '", w.name, "' takes ", second.size,
                                " in each of ", group, " groups"));
  }
  if (first.known() && first.size % group != 0) {
    return Invalid(absl::StrCat("weight '", w.name, "' has ", first.size,
                                transposed ? " channels" : " filters",
                                ", which is not a multiple of ", group, " groups"));
  }
  const std::optional<std::vector<int64_t>> output_shape = IntsOf(node, "output_shape");
  if (output_shape.has_value() && (output_shape->size() + 2 < x.shape->size() ||
                                   std::any_of(output_shape->begin(), output_shape->end(),
                                               [](int64_t extent) { return extent < 1; }))) {
    return Invalid("attribute 'output_shape': want an extent of at least 1 for each spatial axis");
  }
  if (!transposed)
    ANEMONE_RETURN_IF_ERROR(CheckWindow(node, x, absl::MakeConstSpan(*w.shape).subspan(2)));
  return CheckBias(graph, node, transposed ? second : first, transposed ? group : 1);
}

// Inference rounds toward 0 and so gives a window that does not fit one place. Computed in floating
// point, since the numbers come from the file and could overflow.
absl::Status CheckWindow(const Node& node, const Value& x, absl::Span<const Dim> window) {
  const std::string automatic = StringOr(node, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") return absl::OkStatus();
  const size_t axes = window.size();
  if (!x.shape || x.shape->size() != axes + 2) return absl::OkStatus();
  const auto ints = [&](const char* name, size_t count, int64_t fallback) {
    std::optional<std::vector<int64_t>> found = IntsOf(node, name);
    return found && found->size() == count ? *found : std::vector<int64_t>(count, fallback);
  };
  std::vector<int64_t> pads = ints("pads", 2 * axes, 0);
  if (automatic == "VALID") pads.assign(2 * axes, 0);
  const std::vector<int64_t> dilations = ints("dilations", axes, 1);
  for (size_t i = 0; i < axes; ++i) {
    const Dim& extent = (*x.shape)[i + 2];
    if (!extent.known() || !window[i].known()) continue;
    const double padded = static_cast<double>(extent.size) + static_cast<double>(pads[i]) +
                          static_cast<double>(pads[i + axes]);
    const double span =
        (static_cast<double>(window[i].size) - 1) * static_cast<double>(dilations[i]) + 1;
    if (span <= padded) continue;
    return Invalid(absl::StrCat("input 0 '", x.name, "' has size ", padded,
                                padded == static_cast<double>(extent.size) ? "" : " with padding",
                                " on axis ", i + 2, ", but the window needs ", span));
  }
  return absl::OkStatus();
}

absl::Status CheckBeforeInference(const Graph& graph, const Node& node) {
  if (node.domain.empty()) ANEMONE_RETURN_IF_ERROR(CheckAxis(node));
  const Operator& op = OperatorOf(node);
  return op.check == nullptr ? absl::OkStatus() : op.check(graph, node);
}

absl::Status CheckAfterInference(const Graph& graph, const Node& node) {
  const Operator& op = OperatorOf(node);
  return op.check_sizes == nullptr ? absl::OkStatus() : op.check_sizes(graph, node);
}

}  // namespace anemone
