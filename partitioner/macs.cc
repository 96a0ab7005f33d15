#include "partitioner/macs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "kernels/lowering.h"

namespace anemone {
namespace {

constexpr absl::string_view kMicrosoft = "com.microsoft";

// Operators that multiply and have no row with a count: the importer replaces them by plain nodes,
// and a form that it cannot replace stays on the CPU.
constexpr std::pair<absl::string_view, absl::string_view> kNotCounted[] = {
    {"", "Attention"},
    {kMicrosoft, "Attention"},
    {kMicrosoft, "DecoderMaskedMultiHeadAttention"},
    {kMicrosoft, "DecoderMaskedSelfAttention"},
    {kMicrosoft, "DynamicQuantizeLSTM"},
    {kMicrosoft, "DynamicQuantizeMatMul"},
    {kMicrosoft, "FusedConv"},
    {kMicrosoft, "FusedGemm"},
    {kMicrosoft, "FusedMatMul"},
    {kMicrosoft, "GroupQueryAttention"},
    {kMicrosoft, "MatMulBnb4"},
    {kMicrosoft, "MatMulFpQ4"},
    {kMicrosoft, "MatMulInteger16"},
    {kMicrosoft, "MatMulIntegerToFloat"},
    {kMicrosoft, "MatMulNBits"},
    {kMicrosoft, "MoE"},
    {kMicrosoft, "MultiHeadAttention"},
    {kMicrosoft, "NhwcConv"},
    {kMicrosoft, "PackedAttention"},
    {kMicrosoft, "PackedMultiHeadAttention"},
    {kMicrosoft, "QAttention"},
    {kMicrosoft, "QGemm"},
    {kMicrosoft, "QLinearConv"},
    {kMicrosoft, "QMoE"},
    {kMicrosoft, "SparseAttention"},
    {kMicrosoft, "TransposeMatMul"},
};

bool IsStatic(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId v) { return v == kNone || graph.values[v].is_static(); });
}

}  // namespace

std::optional<int64_t> KnownMacsOf(const Graph& graph, const Node& node) {
  const auto& rows = LoweringsOf(node.domain, node.op_type);
  const bool counted = std::any_of(rows.begin(), rows.end(),
                                   [](const Lowering* row) { return row->macs != nullptr; });
  if (counted) {
    if (!IsStatic(graph, node.inputs) || !IsStatic(graph, node.outputs)) return std::nullopt;
    return MacsOf(graph, node);
  }
  // Nobody but its author knows the work of a custom operator.
  const bool is_custom = rows.empty() && !node.domain.empty() &&
                         !absl::StartsWith(node.domain, "ai.onnx.") &&
                         !absl::StartsWith(node.domain, kMicrosoft);
  if (is_custom) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> name(node.domain, node.op_type);
  const bool not_counted =
      std::find(std::begin(kNotCounted), std::end(kNotCounted), name) != std::end(kNotCounted);
  return not_counted ? std::nullopt : std::optional<int64_t>(0);
}

}  // namespace anemone
